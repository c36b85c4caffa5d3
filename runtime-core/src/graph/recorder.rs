//! Records work into a graph instead of submitting it.

use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::code::argument_tuples::Arguments;
use crate::graph::node::Operation;
use crate::graph::recording_queue::RecordingQueue;
use crate::{Graph, Kernel, LaunchConfig, Queue, Result, Tensor};

/// Records the nodes of a graph; see [`Queue::recording`] and [`Queue::record`].
///
/// Every method returns the index of the new node, which
/// [`ExecutableGraph::update`](crate::ExecutableGraph::update) takes. It is no [`Event`](crate::Event): recorded
/// work has not been submitted, so nothing can wait for it; wait for the event of a replay. A refused node is not
/// recorded and has no effect.
#[derive(Debug)]
pub struct Recorder(Arc<RecordingQueue>);

impl Recorder {
    /// Records a launch. Copies the arguments, and keeps the kernel and the tensors alive.
    ///
    /// # Errors
    /// `InvalidArgument` as for [`Queue::launch`], and for a geometry of 0 work-groups; `Unsupported` for a
    /// kernel loaded with `assert_proofs`.
    pub fn launch<'a>(
        &self,
        kernel: &Kernel,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<'a>,
    ) -> Result<usize> {
        let config = config.into();
        args.with(Some(kernel), |args| {
            self.0.add("launch", |device| Operation::launch(device, kernel, &config, args))
        })
    }

    /// Records a copy between contiguous tensors of this device that do not overlap.
    ///
    /// # Errors
    /// `InvalidArgument` as for [`Queue::copy`]; `Unsupported` for tensors that have gaps or overlap.
    pub fn copy(&self, destination: &Tensor, source: &Tensor) -> Result<usize> {
        self.0.add("copy", |device| Operation::copy(device, destination, source))
    }

    /// Records a fill of a contiguous tensor with a repeated pattern of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Errors
    /// As [`Queue::fill`].
    pub fn fill(&self, tensor: &Tensor, pattern: &[u8]) -> Result<usize> {
        self.0.add("fill", |device| Operation::fill(device, tensor, pattern))
    }

    /// Records the nodes of another graph, ordered with those recorded so far by the tensors they share. Returns
    /// their indices.
    ///
    /// # Errors
    /// `InvalidArgument` for a graph of another device, or one that writes a tensor that was frozen meanwhile.
    pub fn add_graph(&self, graph: &Graph) -> Result<Range<usize>> {
        self.0.add_graph(graph)
    }
}

/// A recording in progress, from [`Queue::recording`]. It is used as a [`Recorder`], and discarded when dropped.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let x = device.tensor([1], &[1.0f32])?;
/// # let queue = device.queue()?;
/// let recording = queue.recording()?;
/// for _ in 0..3 {
///     recording.launch(&scale, (1, 1), (read_write(&x), 2.0f32))?; // an error would discard the recording
/// }
/// let graph = recording.finish();
/// queue.replay(&queue.instantiate(&graph)?)?.wait()?;
/// assert_eq!(x.to_vec::<f32>()?, [8.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a recording that is dropped records nothing"]
pub struct Recording {
    recorder: Recorder,
    queue: Queue,
}

impl Recording {
    /// A queue whose launches, copies, fills and uploads are recorded, for code that takes a `&Queue` and knows nothing of graphs:
    /// of a library, or of a [`Dispatcher`](crate::dispatch::Dispatcher), whose overloads are then fixed when they are recorded.
    /// An upload takes its data now.
    ///
    /// Events of this queue are points in the recording: it can wait for them ([`Queue::wait_for`]), which orders nodes that share no
    /// tensor, and nothing else can. What cannot be recorded says so with its name: waiting, reading, timestamps, host tasks, native
    /// work, replays (see [`Recorder::add_graph`]), fusers (see [`Graph::fuse`]).
    ///
    /// ```
    /// # use runtime_core::{Event, Kernel, ModuleSource, Queue, Result, Runtime, Tensor, read_write};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
    /// fn double_twice(queue: &Queue, scale: &Kernel, x: &Tensor) -> Result<Event> {
    ///     queue.launch(scale, (1, 1), (read_write(x), 2.0f32))?;
    ///     queue.launch(scale, (1, 1), (read_write(x), 2.0f32))
    /// }
    /// let (queue, x) = (device.queue()?, device.tensor([1], &[1.0f32])?);
    /// let recording = queue.recording()?;
    /// double_twice(recording.queue(), &scale, &x)?;
    /// let work = queue.instantiate(&recording.finish())?;
    /// queue.replay(&work)?;
    /// queue.replay(&work)?.wait()?;
    /// assert_eq!(x.to_vec::<f32>()?, [16.0]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    #[must_use]
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Ends the recording. More nodes can be added to the graph.
    pub fn finish(self) -> Graph {
        self.recorder.0.take()
    }
}

impl Deref for Recording {
    type Target = Recorder;

    fn deref(&self) -> &Recorder {
        &self.recorder
    }
}

impl Queue {
    /// Begins to record a graph: work that is passed to the [`Recording`] is recorded, not run. The queue itself is
    /// not affected, may be used meanwhile, and may have several recordings.
    ///
    /// # Errors
    /// `DeviceLost`; `Cancelled` for a device that is closed.
    pub fn recording(&self) -> Result<Recording> {
        self.device.check().map_err(|error| self.annotate(error, "recording"))?;
        let record = Arc::new(RecordingQueue::new(Graph::new(self)));
        Ok(Recording { queue: self.open_recording(record.clone()), recorder: Recorder(record) })
    }

    /// Records a graph by a closure: work that `work` passes to the [`Recorder`] is recorded, not run. Otherwise as
    /// [`Queue::recording`].
    ///
    /// ```
    /// # use runtime_core::{ModuleSource, Runtime, read_write};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
    /// # let x = device.tensor([1], &[1.0f32])?;
    /// # let queue = device.queue()?;
    /// let graph = queue.record(|recorder| recorder.launch(&scale, (1, 1), (read_write(&x), 2.0f32)))?;
    /// queue.replay(&queue.instantiate(&graph)?)?.wait()?;
    /// assert_eq!(x.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Queue::recording`]; any error of `work`. The recording is then discarded.
    pub fn record<T>(&self, work: impl FnOnce(&Recorder) -> Result<T>) -> Result<Graph> {
        let recording = self.recording()?;
        work(&recording)?;
        Ok(recording.finish())
    }
}
