//! Records work into a graph instead of running it.

use std::cell::RefCell;
use std::sync::Arc;

use crate::graph::node::{Nodes, OwnedArg, Work};
use crate::queue::copy::{check_copy, check_fill, check_placed_on, overlap};
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, Arguments, Error, Geometry, Graph, Kernel, Queue, Result, Tensor};

/// Takes the work of a graph that is being made: see [`Queue::record`].
///
/// Every method returns the index of its node, by which [`ExecutableGraph::update`](crate::ExecutableGraph::update) finds
/// it again. A node that is refused is not recorded, and changes nothing.
#[derive(Debug)]
pub struct Recorder {
    device: Arc<OpenDevice>,
    nodes: RefCell<Nodes>,
}

impl Recorder {
    /// Records a launch. The arguments are copied, and their tensors and the kernel kept.
    ///
    /// # Errors
    /// `InvalidArgument` as [`Queue::launch`], and for a geometry without work-groups; `Unsupported` for a kernel that was
    /// loaded with `assert_proofs`.
    pub fn launch<'a>(
        &self,
        kernel: &Kernel,
        geometry: impl Into<Geometry>,
        args: impl Arguments<'a>,
    ) -> Result<usize> {
        let geometry = geometry.into();
        args.with(kernel, |args| self.record_launch(kernel, &geometry, args))
    }

    fn record_launch(&self, kernel: &Kernel, geometry: &Geometry, args: &[Arg<'_>]) -> Result<usize> {
        let check = || {
            kernel.check_launch(&self.device, geometry, args)?;
            kernel.check_args(&self.device, args)?;
            if kernel.reporting().is_some() {
                return Err(Error::unsupported("a kernel with assert_proofs cannot be recorded: launch it"));
            }
            if geometry.is_empty() {
                // Graphs of drivers have no node for it.
                return Err(Error::invalid("a launch of 0 groups cannot be recorded; leave it out"));
            }
            let args = args.iter().map(OwnedArg::new).collect();
            self.push(Work::Launch { kernel: kernel.clone(), geometry: *geometry, args })
        };
        check().map_err(|error| self.annotate(error, "launch"))
    }

    /// Records a copy between contiguous tensors of this device that do not overlap.
    ///
    /// # Errors
    /// `InvalidArgument` as [`Queue::copy`]; `Unsupported` for tensors with gaps, or that overlap.
    pub fn copy(&self, destination: &Tensor, source: &Tensor) -> Result<usize> {
        let check = || {
            check_copy(destination, source)?;
            check_placed_on(&self.device, destination)
                .and_then(|()| check_placed_on(&self.device, source))?;
            // A node copies bytes as they lie.
            if !destination.is_contiguous() || !source.is_contiguous() {
                return Err(Error::unsupported(
                    "a copy of a tensor with gaps cannot be recorded: use Queue::copy",
                ));
            }
            if Arc::ptr_eq(destination.buffer("copy")?, source.buffer("copy")?)
                && overlap(destination, source)
            {
                return Err(Error::unsupported(
                    "a copy between tensors that overlap cannot be recorded: use Queue::copy",
                ));
            }
            self.push(Work::Copy { destination: destination.clone(), source: source.clone() })
        };
        check().map_err(|error| self.annotate(error, "copy"))
    }

    /// Records a fill of a contiguous tensor with a repeated pattern of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Errors
    /// As [`Queue::fill`].
    pub fn fill(&self, tensor: &Tensor, pattern: &[u8]) -> Result<usize> {
        let check = || {
            check_placed_on(&self.device, tensor)?;
            check_fill(tensor, pattern)?;
            self.push(Work::Fill { tensor: tensor.clone(), pattern: pattern.to_vec() })
        };
        check().map_err(|error| self.annotate(error, "fill"))
    }

    fn push(&self, work: Work) -> Result<usize> {
        self.nodes.borrow_mut().push(work).map(|index| index as usize)
    }

    fn annotate(&self, error: Error, operation: &str) -> Error {
        error.in_operation(operation).on_device(&self.device.name)
    }
}

impl Queue {
    /// Records a graph: what `work` gives to the [`Recorder`] is noted, not run. The queue goes on as before meanwhile.
    ///
    /// ```
    /// # use runtime_core::{Arg, Geometry, ModuleSource, QueueOptions, Runtime, Tensor};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let scale = device.load(&unsafe { ModuleSource::native("null", "scale_f32") })?.kernel("scale_f32")?;
    /// # let x = device.tensor(&[1], &[1.0f32])?;
    /// # let queue = device.open_queue(&QueueOptions::default())?;
    /// let args = [Arg::read_write(&x), Arg::scalar(2.0f32)];
    /// let graph = queue.record(|recorder| recorder.launch(&scale, &Geometry::single(), &args))?;
    /// queue.replay(&queue.instantiate(&graph)?)?.wait()?;
    /// assert_eq!(x.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Whatever `work` returns; nothing is left of the recording then.
    pub fn record<T>(&self, work: impl FnOnce(&Recorder) -> Result<T>) -> Result<Graph> {
        let recorder = Recorder { device: self.device.clone(), nodes: RefCell::default() };
        work(&recorder)?;
        Ok(Graph { nodes: recorder.nodes.into_inner().list, device: recorder.device })
    }
}
