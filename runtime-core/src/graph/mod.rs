//! Graphs: work recorded once, instantiated once, and replayed many times.
//!
//! A [`Recorder`] records launches and derives the dependencies between them, without
//! tickets. On a device with native graphs, instantiation builds one from explicit nodes. Elsewhere a replay
//! submits every node again, and [`ExecutableGraph::is_native`](crate::ExecutableGraph::is_native) is
//! false.

pub(crate) mod executable;
mod explicit;
pub(crate) mod native;
pub(crate) mod node;
mod operation;
mod rebind;
pub(crate) mod recorder;
mod recording_queue;
mod replay;
mod update;

pub use recorder::{Recorder, Recording};

use std::sync::Arc;

use crate::graph::node::NodeList;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, Result};

/// Recorded work, not yet executable. Keeps the tensors and kernels it uses alive.
///
/// A node depends on the earlier ones that use its tensors, as submissions to a queue do, and on those that it is
/// given explicitly ([`Graph::add_launch`]). So edges can only add order, and a node can only depend on earlier
/// ones: a graph has no races and no cycles.
///
/// A graph orders nothing outside itself. To run it after other work, make the queue wait for the events
/// ([`Queue::wait_for`](crate::Queue::wait_for)) before the replay. Host tasks and events are not nodes.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime, read, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let module = device.load(&unsafe { ModuleSource::native("null", "scale_f32\nsaxpy_f32") })?;
/// # let (scale, saxpy) = (module.kernel("scale_f32")?, module.kernel("saxpy_f32")?);
/// # let x = device.tensor([1], &[1.0f32])?;
/// # let y = device.tensor([1], &[0.0f32])?;
/// # let queue = device.queue()?;
/// let graph = queue.record(|recorder| {
///     recorder.launch(&scale, (1, 1), (read_write(&x), 2.0f32))?; // x = 2 x
///     recorder.launch(&saxpy, (1, 1), (read(&x), read_write(&y), 2.0f32)) // y = 2 x + y
/// })?;
/// assert_eq!(graph.dependencies(1), Some(&[0][..]));
///
/// let mut work = queue.instantiate(&graph)?;
/// queue.replay(&work)?.wait()?;
/// assert_eq!(y.to_vec::<f32>()?, [4.0]);
/// work.update(1, (read(&x), read_write(&y), 10.0f32))?;
/// queue.replay(&work)?.wait()?;
/// assert_eq!(y.to_vec::<f32>()?, [44.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Graph {
    pub(crate) nodes: NodeList,
    pub(crate) device: Arc<OpenDevice>,
}

impl Graph {
    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.list.len()
    }

    /// Whether the graph has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.list.is_empty()
    }

    /// The earlier nodes that node `index` depends on, in ascending order; `None` if there is no such node.
    #[must_use]
    pub fn dependencies(&self, index: usize) -> Option<&[u32]> {
        self.nodes.list.get(index).map(|node| node.dependencies.as_slice())
    }
}

/// Refuses a graph of another opened device.
fn check_recorded_on(graph: &Graph, device: &Arc<OpenDevice>) -> Result<()> {
    if Arc::ptr_eq(&graph.device, device) {
        return Ok(());
    }
    Err(Error::invalid(format!("the graph was recorded on {}", graph.device.name)))
}
