//! Executable graphs: instantiated once, replayed often, their arguments replaced in between.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::abi::{self, Handle};
use crate::code::raw_launch::RawLaunch;
use crate::graph::node::{Node, Nodes, OwnedArg, Work};
use crate::memory::buffer::Buffer;
use crate::queue::submit::{AccessSet, SubmitFlags};
use crate::timeline::deferred_free::Resource;
use crate::timeline::event::Event;
use crate::timeline::open_device::OpenDevice;
use crate::{Access, Arg, Error, ErrorKind, Graph, Queue, Result, Tensor};

impl Queue {
    /// Makes a recording executable on this queue's device.
    ///
    /// # Errors
    /// `InvalidArgument` for a recording of another device; whatever the device says.
    pub fn instantiate(&self, graph: &Graph) -> Result<ExecutableGraph> {
        if !Arc::ptr_eq(&graph.device, &self.device) {
            return Err(self.annotate(
                Error::invalid(format!("the graph was recorded on {}", graph.device.name)),
                "instantiate",
            ));
        }
        let native = match self.device.info.capabilities.has(abi::CAP_GRAPHS) {
            true => match build(&self.device, &graph.nodes) {
                // A device may have graphs of some work only.
                Err(error) if error.kind() == ErrorKind::Unsupported => None,
                built => Some(built?),
            },
            false => None,
        };
        let (nodes, device) = (graph.nodes.clone(), self.device.clone());
        let mut made =
            ExecutableGraph { nodes, device, native, used: Vec::new(), submitting: Mutex::default() };
        made.used = used(&made.nodes).map_err(|error| self.annotate(error, "instantiate"))?;
        Ok(made)
    }

    /// Submits a whole graph. One ticket where graphs are native; else one per node, and the event is the last one's.
    ///
    /// # Errors
    /// `InvalidArgument` for a graph of another device, or an empty one; as [`Queue::launch`].
    pub fn replay(&self, graph: &ExecutableGraph) -> Result<Event> {
        if !Arc::ptr_eq(&graph.device, &self.device) {
            return Err(
                self.annotate(Error::invalid(format!("the graph is of {}", graph.device.name)), "replay")
            );
        }
        if graph.nodes.is_empty() {
            return Err(self.annotate(Error::invalid("the graph is empty"), "replay"));
        }
        match graph.native {
            Some(native) => self.replay_native(graph, native),
            None => self.resubmit(graph),
        }
    }

    fn replay_native(&self, graph: &ExecutableGraph, native: Handle) -> Result<Event> {
        let mut uses = AccessSet::default();
        for (tensor, access) in &graph.used {
            tensor
                .buffer("replay")
                .and_then(|buffer| uses.add(buffer, *access))
                .map_err(|error| self.annotate(error, "replay"))?;
        }
        let replay = self.device.calls.graph.replay;
        let flags = SubmitFlags { hold: true, ..SubmitFlags::default() };
        let submitted = self.submit(&uses, flags, |_, queue, place| {
            // Two queues may replay it at once; drivers forbid that for one graph.
            let _one_at_a_time = graph.submitting.lock();
            // SAFETY: the queue is open and the graph exists, as it is borrowed.
            unsafe { replay(queue, place, native) }
        });
        let submitted = submitted.map_err(|error| self.annotate(error, "replay"))?;
        Ok(Event::new(&self.timeline, submitted.ticket()))
    }

    fn resubmit(&self, graph: &ExecutableGraph) -> Result<Event> {
        let mut last: Option<Event> = None;
        for node in &graph.nodes {
            // An event that is held would be marked.
            drop(last.take());
            last = Some(match &node.work {
                Work::Launch { kernel, geometry, args } => {
                    let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
                    self.launch(kernel, geometry, &args)?
                }
                Work::Copy { destination, source } => self.copy(destination, source)?,
                Work::Fill { tensor, pattern } => self.fill(tensor, pattern)?,
            });
        }
        last.ok_or_else(|| self.annotate(Error::invalid("the graph is empty"), "replay"))
    }
}

/// A graph that can be replayed.
#[derive(Debug)]
pub struct ExecutableGraph {
    nodes: Vec<Node>,
    device: Arc<OpenDevice>,
    native: Option<Handle>,
    /// What a replay uses: every buffer once, by one of its tensors.
    used: Vec<(Tensor, Access)>,
    /// Held through a native replay's driver call.
    submitting: Mutex<()>,
}

// SAFETY: a backend graph, changed through `&mut self` and submitted under its lock only.
unsafe impl Send for ExecutableGraph {}
// SAFETY: as above.
unsafe impl Sync for ExecutableGraph {}

