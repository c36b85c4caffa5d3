//! Events: points on a queue's timeline, results of host tasks, and groups of events.

mod extra;
mod future;
mod group;
pub(crate) mod host_job;
pub(crate) mod retained;
pub(crate) mod signal;
pub(crate) mod status;
pub(crate) mod times;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Result;
use crate::timeline::Timeline;
use crate::timeline::event::extra::{Extra, More};
use crate::timeline::event::group::Group;
use crate::timeline::event::retained::Retained;
use crate::timeline::event::signal::Signal;
use crate::timeline::event::times::Stamps;

/// A point on a queue's timeline: `(queue, ticket)`. Wait on it, poll it, `.await` it, or depend on it.
///
/// [`Queue::host_task`](crate::Queue::host_task), [`Event::all`] and [`Event::any`] make events that belong to no queue, and are
/// used in the same way.
///
/// Creating one makes no driver call. If it still exists when the next submission arrives, it is signaled first, so that
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
    more: Option<Extra>,
    /// Whether there is, or was, another event of this ticket.
    is_cloned: AtomicBool,
}

impl Event {
    #[inline]
    pub(crate) fn new(timeline: &Arc<Timeline>, ticket: u64) -> Self {
        Self { timeline: Some(timeline.clone()), ticket, more: None, is_cloned: AtomicBool::new(false) }
    }

    /// An event of no queue. `None` is complete.
    fn of(source: Option<Source>) -> Self {
        let more = source.map(|source| Extra::new(More { source: Some(source), ..More::default() }));
        Self { timeline: None, ticket: 0, more, is_cloned: AtomicBool::new(true) }
    }

    /// The event of a host task.
    pub(crate) fn of_signal(signal: Arc<Signal>) -> Self {
        Self::of(Some(Source::Signal(signal)))
    }

    /// An event that is complete from the start, and belongs to no device.
    ///
    /// ```
    /// # use runtime_core::Event;
    /// assert!(Event::completed().is_done()?);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    #[must_use]
    pub const fn completed() -> Self {
        Self { timeline: None, ticket: 0, more: None, is_cloned: AtomicBool::new(true) }
    }

    /// The ticket: the number of the submission in its queue, starting at 1; 0 if there was nothing to wait for, or if the event
    /// belongs to no queue.
    #[must_use]
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    pub(crate) const fn timeline(&self) -> Option<&Arc<Timeline>> {
        self.timeline.as_ref()
    }

    fn source(&self) -> Option<&Source> {
        self.more.as_ref().and_then(|more| more.source.as_ref())
    }

    /// The signal that it stands for.
    pub(crate) fn signal(&self) -> Option<&Arc<Signal>> {
        match self.source() {
            Some(Source::Signal(signal)) => Some(signal),
            _ => None,
        }
    }

    /// Whether it may have to be waited for.
    const fn is_pending(&self) -> bool {
        self.timeline.is_some() || self.more.is_some()
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

    /// The events that the work was told to wait for: by the dependencies of a host task or a barrier, or by [`Event::all`] and
    /// [`Event::any`], which leave out those that others imply. They do not remember dependencies of their own, so a chain of
    /// events does not grow. What [`Queue::wait_for`](crate::Queue::wait_for) and shared tensors imply is not listed.
    #[must_use]
    pub fn dependencies(&self) -> &[Self] {
        match (&self.more, self.source()) {
            (Some(more), Some(Source::Group(group))) if more.dependencies.is_empty() => group.parts(),
            (Some(more), _) => &more.dependencies,
            (None, _) => &[],
        }
    }

    /// Keeps `values`, for example what the work uses but the queue does not know of. They are dropped when the event and all its
    /// clones are dropped, but not before the event has ended: then, on a thread of the runtime. They are leaked where the work
    /// cannot be seen to end: at exit, in a forked child, and with a device that is leaked.
    ///
    /// ```
    /// # use runtime_core::Runtime;
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let queue = runtime.open("null")?.queue()?;
    /// let table = vec![1, 2, 3];
    /// let event = queue.launch_noop()?.keeping(table);
    /// event.wait()?;
    /// drop(event); // and the table with it
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    #[must_use]
    pub fn keeping<T: Send + 'static>(mut self, values: T) -> Self {
        let point = self.point();
        let more = self.more_mut();
        let retained = match more.retained.take() {
            None => Retained::new(point, values),
            Some(others) => Retained::new(point, (others, values)),
        };
        more.retained = Some(Arc::new(retained));
        self
    }

    /// Adds the timestamps around the work.
    pub(crate) fn with_stamps(mut self, stamps: Arc<Stamps>) -> Self {
        self.more_mut().stamps = Some(stamps);
        self
    }

    fn stamps(&self) -> Option<&Stamps> {
        self.more.as_ref().and_then(|more| more.stamps.as_deref())
    }

    /// Another event of the same point, without what belongs to this one only.
    pub(crate) fn point(&self) -> Self {
        self.is_cloned.store(true, Ordering::Relaxed);
        let mut point = Self::of(self.source().cloned());
        (point.timeline, point.ticket) = (self.timeline.clone(), self.ticket);
        point
    }

    fn more_mut(&mut self) -> &mut More {
        self.more.get_or_insert_with(|| Extra::new(More::default()))
    }

    /// Blocks until the work has ended.
    ///
    /// # Errors
    /// The failure of the work, or of work that it depends on; `DeviceLost`; `InvalidArgument` in a host task that waits for its
    /// own event.
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

    #[inline]
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Result<()> {
        match &self.timeline {
            Some(timeline) => timeline.wait(self.ticket, deadline),
            None => match self.source() {
                Some(Source::Signal(signal)) => signal.wait(deadline),
                Some(Source::Group(group)) => group.wait(deadline),
                None => Ok(()),
            },
        }
    }

    /// Whether the work has ended. Never blocks.
    ///
    /// # Errors
    /// As [`Event::wait`].
    pub fn is_done(&self) -> Result<bool> {
        self.poll_result()?.map_or(Ok(false), |result| result.map(|()| true))
    }

    /// Its result after a poll; `None` while it has none.
    ///
    /// # Errors
    /// What prevents the poll.
    pub(crate) fn poll_result(&self) -> Result<Option<Result<()>>> {
        match &self.timeline {
            Some(timeline) => timeline.poll_result(self.ticket),
            None => match self.source() {
                Some(Source::Signal(signal)) => signal.poll_result(),
                Some(Source::Group(group)) => group.poll_result(),
                None => Ok(Some(Ok(()))),
            },
        }
    }
}

impl Clone for Event {
    /// Makes no driver call. The queue does not count clones, so from now on the event counts as existing.
    fn clone(&self) -> Self {
        let mut clone = self.point();
        if let Some(more) = &self.more {
            let new = clone.more_mut();
            new.dependencies = more.dependencies.clone();
            new.stamps.clone_from(&more.stamps);
            new.retained.clone_from(&more.retained);
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
        if self.more.is_some() {
            self.unregister();
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.timeline, self.source()) {
            (Some(timeline), _) => {
                let (id, device) = (timeline.id, timeline.device_name());
                write!(f, "Event(ticket {} of queue {id} on {device})", self.ticket)
            }
            (None, Some(Source::Signal(_))) => f.write_str("Event(host task)"),
            (None, Some(Source::Group(group))) => write!(f, "Event({group:?})"),
            (None, None) => f.write_str("Event(complete)"),
        }
    }
}

/// An event that is not a ticket of a queue.
#[derive(Clone)]
enum Source {
    Signal(Arc<Signal>),
    Group(Arc<Group>),
}
