//! How far a queue is: the events of its commands, as one completed prefix.
//!
//! Every command has an event, since a command that fails says so nowhere else: the next one of its queue succeeds. Where a
//! failure ends everything behind it, launches have none, which is faster: then marks, which are markers of the driver, cover
//! the tickets up to their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cl3::ext::cl_int;
use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Result};

use crate::context::SharedContext;
use crate::driver::handle::{Event, Owned};
use crate::driver::{Raw, code_name, is_sticky};

/// Commands in flight from which on a submission looks whether some have ended, and how often it does.
const MANY: usize = 1024;
const OFTEN: u64 = 64;
/// How long a wait for another processor only looks.
const SPIN: Duration = Duration::from_micros(50);
/// How long a wait looks without sleeping.
const AWAKE: Duration = Duration::from_millis(2);
/// Longest sleep between two looks.
const LONGEST_PAUSE: Duration = Duration::from_micros(200);

/// A command in flight.
#[derive(Debug)]
struct Pending {
    event: Owned<Event>,
    /// The latest ticket that has ended when all commands in front of this one have.
    after: u64,
    /// A wait for another queue: it fails where that one fails, which core carries over.
    waits: bool,
}

#[derive(Debug, Default)]
struct State {
    pending: VecDeque<Pending>,
    /// The latest ticket that has ended when everything pending has.
    covered: u64,
    failure: Option<(u64, Error)>,
}

impl State {
    /// The latest ticket that has ended.
    fn ended(&self) -> u64 {
        self.pending.front().map_or(self.covered, |first| first.after)
    }

    /// Notes that `ticket` and all in front of it have ended.
    fn end(&mut self, ticket: u64) {
        self.covered = self.covered.max(ticket);
        for pending in &mut self.pending {
            pending.after = pending.after.max(ticket);
        }
    }
}

/// The progress of a queue.
#[derive(Debug)]
pub(crate) struct Progress {
    context: Arc<SharedContext>,
    tail: AtomicU64,
    completed: AtomicU64,
    /// The first failed ticket; 0: none.
    failed: AtomicU64,
    state: Mutex<State>,
}

impl Progress {
    pub(crate) fn new(context: Arc<SharedContext>) -> Self {
        Self {
            context,
            tail: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Notes that the driver has taken the only command of `ticket`; says whether the queue was idle.
    #[inline]
    pub(crate) fn note_submitted(&self, ticket: u64, event: Owned<Event>) -> bool {
        let mut state = self.state.lock();
        let idle = state.pending.is_empty();
        if state.pending.len() >= MANY && ticket.is_multiple_of(OFTEN) {
            self.reap(&mut state, None);
        }
        let after = std::mem::replace(&mut state.covered, ticket);
        state.pending.push_back(Pending { event, after, waits: false });
        drop(state);
        self.tail.store(ticket, Ordering::Release);
        idle
    }

    /// Notes that the driver has taken all commands of `ticket`, however many.
    pub(crate) fn note_submitted_all(&self, ticket: u64, events: impl IntoIterator<Item = Owned<Event>>) {
        let mut state = self.state.lock();
        let (after, before) = (state.covered, state.pending.len());
        state.pending.extend(events.into_iter().map(|event| Pending { event, after, waits: false }));
        if state.pending.len() > before || after + 1 == ticket {
            state.covered = ticket;
        }
        drop(state);
        self.tail.store(ticket, Ordering::Release);
    }

    /// Notes that the driver has taken a command of `ticket` that has no event.
    #[inline]
    pub(crate) fn note_without_event(&self, ticket: u64) {
        self.tail.store(ticket, Ordering::Release);
    }

    /// Whether the end of `ticket` shows by itself.
    #[inline]
    pub(crate) fn has_event(&self, ticket: u64) -> bool {
        self.state.lock().covered >= ticket
    }

    /// The last ticket, if nothing pending tells of its end.
    pub(crate) fn last_without_event(&self) -> Option<u64> {
        let tail = self.tail.load(Ordering::Acquire);
        let state = self.state.lock();
        (state.pending.is_empty() && state.covered < tail).then_some(tail)
    }

    /// Notes a marker that was submitted behind `ticket`.
    pub(crate) fn add_marker(&self, ticket: u64, event: Owned<Event>) {
        let mut state = self.state.lock();
        let after = state.covered;
        if after < ticket {
            state.covered = ticket;
            state.pending.push_back(Pending { event, after, waits: false });
        }
    }

    /// Notes that the next ticket waits for another queue.
    pub(crate) fn add_barrier(&self, event: Owned<Event>) {
        let mut state = self.state.lock();
        let after = state.covered;
        state.pending.push_back(Pending { event, after, waits: true });
    }

    /// Whether nothing is in flight, nor waited for.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        let mut state = self.state.lock();
        self.reap(&mut state, None);
        state.pending.is_empty() && state.covered >= self.tail.load(Ordering::Acquire)
    }

    /// Fails a ticket that the driver has taken in part.
    #[cold]
    pub(crate) fn fail(&self, ticket: u64, error: Error) {
        self.set_failure(&mut self.state.lock(), ticket, error);
    }

    /// The completed prefix as it was last seen.
    #[inline]
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Looks how far the queue is.
    #[inline]
    pub(crate) fn poll(&self) -> Result<u64> {
        let tail = self.tail.load(Ordering::Acquire);
        if self.completed() >= tail {
            return Ok(tail);
        }
        self.context.check_alive()?;
        let mut state = self.state.lock();
        self.reap(&mut state, None);
        // What is submitted meanwhile is not part of the answer.
        let ended = state.ended().min(tail);
        drop(state);
        self.context.check_alive()?;
        self.completed.fetch_max(ended, Ordering::AcqRel);
        self.context.release_deferred_if_idle();
        Ok(self.completed())
    }

    /// Takes out the commands that have ended; `waited` was waited for in the driver.
    fn reap(&self, state: &mut State, waited: Option<&Owned<Event>>) {
        let mut last = None;
        while let Some(first) = state.pending.front() {
            let status = self.context.status(first.event.raw());
            if status > 0 {
                break;
            }
            let Some(ended) = state.pending.pop_front() else { break };
            match status {
                0 => last = Some(ended.event),
                _ if ended.waits => {}
                _ => self.note_failure(state, ended.after + 1, status),
            }
        }
        if let Some(last) = last
            && waited.is_none_or(|waited| waited.raw() != last.raw())
        {
            self.context.synchronise(last.raw());
        }
    }

    #[cold]
    fn note_failure(&self, state: &mut State, ticket: u64, status: cl_int) {
        let error = if is_sticky(status) || self.context.caps.fails_for_good {
            self.context.declare_lost(status)
        } else {
            let message = "the command ended with an error; open another queue to go on";
            Error::new(ErrorKind::Failed, message).with_driver(code_name(status), i64::from(status))
        };
        self.set_failure(state, ticket, error);
    }

    /// The first failure stays.
    fn set_failure(&self, state: &mut State, ticket: u64, error: Error) {
        if state.failure.is_none() {
            state.failure = Some((ticket, error));
            self.failed.store(ticket, Ordering::Release);
        }
    }

    /// The first failed ticket; 0: none.
    pub(crate) fn first_failed(&self) -> u64 {
        self.failed.load(Ordering::Acquire)
    }

    /// Why the first failed ticket failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.as_ref().map(|(_, error)| error.clone())
    }