impl ExecutableGraph {
    /// Whether the device runs it as one thing; otherwise a replay submits every node again.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.native.is_some()
    }

    /// Replaces the arguments of launch node `index`. The order between the nodes stays as it was recorded.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such launch, the arguments do not fit its kernel, or other tensors would
    /// need another order.
    pub fn update(&mut self, index: usize, args: &[Arg<'_>]) -> Result<()> {
        self.update_node(index, args)
            .map_err(|error| error.in_operation("update").on_device(&self.device.name))
    }

    fn update_node(&mut self, index: usize, args: &[Arg<'_>]) -> Result<()> {
        let wrong = || Error::invalid(format!("node {index} is no launch of this graph"));
        let Some(Node { work: Work::Launch { kernel, geometry, .. }, .. }) = self.nodes.get(index) else {
            return Err(wrong());
        };
        kernel.check_args(&self.device, args)?;
        let work = Work::Launch {
            kernel: kernel.clone(),
            geometry: *geometry,
            args: args.iter().map(OwnedArg::new).collect(),
        };
        self.check_order(index, &work)?;
        if let Some(native) = self.native {
            let mut raw = RawLaunch::default();
            raw.fill(kernel, args, |_, _| Ok(()))?;
            let (node, launch) = (u32::try_from(index).map_err(|_| wrong())?, raw.pointed(geometry));
            // SAFETY: the graph exists, and `raw` lives during the call.
            self.device.call("update", |calls, _| unsafe {
                (calls.graph.update)(native, node, &raw const launch)
            })?;
        }
        self.nodes[index].work = work;
        self.used = used(&self.nodes)?;
        Ok(())
    }

    /// Refuses `work` as node `index` if it would need edges that were not recorded.
    fn check_order(&self, index: usize, work: &Work) -> Result<()> {
        let mut again = Nodes::default();
        for (at, node) in self.nodes.iter().enumerate() {
            again.push(if at == index { work.clone() } else { node.work.clone() })?;
        }
        let fits = again
            .list
            .iter()
            .zip(&self.nodes)
            .all(|(new, old)| new.dependencies.iter().all(|needed| old.dependencies.contains(needed)));
        if fits {
            Ok(())
        } else {
            Err(Error::invalid(
                "these arguments change the dependencies between nodes; record the graph again",
            ))
        }
    }
}

impl Drop for ExecutableGraph {
    fn drop(&mut self) {
        if let Some(native) = self.native
            && !self.device.must_leak()
        {
            self.device.deferred.defer(&self.device, Resource::Graph(native), self.device.all_pending());
        }
    }
}

/// Every buffer of the nodes, and all that they do with it.
fn used(nodes: &[Node]) -> Result<Vec<(Tensor, Access)>> {
    let mut places = HashMap::new();
    let mut used: Vec<(Tensor, Access)> = Vec::new();
    for (tensor, access) in nodes.iter().flat_map(|node| node.work.uses()) {
        let place = *places.entry(Arc::as_ptr(tensor.buffer("graph")?).addr()).or_insert(used.len());
        match used.get_mut(place) {
            Some((_, known)) => *known = Access::from_bits(known.bits() | access.bits()),
            None => used.push((tensor.clone(), access)),
        }
    }
    Ok(used)
}

/// Builds a native graph of explicit nodes.
fn build(device: &OpenDevice, nodes: &[Node]) -> Result<Handle> {
    let args = nodes.iter().map(raw_args).collect::<Result<Vec<_>>>()?;
    let launches: Vec<_> = nodes
        .iter()
        .zip(&args)
        .map(|(node, args)| node.geometry().map(|geometry| args.pointed(geometry)))
        .collect();
    let pointed = launches.iter().map(|launch| launch.as_ref().map_or(std::ptr::null(), std::ptr::from_ref));
    let raw =
        nodes.iter().zip(pointed).map(|(node, launch)| raw_node(node, launch)).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<_> = raw.iter().map(std::ptr::from_ref).collect();
    let mut handle = std::ptr::null_mut();
    device.call("instantiate", |calls, device| {
        // SAFETY: the device is open, and everything that the nodes point to lives during the call.
        unsafe { (calls.graph.instantiate)(device, pointers.as_ptr(), pointers.len(), &raw mut handle) }
    })?;
    device.check_made("instantiate", "graph", handle)?;
    Ok(handle)
}

fn raw_args(node: &Node) -> Result<RawLaunch> {
    let mut raw = RawLaunch::default();
    if let Work::Launch { kernel, args, .. } = &node.work {
        let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
        raw.fill(kernel, &args, |_, _| Ok(()))?;
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
    let place = |tensor: &Tensor| -> Result<(Handle, u64, u64)> {
        let buffer: &Buffer = tensor.buffer("instantiate")?;
        Ok((buffer.handle, tensor.byte_offset() as u64, tensor.bytes() as u64))
    };
    match &node.work {
        Work::Launch { kernel, .. } => raw.kernel = kernel.handle(),
        Work::Copy { destination, source } => {
            raw.kind = abi::NODE_COPY;
            (raw.destination, raw.destination_offset, raw.bytes) = place(destination)?;
            (raw.source, raw.source_offset, _) = place(source)?;
        }
        Work::Fill { tensor, pattern } => {
            raw.kind = abi::NODE_FILL;
            (raw.destination, raw.destination_offset, raw.bytes) = place(tensor)?;
            raw.pattern[..pattern.len()].copy_from_slice(pattern);
            raw.pattern_bytes = u32::try_from(pattern.len()).unwrap_or(0);
        }
    }
    Ok(raw)
}
