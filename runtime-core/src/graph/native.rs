//! Native graphs: the nodes as the ABI passes them.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;

use crate::abi::{self, Handle};
use crate::code::owned_arg::OwnedArg;
use crate::code::raw_launch::RawLaunch;
use crate::graph::node::{Node, Operation, too_many_nodes};
use crate::memory::buffer::Buffer;
use crate::timeline::deferred_free::Resource;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, Kernel, LaunchConfig, Result, Tensor};

/// A graph of the backend, freed once no work uses it.
#[derive(Debug)]
pub(crate) struct NativeGraph {
    device: Arc<OpenDevice>,
    handle: Handle,
}

// SAFETY: the backend's graph is modified only through `&mut self`, and callers submit it under a lock.
unsafe impl Send for NativeGraph {}
// SAFETY: as above.
unsafe impl Sync for NativeGraph {}

impl NativeGraph {
    /// Builds a graph from explicit nodes. It keeps neither their tensors nor their kernels.
    ///
    /// # Errors
    /// `Unsupported` for kinds of nodes that the device does not support; any error of the device.
    pub(crate) fn build(device: &Arc<OpenDevice>, nodes: &[Node]) -> Result<Self> {
        Ok(Self { device: device.clone(), handle: build(device, nodes)? })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Replaces the arguments of launch node `index`.
    ///
    /// # Errors
    /// `Unsupported` by devices that cannot; any error of the device.
    pub(crate) fn update(
        &mut self,
        index: usize,
        (kernel, config): (&Kernel, &LaunchConfig),
        args: &[Arg<'_>],
    ) -> Result<()> {
        let node = u32::try_from(index).map_err(|_| too_many_nodes())?;
        let mut raw = RawLaunch::default();
        raw.fill((kernel.lowered(), config), args, |_, _| Ok(()))?;
        let launch = raw.pointed(config);
        // SAFETY: the graph exists, and `raw` lives during the call.
        self.device
            .call("update", |calls, _| unsafe { (calls.graph.update)(self.handle, node, &raw const launch) })
    }
}

impl Drop for NativeGraph {
    fn drop(&mut self) {
        if !self.device.must_leak() {
            self.device.defer(Resource::Graph(self.handle), self.device.all_pending());
        }
    }
}

/// Builds a native graph from explicit nodes.
fn build(device: &OpenDevice, nodes: &[Node]) -> Result<Handle> {
    let args = nodes.iter().map(|node| raw_args(&node.operation)).collect::<Result<Vec<_>>>()?;
    let launches: Vec<_> = nodes
        .iter()
        .zip(&args)
        .map(|(node, args)| node.config().map(|config| args.pointed(config)))
        .collect();
    let pointed = launches.iter().map(|launch| launch.as_ref().map_or(std::ptr::null(), std::ptr::from_ref));
    let raw =
        nodes.iter().zip(pointed).map(|(node, launch)| raw_node(node, launch)).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<_> = raw.iter().map(std::ptr::from_ref).collect();
    let mut handle = std::ptr::null_mut();
    device.call("instantiate", |calls, device| {
        // SAFETY: the device is open, and everything the nodes point to lives during the call.
        unsafe { (calls.graph.instantiate)(device, pointers.as_ptr(), pointers.len(), &raw mut handle) }
    })?;
    device.check_made("instantiate", "graph", handle)?;
    Ok(handle)
}

fn raw_args(operation: &Operation) -> Result<RawLaunch> {
    let mut raw = RawLaunch::default();
    if let Operation::Launch { kernel, config, args } = operation {
        let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
        raw.fill((kernel.lowered(), config), &args, |_, _| Ok(()))?;
    }
    Ok(raw)
}

fn raw_node(node: &Node, launch: *const abi::Launch) -> Result<abi::GraphNode> {
    let mut raw = abi::GraphNode {
        struct_size: crate::end_of!(abi::GraphNode, dependencies),
        kind: abi::NODE_LAUNCH,
        kernel: std::ptr::null_mut(),
        launch,
        destination: std::ptr::null_mut(),
        destination_offset: 0,
        source: std::ptr::null_mut(),
        source_offset: 0,
        bytes: 0,
        pattern: [0; 16],
        pattern_bytes: 0,
        dependency_count: u32::try_from(node.dependencies.len()).unwrap_or(u32::MAX),
        dependencies: node.dependencies.as_ptr(),
    };
    let location = |tensor: &Tensor| -> Result<(Handle, u64, u64)> {
        let buffer: &Buffer = tensor.buffer("instantiate")?;
        Ok((buffer.handle, tensor.byte_offset() as u64, tensor.size_bytes() as u64))
    };
    match &node.operation {
        Operation::Launch { kernel, .. } => raw.kernel = kernel.handle(),
        Operation::Copy { destination, source } => {
            raw.kind = abi::NODE_COPY;
            (raw.destination, raw.destination_offset, raw.bytes) = location(destination)?;
            (raw.source, raw.source_offset, _) = location(source)?;
        }
        Operation::Fill { tensor, pattern } => {
            raw.kind = abi::NODE_FILL;
            (raw.destination, raw.destination_offset, raw.bytes) = location(tensor)?;
            raw.pattern[..pattern.len()].copy_from_slice(pattern);
            raw.pattern_bytes = u32::try_from(pattern.len()).unwrap_or(0);
        }
    }
    Ok(raw)
}
