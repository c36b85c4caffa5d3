//! Executable graphs: instantiation, and what a replay uses.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::abi;
use crate::graph::check_recorded_on;
use crate::graph::native::NativeGraph;
use crate::graph::node::Node;
use crate::timeline::Timeline;
use crate::timeline::open_device::OpenDevice;
use crate::{Access, ErrorKind, Graph, Queue, Result, Tensor};

impl Queue {
    /// Instantiates a graph on this queue's device.
    ///
    /// # Errors
    /// `InvalidArgument` for a graph recorded on another device; any error of the device.
    pub fn instantiate(&self, graph: &Graph) -> Result<ExecutableGraph> {
        check_recorded_on(graph, &self.device).map_err(|error| self.annotate(error, "instantiate"))?;
        let nodes = graph.nodes.list.clone();
        // Drivers reject graphs without nodes.
        let native = match self.device.info.capabilities.has(abi::CAP_GRAPHS) && !nodes.is_empty() {
            true => match NativeGraph::build(&self.device, &nodes) {
                // Some devices support only some kinds of nodes.
                Err(error) if error.kind() == ErrorKind::Unsupported => None,
                built => Some(built?),
            },
            false => None,
        };
        let device = self.device.clone();
        let mut executable =
            ExecutableGraph { nodes, device, native, buffer_uses: Vec::new(), last_replay: Mutex::default() };
        executable.buffer_uses =
            buffer_uses(&executable.nodes).map_err(|error| self.annotate(error, "instantiate"))?;
        Ok(executable)
    }
}

/// An instantiated graph, ready for replay. It never overlaps itself: a replay waits for the previous one, even on another
/// queue.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null:1")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let x = device.tensor([1], &[1.0f32])?;
/// # let queue = device.queue()?;
/// let graph = queue.record(|recorder| recorder.launch(&scale, (1, 1), (read_write(&x), 2.0f32)))?;
/// let mut step = queue.instantiate(&graph)?;
/// assert!(step.is_native());
/// for factor in [3.0f32, 5.0] {
///     step.update(0, (read_write(&x), factor))?; // node 0 with another scalar, from the next replay on
///     queue.replay(&step)?;
/// }
/// queue.wait_idle()?;
/// assert_eq!(x.to_vec::<f32>()?, [15.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ExecutableGraph {
    pub(super) nodes: Vec<Node>,
    pub(super) device: Arc<OpenDevice>,
    pub(super) native: Option<NativeGraph>,
    /// The accesses of a replay: one entry per buffer, represented by one of its tensors.
    pub(super) buffer_uses: Vec<(Tensor, Access)>,
    /// Locked until a replay is submitted, so that replays on several queues neither mix their nodes nor reach the
    /// driver concurrently, which drivers forbid.
    pub(super) last_replay: Mutex<Option<LastReplay>>,
}

/// Where the latest replay of a graph ends.
#[derive(Debug)]
pub(super) struct LastReplay {
    /// Its queue, which closes only when its work has ended.
    pub(super) timeline: Weak<Timeline>,
    pub(super) ticket: u64,
}

impl ExecutableGraph {
    /// Whether the device runs the graph as one submission; otherwise a replay submits every node again.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.native.is_some()
    }
}

/// Every buffer used by the nodes, with the union of their accesses.
pub(super) fn buffer_uses(nodes: &[Node]) -> Result<Vec<(Tensor, Access)>> {
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
