//! Held queues, so that short kernels run without gaps between their submissions.

use super::Queue;
use crate::Result;

/// A queue that is held: its work waits until this is resumed or dropped. Made by [`Queue::hold`].
#[derive(Debug)]
#[must_use = "dropping it resumes the queue"]
pub struct HeldQueue<'q>(&'q Queue);

impl Queue {
    /// Holds the queue: kernels, no-ops and timestamps submitted from now on do not start until it is resumed. They then
    /// follow each other without the gaps of their submission, which matters if they are shorter than that takes. Earlier
    /// work is not affected.
    ///
    /// The hold ends early if anybody waits for the queue or awaits one of its events, another queue uses its results, or the
    /// driver cannot hold a submission, for example a copy from the program's memory. Polling an event does not end it. Submit
    /// at most 256 launches to a held queue: drivers have room for a limited number.
    ///
    /// ```
    /// # use runtime_core::{ModuleSource, Runtime};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let noop = device.kernel(&unsafe { ModuleSource::native("null", "noop") }, "noop")?;
    /// let queue = device.queue()?;
    /// let held = queue.hold()?;
    /// let event = queue.launch(&noop, (1, 1), ())?;
    /// assert!(!event.is_done()?);
    /// assert!(held.resume()?, "nothing ended the hold early");
    /// event.wait()?;
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` without the capability `hold`; `InvalidArgument` if the queue is already held; its failure; any error of
    /// the driver.
    pub fn hold(&self) -> Result<HeldQueue<'_>> {
        self.device.check()?;
        self.check_not_recording("hold")?;
        if let Some(real) = self.in_order() {
            return real.hold();
        }
        self.timeline.hold().map_err(|error| self.annotate(error, "hold"))?;
        Ok(HeldQueue(self))
    }
}

impl HeldQueue<'_> {
    /// Lets the work start. Returns whether it was held until now.
    ///
    /// # Errors
    /// Any error of the driver.
    pub fn resume(self) -> Result<bool> {
        self.0.device.check()?;
        self.0.timeline.resume().map_err(|error| self.0.annotate(error, "resume"))
    }
}

impl Drop for HeldQueue<'_> {
    fn drop(&mut self) {
        // A drop cannot return the error; whoever waits for the queue tries again and returns it.
        if !self.0.device.must_leak() {
            let _ = self.0.timeline.resume();
        }
    }
}
