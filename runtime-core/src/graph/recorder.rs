//! Records work into a graph instead of submitting it.

use std::cell::RefCell;
use std::sync::Arc;

use crate::code::owned_arg::OwnedArg;
use crate::graph::node::{NodeList, Operation};
use crate::queue::copy::{check_copy, check_fill, check_placed_on, overlap};
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, Arguments, Error, Graph, Kernel, LaunchConfig, Queue, Result, Tensor};

/// Records the nodes of a graph; see [`Queue::record`].
///
/// Every method returns the index of the new node, which
/// [`ExecutableGraph::update`](crate::ExecutableGraph::update) takes. A refused node is not recorded and has no
/// effect.
#[derive(Debug)]
pub struct Recorder {
    device: Arc<OpenDevice>,
    nodes: RefCell<NodeList>,
}

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
        args.with(Some(kernel), |args| self.record_launch(kernel, &config, args))
    }

    fn record_launch(&self, kernel: &Kernel, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<usize> {
        let check = || {
            kernel.check_launch(&self.device, config, args)?;
            kernel.check_args(&self.device, args)?;
            if kernel.reporting().is_some() {
                return Err(Error::unsupported("a kernel with assert_proofs cannot be recorded: launch it"));
            }
            if config.is_empty() {
                // Native graphs have no node for it.
                return Err(Error::invalid("a launch of 0 groups cannot be recorded; leave it out"));
            }
            let args = args.iter().map(OwnedArg::new).collect();
            self.push(Operation::Launch { kernel: kernel.clone(), config: *config, args })
        };
        check().map_err(|error| self.annotate(error, "launch"))
    }

    /// Records a copy between contiguous tensors of this device that do not overlap.
    ///
    /// # Errors
    /// `InvalidArgument` as for [`Queue::copy`]; `Unsupported` for tensors that have gaps or overlap.
    pub fn copy(&self, destination: &Tensor, source: &Tensor) -> Result<usize> {
        let check = || {
            check_copy(destination, source)?;
            check_placed_on(&self.device, destination)
                .and_then(|()| check_placed_on(&self.device, source))?;
            // A copy node copies one range of bytes.
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
            self.push(Operation::Copy { destination: destination.clone(), source: source.clone() })
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
            self.push(Operation::Fill { tensor: tensor.clone(), pattern: pattern.to_vec() })
        };
        check().map_err(|error| self.annotate(error, "fill"))
    }

    fn push(&self, operation: Operation) -> Result<usize> {
        self.nodes.borrow_mut().push(operation).map(|index| index as usize)
    }

    fn annotate(&self, error: Error, operation: &str) -> Error {
        error.in_operation(operation).on_device(&self.device.name)
    }
}

impl Queue {
    /// Records a graph: work that `work` passes to the [`Recorder`] is recorded, not run. The queue itself is
    /// not affected, and may be used meanwhile.
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
    /// Any error of `work`; the recording is then discarded.
    pub fn record<T>(&self, work: impl FnOnce(&Recorder) -> Result<T>) -> Result<Graph> {
        let recorder = Recorder { device: self.device.clone(), nodes: RefCell::default() };
        work(&recorder)?;
        Ok(Graph { nodes: recorder.nodes.into_inner().list, device: recorder.device })
    }
}
