//! Executable graphs: instantiation, replay, and argument updates between replays.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::abi::{self, Handle};
use crate::code::owned_arg::OwnedArg;
use crate::code::raw_launch::RawLaunch;
use crate::graph::node::{Node, NodeList, Operation};
use crate::memory::buffer::Buffer;
use crate::queue::submit::{AccessSet, SubmitFlags};
use crate::timeline::deferred_free::Resource;
use crate::timeline::event::Event;
use crate::timeline::open_device::OpenDevice;
use crate::{Access, Arg, Arguments, Error, ErrorKind, Graph, Kernel, LaunchConfig, Queue, Result, Tensor};

impl Queue {
    /// Instantiates a graph on this queue's device.
    ///
    /// # Errors
    /// `InvalidArgument` for a graph recorded on another device; any error of the device.
    pub fn instantiate(&self, graph: &Graph) -> Result<ExecutableGraph> {
        if !Arc::ptr_eq(&graph.device, &self.device) {
            return Err(self.annotate(
                Error::invalid(format!("the graph was recorded on {}", graph.device.name)),
                "instantiate",
            ));
        }
        let native = match self.device.info.capabilities.has(abi::CAP_GRAPHS) {
            true => match build_native(&self.device, &graph.nodes) {
                // Some devices support only some kinds of nodes.
                Err(error) if error.kind() == ErrorKind::Unsupported => None,
                built => Some(built?),
            },
            false => None,
        };
        let (nodes, device) = (graph.nodes.clone(), self.device.clone());
        let mut executable =
            ExecutableGraph { nodes, device, native, buffer_uses: Vec::new(), replay_lock: Mutex::default() };
        executable.buffer_uses =
            buffer_uses(&executable.nodes).map_err(|error| self.annotate(error, "instantiate"))?;
        Ok(executable)
    }

    /// Submits a whole graph: with one ticket if the graph is native, otherwise with one per node, and the
    /// event of the last.
    ///
    /// # Errors
    /// `InvalidArgument` for a graph of another device, or an empty one; otherwise as [`Queue::launch`].
    pub fn replay(&self, graph: &ExecutableGraph) -> Result<Event> {
        if let Some(real) = self.real_queue() {
            return real.replay(graph);
        }
        if !Arc::ptr_eq(&graph.device, &self.device) {
            return Err(self.annotate(
                Error::invalid(format!("the graph was instantiated on {}", graph.device.name)),
                "replay",
            ));
        }
        if graph.nodes.is_empty() {
            return Err(self.annotate(Error::invalid("the graph is empty"), "replay"));
        }
        match graph.native {
            Some(native) => self.replay_native(graph, native),
            None => self.replay_nodes(graph),
        }
    }

    fn replay_native(&self, graph: &ExecutableGraph, native: Handle) -> Result<Event> {
        let mut uses = AccessSet::default();
        for (tensor, access) in &graph.buffer_uses {
            tensor
                .buffer("replay")
                .and_then(|buffer| uses.add(buffer, *access))
                .map_err(|error| self.annotate(error, "replay"))?;
        }
        let replay = self.device.calls.graph.replay;
        let flags = SubmitFlags { hold: true, ..SubmitFlags::default() };
        let submitted = self.submit(&uses, flags, |_, queue, info| {
            // Two queues may replay one graph concurrently, which drivers forbid.
            let _guard = graph.replay_lock.lock();
            // SAFETY: the queue is open, and the graph is borrowed, so it exists.
            unsafe { replay(queue, info, native) }
        });
        let submitted = submitted.map_err(|error| self.annotate(error, "replay"))?;
        Ok(Event::new(&self.timeline, submitted.ticket()))
    }

    fn replay_nodes(&self, graph: &ExecutableGraph) -> Result<Event> {
        let mut last: Option<Event> = None;
        for node in &graph.nodes {
            // Holding the event would make the next submission signal it.
            drop(last.take());
            last = Some(match &node.operation {
                Operation::Launch { kernel, config, args } => {
                    let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
                    self.launch(kernel, *config, &args)?
                }
                Operation::Copy { destination, source } => self.copy(destination, source)?,
                Operation::Fill { tensor, pattern } => self.fill(tensor, pattern)?,
            });
        }
        last.ok_or_else(|| self.annotate(Error::invalid("the graph is empty"), "replay"))
    }
}

