//! Submissions whose times are recorded.

use std::sync::Arc;
use std::time::Instant;

use crate::timeline::event::Event;
use crate::timeline::event::times::Stamps;
use crate::{Error, Queue, Result};

impl Queue {
    /// Submits work between two timestamps, so that its event knows when the work started and ended ([`Event::times`]). The
    /// timestamps are submissions of their own: work that is not timed costs nothing more. Whatever else is submitted to the
    /// queue meanwhile, also by other threads, is included, and so is the time that the work waits for other queues; to exclude it,
    /// wait for them first.
    ///
    /// ```
    /// # use runtime_core::{ModuleSource, QueueOptions, Runtime};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let spin = device.kernel(&unsafe { ModuleSource::native("null", "spin") }, "spin")?;
    /// let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
    /// let event = queue.timed(|queue| queue.launch(&spin, (1, 1), (2000i64,)))?; // takes 2 ms
    /// event.wait()?;
    /// let times = event.times()?;
    /// assert!(times.end_ns - times.start_ns >= 2_000_000);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` if the device has no clock, or the queue was opened without `timestamps`; `InvalidArgument` if the closure
    /// returns an event of another queue; the error of the closure.
    pub fn timed(&self, submit: impl FnOnce(&Self) -> Result<Event>) -> Result<Event> {
        let submitted = Instant::now();
        let start = self.timestamp().map_err(|error| self.annotate(error, "timed"))?;
        let event = submit(self)?;
        if !event.timeline().is_some_and(|timeline| Arc::ptr_eq(timeline, &self.timeline)) {
            let error = Error::invalid("the closure must return an event of the queue that it is given");
            return Err(self.annotate(error, "timed"));
        }
        let end = self.timestamp().map_err(|error| self.annotate(error, "timed"))?;
        Ok(event.with_stamps(Stamps::new(submitted, start.ticket(), end.ticket())))
    }
}
