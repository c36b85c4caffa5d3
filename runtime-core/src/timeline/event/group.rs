//! Groups of events: all of them, or any of them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::timeline::event::Event;
use crate::timeline::event::Source;
use crate::timeline::event::signal::Signal;
use crate::timeline::host_pool;
use crate::{Error, ErrorKind, Result};

/// How deep groups are nested at most: they are walked by recursion. A group takes up the events of a group of its own kind, so
/// only groups of both kinds inside each other, or very large ones, nest at all.
const MAX_DEPTH: usize = 256;
/// The largest group whose events another one takes up.
const MAX_TAKEN_UP: usize = 512;
/// Pauses between polls of a group, of which any event may end first: the shortest, doubled up to the longest.
const SHORTEST: Duration = Duration::from_micros(10);
const LONGEST: Duration = Duration::from_millis(1);

/// When a group has a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    All,
    Any,
}

/// Several events that are one.
pub(super) struct Group {
    kind: Kind,
    parts: Box<[Event]>,
    depth: usize,
    /// The queues have been flushed, so that no event waits for another one to be asked for first.
    is_flushed: AtomicBool,
    /// The first events that are known to have a result; only counted for `All`.
    ended: AtomicUsize,
    /// The first failure of `All`; the success of `Any`, or its failure once all have failed.
    result: OnceLock<Result<()>>,
}

impl Event {
    /// An event that ends once all of these have ended, on whatever devices. All of nothing is complete.
    ///
    /// It fails if one of them fails, with the failure of the first one, but not before the others have ended. A queue that waits
    /// for it waits for each of them, on its device where possible. Starts no thread.
    ///
    /// ```
    /// # use runtime_core::{Event, Runtime};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// let (one, other) = (device.queue()?, device.queue()?);
    /// let both = Event::all(&[&one.launch_noop()?, &other.launch_noop()?]);
    /// both.wait()?; // or `both.await?`
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    #[must_use]
    pub fn all(events: &[&Self]) -> Self {
        Group::event(Kind::All, events)
    }

    /// An event that completes once any of these has completed, and fails once all have failed, with the failure of the first
    /// one. The others go on. Any of nothing is an event that has failed with `InvalidArgument`.
    ///
    /// A queue cannot wait for it on its device: [`Queue::wait_for`](crate::Queue::wait_for) blocks. Starts no thread.
    #[must_use]
    pub fn any(events: &[&Self]) -> Self {
        if events.is_empty() {
            let error = Error::invalid("`Event::any` of an empty list has nothing to wait for");
            return Self::of_signal(Signal::failed(error));
        }
        Group::event(Kind::Any, events)
    }

    /// The events, if it stands for all of them.
    pub(crate) fn all_of(&self) -> Option<&[Self]> {
        match self.source() {
            Some(Source::Group(group)) if group.kind == Kind::All => Some(&group.parts),
            _ => None,
        }
    }

    fn depth(&self) -> usize {
        match self.source() {
            Some(Source::Group(group)) => group.depth,
            _ => 0,
        }
    }
}

/// The events of a group under construction. There is one per queue: its last ticket implies the others in a group of all, its
/// first in a group of any.
struct Parts {
    kind: Kind,
    parts: Vec<Event>,
    /// Positions of those that are tickets of queues.
    tickets: Vec<usize>,
    /// An event of a group of any is complete already.
    is_complete: bool,
}

impl Parts {
    fn add(&mut self, event: &Event) {
        match event.source() {
            Some(Source::Group(group))
                if group.kind == self.kind
                    && group.parts.len() <= MAX_TAKEN_UP
                    && group.first_failure().is_none() =>
            {
                group.parts.iter().for_each(|part| self.add(part));
            }
            _ if event.is_known_complete() => self.is_complete = true,
            _ if event.timeline.is_some() => self.add_ticket(event),
            _ => self.parts.push(event.point()),
        }
    }

    fn add_ticket(&mut self, event: &Event) {
        let is_same = |index: &&usize| match (&self.parts[**index].timeline, &event.timeline) {
            (Some(known), Some(timeline)) => Arc::ptr_eq(known, timeline),
            _ => false,
        };
        let Some(known) = self.tickets.iter().find(is_same) else {
            self.tickets.push(self.parts.len());
            return self.parts.push(event.point());
        };
        let known = &mut self.parts[*known];
        let implied = match self.kind {
            Kind::All => event.ticket <= known.ticket,
            Kind::Any => event.ticket >= known.ticket,
        };
        if !implied {
            *known = event.point();
        }
    }
}

