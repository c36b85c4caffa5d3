//! Kernel fusion: launches on a virtual queue become fewer kernels.
//!
//! A [`Fuser`] has a virtual queue, which lists launches. It asks the lowering of their code for a plan
//! ([`Lowering::fuse`](crate::lowering::Lowering::fuse)), loads the fused code, and submits it instead of them. Anything
//! that needs the launches before that has them submitted as they are.

mod completion;
mod fusible_run;
mod graphs;
mod list_graphs;
mod obstacles;
pub(crate) mod options;
mod plan;
mod plan_cache;
mod recently_used;
pub(crate) mod report;
mod shape;
mod stored_plan;

pub use options::FusionOptions;
pub use report::{FusionDetails, FusionReport, ReportedKernel};

use std::fmt;
use std::sync::Arc;

use crate::fusion::completion::Completer;
use crate::fusion::plan_cache::QueueCache;
use crate::timeline::event::Event;
use crate::timeline::virtual_queue::Cause;
use crate::{Error, Queue, Result};

/// Lists launches and submits them as fewer kernels: made by [`Queue::fuser`].
///
/// [`Fuser::queue`] is a queue like any other, for code that knows nothing of fusion. Its launches are checked and get tickets and
/// events at once, but reach the device only by [`Fuser::complete`], fused where that is proven to give the same results, and
/// otherwise as they are.
///
/// **Nothing waits for a list.** Whatever needs its launches earlier *cancels* it: they are submitted as they are, in order, with
/// a warning in the log. It is cancelled when one of its events is waited for, polled, awaited or asked for its status; when the
/// queue is waited for, flushed or dropped; when the program reads or maps a tensor that it writes; and when work elsewhere
/// conflicts with it or depends on it. Launches after that make a new list. Transfers and other work on the virtual queue go to the
/// real one at once; if they conflict with the list, or if no tensor orders them (no-ops, timestamps), they cancel it first.
/// Dropping the fuser cancels, so an error or a panic before the completion loses nothing.
///
/// **Promotion.** Tensors that the program has dropped when the list is completed are not written where fused code can keep their
/// elements in registers or work-group memory. [`FusionOptions::promote`] claims the same for tensors that it keeps.
///
/// Several threads may use the queue. Fusers of several threads do not disturb each other, unless their launches conflict. Freeze
/// what many of them read ([`Tensor::freeze`](crate::Tensor::freeze)): their launches then do not lock it.
///
/// ```
/// # use runtime_core::fusion::FusionOptions;
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let x = device.tensor([1], &[1.0f32])?;
/// let queue = device.queue()?;
/// let fuser = queue.fuser(&FusionOptions::default())?;
/// fuser.queue().launch(&scale, (1, 1), (read_write(&x), 2.0f32))?; // any code that takes a `&Queue`
/// fuser.queue().launch(&scale, (1, 1), (read_write(&x), 3.0f32))?;
/// let (event, report) = fuser.complete()?;
/// event.wait()?;
/// assert_eq!(report.kernels.len(), 2); // native code cannot be fused; `report` says so
/// assert_eq!(x.to_vec::<f32>()?, [6.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
pub struct Fuser {
    queue: Queue,
    completer: Arc<Completer>,
}

impl Queue {
    /// Makes a fuser, whose launches go to this queue. The queue itself is not affected, and may be used meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument` for the queue of a fuser, and for contradicting or impossible promotions; the failure of the queue.
    pub fn fuser(&self, options: &FusionOptions) -> Result<Fuser> {
        self.open_fuser(options).map_err(|error| self.annotate(error, "fuser"))
    }

    fn open_fuser(&self, options: &FusionOptions) -> Result<Fuser> {
        self.device.check()?;
        self.check_not_recording("fuser")?;
        self.timeline.check_healthy()?;
        if self.real_queue().is_some() {
            return Err(Error::invalid("this is the queue of a fuser already, and fusers do not nest"));
        }
        let completer = Arc::new(Completer::new(options.checked(&self.device)?, QueueCache::of(self)));
        Ok(Fuser { queue: self.open_virtual(completer.clone()), completer })
    }
}

impl Fuser {
    /// The virtual queue, whose launches are listed.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The number of launches that are listed now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.collector().map_or(0, |collector| collector.list.len())
    }

    /// Whether no launches are listed now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Submits the listed launches, fused as far as possible. Returns the event of the last one, and what became of them.
    ///
    /// If several kernels are left, and the queue has completed the same ones before, they are submitted at once, as an executable graph,
    /// where the device has native graphs. Their events then complete together.
    ///
    /// If the analysis, the compiler or the device fails, the launches are submitted as they are, with a warning in the log. After a
    /// cancellation, the event is that of the last launch, and the report says what was cancelled and why. Without any launch, the
    /// event is complete.
    ///
    /// # Errors
    /// `Unsupported` or the error of the lowering, the compiler or the device, only with [`FusionOptions::require`]: the launches
    /// do not become one kernel. Nothing was submitted when that is found, but an error loses nothing: since this consumes the
    /// fuser, they are then cancelled, so that they run as they are.
    pub fn complete(self) -> Result<(Event, FusionReport)> {
        self.completer.complete(&self.queue)
    }

    /// Cancels the list: submits the launches as they are. Later ones make a new list. Does nothing if nothing is listed.
    ///
    /// # Errors
    /// The failure of the queue.
    pub fn cancel(&self) -> Result<()> {
        self.queue.device.check()?;
        self.queue.cancel_list(Cause::Cancelled);
        self.queue.timeline.check_healthy().map_err(|error| self.queue.annotate(error, "cancel"))
    }
}

impl fmt::Debug for Fuser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fuser({} launches on {})", self.len(), self.queue.device.name)
    }
}
