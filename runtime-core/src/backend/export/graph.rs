//! Shims for native graphs.

use super::ffi::{abi_mismatch, answer, borrow, into_handle, read_struct, release};
use super::module::kernel;
use super::module::launch;
use super::panic::guard;
use super::{Backend, BufferOf, GraphOf, KernelOf, Shims};
use crate::abi::{self, GraphTable, Handle, Status};
use crate::backend::{Device, FillPattern, Graph, GraphNode, GraphWork};
use crate::plugin::convert;
use crate::{Result, end_of};

impl<B: Backend> Shims<B> {
    pub(super) const GRAPH: &'static GraphTable = &GraphTable {
        struct_size: end_of!(GraphTable, close),
        reserved: 0,
        instantiate: Some(Self::instantiate),
        update: Some(Self::update),
        replay: Some(Self::replay),
        close: Some(Self::close_graph),
    };

    unsafe extern "C" fn instantiate(
        device: Handle,
        nodes: *const *const abi::GraphNode,
        count: usize,
        handle: *mut Handle,
    ) -> Status {
        let instantiate = |device: &B::Device| {
            // SAFETY: core passes `count` nodes, valid during the call.
            let nodes = unsafe { convert::borrow_slice("nodes", nodes, count, usize::MAX) }?;
            let raw: Result<Vec<abi::GraphNode>> = nodes
                .iter()
                // SAFETY: core passes structures that state their sizes.
                .map(|&node| unsafe { read_struct(node) })
                .collect();
            let raw = raw?;
            // SAFETY: what the nodes point to is valid during the call.
            let nodes: Result<Vec<_>> = raw.iter().map(|raw| unsafe { node::<B>(raw) }).collect();
            device.instantiate(&nodes?).map(into_handle)
        };
        // SAFETY: core passes a live device of this backend, and a writable output pointer.
        unsafe { answer("instantiate", device, handle, instantiate) }
    }

    unsafe extern "C" fn update(graph: Handle, node: u32, arguments: *const abi::Launch) -> Status {
        guard("update", || {
            // SAFETY: core passes a launch that is valid during the call.
            let arguments = unsafe { launch::<B>(arguments) }?;
            // SAFETY: core passes a live graph of this backend and makes no other call with it meanwhile.
            match unsafe { graph.cast::<GraphOf<B>>().as_mut() } {
                Some(graph) => graph.update(node, &arguments),
                None => Err(abi_mismatch("expected a handle of a graph, got null")),
            }
        })
    }

    unsafe extern "C" fn close_graph(graph: Handle) {
        // SAFETY: core passes each graph that `instantiate` created exactly once.
        unsafe { release::<GraphOf<B>>("close_graph", graph) }
    }
}

/// Converts a node received from core.
///
/// # Safety
/// Its handles and pointers are valid for `'a`.
unsafe fn node<B: Backend>(raw: &abi::GraphNode) -> Result<GraphNode<'_, BufferOf<B>, KernelOf<B>>> {
    // SAFETY: guaranteed by the caller.
    let dependencies = unsafe {
        convert::borrow_slice(
            "GraphNode.dependencies",
            raw.dependencies,
            raw.dependency_count as usize,
            usize::MAX,
        )
    }?;
    let work = match raw.kind {
        abi::NODE_LAUNCH => GraphWork::Launch {
            // SAFETY: guaranteed by the caller.
            kernel: unsafe { kernel::<B>(raw.kernel) }?,
            // SAFETY: guaranteed by the caller.
            launch: unsafe { launch::<B>(raw.launch) }?,
        },
        abi::NODE_COPY => GraphWork::Copy {
            // SAFETY: guaranteed by the caller.
            destination: (unsafe { borrow(raw.destination) }?, raw.destination_offset),
            // SAFETY: guaranteed by the caller.
            source: (unsafe { borrow(raw.source) }?, raw.source_offset),
            bytes: raw.bytes,
        },
        abi::NODE_FILL => GraphWork::Fill {
            // SAFETY: guaranteed by the caller.
            destination: (unsafe { borrow(raw.destination) }?, raw.destination_offset),
            bytes: raw.bytes,
            pattern: raw
                .pattern
                .get(..raw.pattern_bytes as usize)
                .ok_or_else(|| abi_mismatch("the pattern is longer than 16 bytes"))
                .and_then(|pattern| FillPattern::new(pattern, raw.bytes))?,
        },
        kind => return Err(abi_mismatch(format!("unknown graph node kind {kind}"))),
    };
    Ok(GraphNode { work, dependencies })
}