/// An instantiated graph, ready for replay.
#[derive(Debug)]
pub struct ExecutableGraph {
    nodes: Vec<Node>,
    device: Arc<OpenDevice>,
    native: Option<Handle>,
    /// The accesses of a replay: one entry per buffer, represented by one of its tensors.
    buffer_uses: Vec<(Tensor, Access)>,
    /// Held during the driver call of a native replay.
    replay_lock: Mutex<()>,
}

// SAFETY: the backend graph is modified only through `&mut self`, and submitted only under its lock.
unsafe impl Send for ExecutableGraph {}
// SAFETY: as above.
unsafe impl Sync for ExecutableGraph {}

impl ExecutableGraph {
    /// Whether the device runs the graph as one submission; otherwise a replay submits every node again.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.native.is_some()
    }

    /// Replaces the arguments of launch node `index`. Dependencies between nodes stay as recorded.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such launch, the arguments do not match its kernel, or they would need
    /// dependencies that were not recorded.
    pub fn update<'a>(&mut self, index: usize, args: impl Arguments<'a>) -> Result<()> {
        let updated = self.launch_node(index).and_then(|(node, kernel, config)| {
            args.with(Some(&kernel), |args| self.update_node(node, &kernel, config, args))
        });
        updated.map_err(|error| error.in_operation("update").on_device(&self.device.name))
    }

    /// The number of a launch node as in the ABI, with its kernel and geometry.
    fn launch_node(&self, index: usize) -> Result<(u32, Kernel, LaunchConfig)> {
        match (u32::try_from(index), self.nodes.get(index).map(|node| &node.operation)) {
            (Ok(node), Some(Operation::Launch { kernel, config, .. })) => Ok((node, kernel.clone(), *config)),
            _ => Err(Error::invalid(format!("node {index} is not a launch of this graph"))),
        }
    }

    fn update_node(
        &mut self,
        node: u32,
        kernel: &Kernel,
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let index = node as usize;
        kernel.check_args(&self.device, args)?;
        let args_of_node = args.iter().map(OwnedArg::new).collect();
        let operation = Operation::Launch { kernel: kernel.clone(), config, args: args_of_node };
        self.check_dependencies(index, &operation)?;
        if let Some(native) = self.native {
            let mut raw = RawLaunch::default();
            raw.fill(kernel.lowered(), args, |_, _| Ok(()))?;
            let launch = raw.pointed(&config);
            // SAFETY: the graph exists, and `raw` lives during the call.
            self.device.call("update", |calls, _| unsafe {
                (calls.graph.update)(native, node, &raw const launch)
            })?;
        }
        self.nodes[index].operation = operation;
        self.buffer_uses = buffer_uses(&self.nodes)?;
        Ok(())
    }

    /// Refuses `operation` as node `index` if it needs dependencies that were not recorded.
    fn check_dependencies(&self, index: usize, operation: &Operation) -> Result<()> {
        let mut updated = NodeList::default();
        for (at, node) in self.nodes.iter().enumerate() {
            updated.push(if at == index { operation.clone() } else { node.operation.clone() })?;
        }
        let fits = updated
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
            self.device.defer(Resource::Graph(native), self.device.all_pending());
        }
    }
}

/// Every buffer used by the nodes, with the union of their accesses.
fn buffer_uses(nodes: &[Node]) -> Result<Vec<(Tensor, Access)>> {
    let mut indices = HashMap::new();
    let mut uses: Vec<(Tensor, Access)> = Vec::new();
    for (tensor, access) in nodes.iter().flat_map(|node| node.operation.uses()) {
        let index = *indices.entry(Arc::as_ptr(tensor.buffer("graph")?).addr()).or_insert(uses.len());
        match uses.get_mut(index) {
            Some((_, known)) => *known = Access::from_bits(known.bits() | access.bits()),
            None => uses.push((tensor.clone(), access)),
        }
    }
    Ok(uses)
}

/// Builds a native graph from explicit nodes.
fn build_native(device: &OpenDevice, nodes: &[Node]) -> Result<Handle> {
    let args = nodes.iter().map(raw_args).collect::<Result<Vec<_>>>()?;
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

fn raw_args(node: &Node) -> Result<RawLaunch> {
    let mut raw = RawLaunch::default();
    if let Operation::Launch { kernel, args, .. } = &node.operation {
        let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
        raw.fill(kernel.lowered(), &args, |_, _| Ok(()))?;
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
