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
    /// `None`: it belongs to no queue.
    timeline: Option<Arc<Timeline>>,
    /// 0 if there is nothing to wait for.
    ticket: u64,
    /// What few events have.
    more: Option<Box<More>>,
    /// Whether there is, or was, another event of this ticket.
    is_cloned: AtomicBool,
}

/// What few events have, so that the others stay small.
#[derive(Default)]
struct More {
    /// Its registration with the wait thread; 0: it was never awaited.
    registration: u64,
    /// What the work was told to wait for. These remember no dependencies of their own, so that a chain of events does not grow.
    dependencies: Arc<[Event]>,
}

impl Event {
    #[inline]
    pub(crate) fn new(timeline: &Arc<Timeline>, ticket: u64) -> Self {
        Self { timeline: Some(timeline.clone()), ticket, more: None, is_cloned: AtomicBool::new(false) }
    }

    /// An event that is complete from the start, and belongs to no device.
    #[must_use]
    pub const fn completed() -> Self {
        Self { timeline: None, ticket: 0, more: None, is_cloned: AtomicBool::new(true) }
    }

    /// Remembers what the work was told to wait for.
    #[inline]
    #[must_use]
    pub(crate) fn with_dependencies(self, deps: &[&Self]) -> Self {
        if deps.is_empty() { self } else { self.remember(deps) }
    }

    #[cold]
    fn remember(mut self, deps: &[&Self]) -> Self {
        self.more_mut().dependencies = deps.iter().map(|event| event.point()).collect();
        self
    }

    /// The events that the submission was told to wait for. Those do not remember their own dependencies.
    #[must_use]
    pub fn dependencies(&self) -> &[Self] {
        self.more.as_ref().map_or(&[], |more| &more.dependencies)
    }

    /// Another event of the same point, without what belongs to this one only.
    fn point(&self) -> Self {
        self.is_cloned.store(true, Ordering::Relaxed);
        let (timeline, ticket) = (self.timeline.clone(), self.ticket);
        Self { timeline, ticket, more: None, is_cloned: AtomicBool::new(true) }
    }

    fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// The ticket: the number of the submission in its queue, starting at 1; 0 if there was nothing to wait for.
    #[must_use]
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Removes it from the wait thread.
    #[cold]
    fn forget(&self, registration: u64) {
        if let Some(device) = self.timeline.as_ref().and_then(|timeline| timeline.device.upgrade()) {
            device.forget_waker(registration);
        }
    }

    pub(crate) const fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.timeline.as_ref()
    }

    /// Blocks until the work has ended.
    ///
    /// # Errors
    /// The failure of the work, or of work that it depends on; `DeviceLost`.
    pub fn wait(&self) -> Result<()> {
        self.wait_until(None)
    }

    /// Blocks until the work has ended, or for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`, which cancels nothing; otherwise as [`Event::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<()> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Result<()> {
        self.timeline.as_ref().map_or(Ok(()), |timeline| timeline.wait(self.ticket, deadline))
    }

    /// Whether the work has ended. Never blocks.
    ///
    /// # Errors
    /// As [`Event::wait`].
    pub fn is_done(&self) -> Result<bool> {
        let Some(timeline) = &self.timeline else { return Ok(true) };
        timeline.poll_ticket(self.ticket)?.map_or(Ok(false), |result| result.map(|()| true))
    }
}

impl Clone for Event {
    /// Makes no driver call. The queue does not count clones, so from now on the event counts as held.
    fn clone(&self) -> Self {
        let mut clone = self.point();
        if let Some(more) = &self.more {
            clone.more = Some(Box::new(More { registration: 0, dependencies: more.dependencies.clone() }));
        }
        clone
    }
}

impl Drop for Event {
    #[inline]
    fn drop(&mut self) {
        if !*self.is_cloned.get_mut()
            && let Some(timeline) = &self.timeline
        {
            timeline.event_dropped(self.ticket);
        }
        if let Some(more) = &self.more
            && more.registration != 0
        {
            self.forget(more.registration);
        }
    }
}

impl Future for Event {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.is_done() {
            Ok(true) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
            Ok(false) => self.get_mut().register(context),
        }
    }
}

impl Event {
    /// Makes the wait thread wake the task once the work has a result.
    fn register(&mut self, context: &Context<'_>) -> Poll<Result<()>> {
        let Some(timeline) = self.timeline.clone() else { return Poll::Ready(Ok(())) };
        let Some(device) = timeline.device.upgrade() else { return Poll::Ready(self.wait()) };
        if let Err(error) = timeline.resume() {
            return Poll::Ready(Err(error));
        }
        let ticket = self.ticket;
        match device.register_waker((&timeline, ticket), &mut self.more_mut().registration, context.waker()) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
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
        let Some(timeline) = &self.timeline else { return f.write_str("Event(complete)") };
        write!(f, "Event(ticket {} of queue {} on {})", self.ticket, timeline.id, timeline.device_name())
    }
}
