//! Events: points on a queue's timeline.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::Result;
use crate::timeline::Timeline;

/// A point on a queue's timeline: `(queue, ticket)`. Wait on it, poll it, `.await` it, or depend on it.
///
/// Creating one makes no driver call. If it is still held when the next submission arrives, it is signaled first, so that
/// a wait for it never waits for later work: `let event = queue.launch(…)?` keeps it, `queue.launch(…)?;` drops it at
/// once. Dropping an event or its future cancels nothing. An event does not keep its device open.
///
/// ```
/// # use std::time::Duration;
/// # use runtime_core::{ErrorKind, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let spin = device.kernel(&unsafe { ModuleSource::native("null", "spin") }, "spin")?;
/// # let queue = device.queue()?;
/// let event = queue.launch(&spin, (1, 1), (300_000i64,))?; // takes 300 ms
/// assert!(!event.is_done()?);
/// assert_eq!(event.wait_timeout(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::Timeout);
///
/// # let tokio = tokio::runtime::Builder::new_current_thread().build()?;
/// # tokio.block_on(async {
/// (&event).await?; // or `event.await`; a timeout has cancelled nothing
/// # Ok::<(), runtime_core::Error>(()) })?;
/// event.wait()?; // it has ended, so this returns at once
/// # Ok::<(), runtime_core::Error>(())
/// ```
pub struct Event {
    timeline: Arc<Timeline>,
    /// 0 if there is nothing to wait for.
    ticket: u64,
    /// Its registration with the wait thread; 0: it was never awaited.
    registration: u64,
    /// Whether there is, or was, another event of this ticket.
    is_cloned: AtomicBool,
}

impl Event {
    #[inline]
    pub(crate) fn new(timeline: &Arc<Timeline>, ticket: u64) -> Self {
        Self { timeline: timeline.clone(), ticket, registration: 0, is_cloned: AtomicBool::new(false) }
    }

    /// The ticket: the number of the submission in its queue, starting at 1; 0 if there was nothing to wait for.
    #[must_use]
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Removes it from the wait thread.
    #[cold]
    fn forget(&self) {
        if let Some(device) = self.timeline.device.upgrade() {
            device.forget_waker(self.registration);
        }
    }

    pub(crate) fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Blocks until the work has ended.
    ///
    /// # Errors
    /// The failure of the work, or of work that it depends on; `DeviceLost`.
    pub fn wait(&self) -> Result<()> {
        self.timeline.wait(self.ticket, None)
    }

    /// Blocks until the work has ended, or for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`, which cancels nothing; otherwise as [`Event::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        self.timeline.wait(self.ticket, Instant::now().checked_add(timeout))
    }

    /// Whether the work has ended. Never blocks.
    ///
    /// # Errors
    /// As [`Event::wait`].
    pub fn is_done(&self) -> Result<bool> {
        self.timeline.poll_ticket(self.ticket)?.map_or(Ok(false), |result| result.map(|()| true))
    }
}

impl Clone for Event {
    /// Makes no driver call. The queue does not count clones, so from now on the event counts as held.
    fn clone(&self) -> Self {
        self.is_cloned.store(true, Ordering::Relaxed);
        let (timeline, ticket) = (self.timeline.clone(), self.ticket);
        Self { timeline, ticket, registration: 0, is_cloned: AtomicBool::new(true) }
    }
}

impl Drop for Event {
    #[inline]
    fn drop(&mut self) {
        if !*self.is_cloned.get_mut() {
            self.timeline.event_dropped(self.ticket);
        }
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
                if let Err(error) = self.timeline.resume() {
                    return Poll::Ready(Err(error));
                }
                let Self { timeline, ticket, registration, .. } = self.get_mut();
                match device.register_waker((timeline, *ticket), registration, context.waker()) {
                    Ok(()) => Poll::Pending,
                    Err(error) => Poll::Ready(Err(error)),
                }
            }
        }
    }
}

impl IntoFuture for &Event {
    type Output = Result<()>;
    type IntoFuture = Event;

    fn into_future(self) -> Event {
        self.clone()
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
