//! Graphs: work recorded once, instantiated once, and replayed many times.
//!
//! A [`Recorder`](recorder::Recorder) records launches and derives the dependencies between them, without
//! tickets. On a device with native graphs, instantiation builds one from explicit nodes. Elsewhere a replay
//! submits every node again, and [`ExecutableGraph::is_native`](executable::ExecutableGraph::is_native) is
//! false.

pub(crate) mod executable;
mod node;
pub(crate) mod recorder;

use std::sync::Arc;

use crate::graph::node::Node;
use crate::timeline::open_device::OpenDevice;

/// Recorded work, not yet executable. Keeps the tensors and kernels it uses alive.
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
    nodes: Vec<Node>,
    device: Arc<OpenDevice>,
}

impl Graph {
    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the graph has no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The earlier nodes that node `index` depends on, in ascending order; `None` if there is no such node.
    #[must_use]
    pub fn dependencies(&self, index: usize) -> Option<&[u32]> {
        self.nodes.get(index).map(|node| node.dependencies.as_slice())
    }
}
