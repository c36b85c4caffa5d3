//! Events: points on a queue's timeline.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::timeline::Timeline;
use crate::{Error, Result};

/// A point on a queue's timeline: `(queue, ticket)`. Wait on it, poll it, `.await` it, or depend on it.
///
/// Making one costs no driver call. An event that is still held when the next submission arrives is marked first, so
/// that waiting for it never waits for later work: `let event = queue.launch(…)?` keeps it, `queue.launch(…)?;` drops
/// it at once. Dropping an event or its future cancels nothing. An event does not keep its device open.
///
/// ```
/// # use std::time::Duration;
/// # use runtime_core::{Arg, ErrorKind, Geometry, ModuleSource, QueueOptions, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let spin = device.load(&unsafe { ModuleSource::native("null", "spin") })?.kernel("spin")?;
/// # let queue = device.open_queue(&QueueOptions::default())?;
/// # let plain = Geometry::single();
/// let mut event = queue.launch(&spin, &plain, &[Arg::scalar(300_000i64)])?; // takes 300 ms
/// assert!(!event.is_done()?);
/// assert_eq!(event.wait_timeout(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::Timeout);
///
/// # let tokio = tokio::runtime::Builder::new_current_thread().build()?;
/// # tokio.block_on(async {
/// (&mut event).await?; // or `event.await`; a timeout has cancelled nothing
/// # Ok::<(), runtime_core::Error>(()) })?;
/// event.wait()?; // it has ended, so this returns at once
/// # Ok::<(), runtime_core::Error>(())
/// ```
pub struct Event {
    timeline: Arc<Timeline>,
    /// 0: there was nothing to wait for.
    ticket: u64,
    /// Its place among those that the waiter wakes; 0: it was never awaited.
    registration: u64,
}

/// The ticket of what was recorded into a graph, not submitted.
const RECORDED: u64 = u64::MAX;

impl Event {
    #[inline]
    pub(crate) fn new(timeline: &Arc<Timeline>, ticket: u64) -> Self {
        Self { timeline: timeline.clone(), ticket, registration: 0 }
    }

    /// The event of something that was recorded, not run.
    pub(crate) fn recorded(timeline: &Arc<Timeline>) -> Self {
        Self::new(timeline, RECORDED)
    }

    /// Its ticket: its place among the submissions of its queue, which are counted from 1; 0 if there was nothing to
    /// wait for. What was recorded into a graph has none, and answers `u64::MAX`.
    #[must_use]
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Nobody awaits it any more.
    #[cold]
    fn forget(&self) {
        if let Some(device) = self.timeline.device.upgrade()
            && !device.must_leak()
        {
            device.waiter.forget(self.registration);
        }
    }

    pub(crate) fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    pub(crate) fn check_submitted(&self) -> Result<()> {
        if self.ticket == RECORDED {
            return Err(Error::invalid(
                "this event was recorded into a graph: wait on the event of its replay",
            )
            .in_operation("wait"));
        }
        Ok(())
    }

    /// Blocks until the work has ended.
    ///
    /// # Errors
    /// The failure of the work, or of work that it depends on; `DeviceLost`.
    pub fn wait(&self) -> Result<()> {
        self.check_submitted()?;
        self.timeline.wait(self.ticket, None)
    }

    /// Blocks until the work has ended, or for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`, which cancels and poisons nothing; else as [`Event::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        self.check_submitted()?;
        self.timeline.wait(self.ticket, Instant::now().checked_add(timeout))
    }

    /// Whether the work has ended. Never blocks.
    ///
    /// # Errors
    /// As [`Event::wait`].
    pub fn is_done(&self) -> Result<bool> {
        self.check_submitted()?;
        self.timeline.poll_ticket(self.ticket)?.map_or(Ok(false), |result| result.map(|()| true))
    }
}

impl Clone for Event {
    /// A clone outlives its original unseen by the queue, so the point is marked now.
    fn clone(&self) -> Self {
        if self.ticket != RECORDED
            && self.timeline.status(self.ticket).is_none()
            && let Some(open) = self.timeline.device.upgrade()
            && open.check().is_ok()
        {
            // A mark that failed is tried again by whoever waits.
            let _ = self.timeline.signal_and_flush(self.ticket);
        }
        Self::new(&self.timeline, self.ticket)
    }
}

impl Drop for Event {
    #[inline]
    fn drop(&mut self) {
        self.timeline.event_dropped(self.ticket);
        if self.registration != 0 {
            self.forget();
        }
    }
}

impl Future for Event {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.is_done() {
            Ok(true) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
            Ok(false) => {
                let Some(device) = self.timeline.device.upgrade() else { return Poll::Ready(self.wait()) };
                let Self { timeline, ticket, registration } = self.get_mut();
                match device.waiter.register(&device, (timeline, *ticket), registration, context.waker()) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            }
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Event(ticket {} of queue {} on {})",
            self.ticket,
            self.timeline.id,
            self.timeline.device_name()
        )
    }
}