    /// Waits for `ticket`, for about `slice`.
    pub(crate) fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        let begin = Instant::now();
        while self.poll()? < ticket {
            let elapsed = begin.elapsed();
            if elapsed >= slice {
                break;
            }
            pause(elapsed, self.context.caps.is_processor);
        }
        Ok(())
    }

    /// Blocks in the driver, without a lock, until `ticket` has ended; comes back at once if the driver has nothing to wait
    /// for that ends with it.
    pub(crate) fn finish(&self, ticket: u64, queue: Raw) -> Result<()> {
        self.context.check_alive()?;
        let tail = self.tail.load(Ordering::Acquire);
        if self.completed() >= ticket {
            return Ok(());
        }
        let mut waited = None;
        let has_event = self.has_event(ticket);
        if has_event {
            waited = self.event(ticket)?.filter(|event| self.context.wait_event(event.raw()));
        } else if ticket != tail || !self.context.finish_queue(queue) {
            // Only the last: some drivers wait for what is submitted meanwhile, too.
            return Ok(());
        }
        let mut state = self.state.lock();
        // First, so that a failure in front of the last command is of its own ticket.
        self.reap(&mut state, waited.as_ref());
        if !has_event {
            state.end(tail);
        }
        self.completed.fetch_max(state.ended().min(tail), Ordering::AcqRel);
        drop(state);
        self.context.release_deferred_if_idle();
        Ok(())
    }

    /// The event whose end says that `ticket` has ended; `None` if it has.
    pub(crate) fn event(&self, ticket: u64) -> Result<Option<Owned<Event>>> {
        if self.completed() >= ticket {
            return Ok(None);
        }
        let state = self.state.lock();
        if state.covered < ticket {
            return Err(Error::unsupported("a wait on the device for what is not marked is not supported"));
        }
        // All in front of the first that comes after the ticket.
        let count = state.pending.partition_point(|pending| pending.after < ticket);
        let last = count.checked_sub(1).and_then(|index| state.pending.get(index));
        last.map(|pending| pending.event.share()).transpose()
    }
}

/// Lets others run between two looks: on a processor they are what is waited for.
fn pause(elapsed: Duration, is_processor: bool) {
    if elapsed < SPIN && !is_processor {
        std::hint::spin_loop();
    } else if elapsed < AWAKE {
        std::thread::yield_now();
    } else {
        std::thread::sleep((elapsed / 32).min(LONGEST_PAUSE));
    }
}