impl Group {
    fn event(kind: Kind, events: &[&Event]) -> Event {
        let mut parts = Parts { kind, parts: Vec::new(), tickets: Vec::new(), is_complete: false };
        events.iter().for_each(|event| parts.add(event));
        if parts.is_complete && kind == Kind::Any {
            return Event::completed();
        }
        let mut parts = parts.parts;
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        let depth = 1 + parts.iter().map(Event::depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            let error = Error::invalid(format!(
                "`Event::all` and `Event::any` are nested more than {MAX_DEPTH} deep; wait for the inner ones first"
            ));
            return Event::of_signal(Signal::failed(error));
        }
        let group = (!parts.is_empty()).then(|| Self {
            kind,
            parts: parts.into(),
            depth,
            is_flushed: AtomicBool::new(false),
            ended: AtomicUsize::new(0),
            result: OnceLock::new(),
        });
        Event::of(group.map(|group| Source::Group(Arc::new(group))))
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn parts(&self) -> &[Event] {
        &self.parts
    }

    fn first_failure(&self) -> Option<&Result<()>> {
        self.result.get().filter(|result| result.is_err())
    }

    /// The result after a poll of the events that matter.
    ///
    /// # Errors
    /// What prevents the poll.
    pub(super) fn poll_result(&self) -> Result<Option<Result<()>>> {
        self.flush();
        match self.kind {
            Kind::All => self.poll_result_of_all(),
            Kind::Any => self.poll_result_of_any(),
        }
    }

    /// Hands all work to the drivers, once. Whoever waits for an event that cannot be flushed gets the error.
    fn flush(&self) {
        if self.is_flushed.swap(true, Ordering::Relaxed) {
            return;
        }
        for part in &self.parts {
            match (&part.timeline, part.source()) {
                (Some(timeline), _) => {
                    if let Some(_open) = timeline.device.upgrade() {
                        let _ = timeline.signal_and_flush(part.ticket);
                    }
                }
                (None, Some(Source::Group(group))) => group.flush(),
                (None, _) => {}
            }
        }
    }

    fn poll_result_of_all(&self) -> Result<Option<Result<()>>> {
        let mut next = self.ended.load(Ordering::Acquire);
        while let Some(part) = self.parts.get(next) {
            match part.poll_result()? {
                None => return Ok(None),
                Some(result) => self.note(next, result),
            }
            next += 1;
        }
        Ok(Some(self.result.get().cloned().unwrap_or(Ok(()))))
    }

    /// Notes the result of an event of `All`, after those before it.
    fn note(&self, index: usize, result: Result<()>) {
        if result.is_err() {
            let _ = self.result.set(result);
        }
        self.ended.fetch_max(index + 1, Ordering::AcqRel);
    }

    fn poll_result_of_any(&self) -> Result<Option<Result<()>>> {
        if let Some(result) = self.result.get() {
            return Ok(Some(result.clone()));
        }
        let (mut failure, mut pending) = (None, Ok(false));
        for part in &self.parts {
            match part.poll_result() {
                Ok(Some(Ok(()))) => return Ok(Some(self.result.get_or_init(|| Ok(())).clone())),
                Ok(Some(Err(error))) => failure = failure.or(Some(error)),
                Ok(None) => pending = pending.map(|_| true),
                Err(error) => pending = pending.and(Err(error)),
            }
        }
        match failure.filter(|_| matches!(pending, Ok(false))) {
            Some(error) => Ok(Some(self.result.get_or_init(|| Err(error)).clone())),
            None => pending.map(|_| None),
        }
    }

    pub(super) fn wait(&self, deadline: Option<Instant>) -> Result<()> {
        match self.kind {
            Kind::All => self.wait_all(deadline),
            Kind::Any => self.wait_any(deadline),
        }
    }

    fn wait_all(&self, deadline: Option<Instant>) -> Result<()> {
        self.flush();
        self.resume()?;
        let mut next = self.ended.load(Ordering::Acquire);
        while let Some(part) = self.parts.get(next) {
            let waited = part.wait_until(deadline);
            if let Err(error) = &waited
                && !matches!(part.poll_result(), Ok(Some(_)))
            {
                // A timeout, or a device that cannot be polled; not the event's own failure.
                return Err(error.clone());
            }
            self.note(next, waited);
            next += 1;
        }
        self.result.get().cloned().unwrap_or(Ok(()))
    }

    fn wait_any(&self, deadline: Option<Instant>) -> Result<()> {
        let _blocked = host_pool::blocking();
        self.resume()?;
        let mut pause = SHORTEST;
        loop {
            if let Some(result) = self.poll_result()? {
                return result;
            }
            host_pool::check_exit()?;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                let error = Error::new(ErrorKind::Timeout, "none of the events has ended in time");
                return Err(error.in_operation("wait"));
            }
            std::thread::sleep(left.map_or(pause, |left| left.min(pause)));
            pause = (2 * pause).min(LONGEST);
        }
    }

    /// Ends holds of the queues, as every wait does.
    pub(super) fn resume(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| match (&part.timeline, part.source()) {
            (Some(timeline), _) => match timeline.device.upgrade() {
                Some(_open) => timeline.real().resume().map(drop),
                None => Ok(()),
            },
            (None, Some(Source::Group(group))) => group.resume(),
            (None, _) => Ok(()),
        })
    }

    /// The first event without a result, which a future keeps in `waiting`, with its position.
    pub(super) fn next_waiting<'w>(&self, waiting: &'w mut Vec<(usize, Event)>) -> Option<&'w mut Event> {
        let next = self.ended.load(Ordering::Acquire);
        if waiting.first().map(|(index, _)| *index) != Some(next) {
            *waiting = self.parts.get(next).map(|part| (next, part.point())).into_iter().collect();
        }
        waiting.first_mut().map(|(_, event)| event)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} events", self.kind, self.parts.len())
    }
}
