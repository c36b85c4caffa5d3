//! Progress of a queue: from the events of its commands to one completed prefix of tickets.
//!
//! Every command has an event of its own, because only that event reports its failure: the next command of the queue succeeds.
//! On drivers where a failure also fails all later commands (`fails_for_good`), launches are submitted without events, which is
//! faster. The event of a marker then stands for all tickets up to its own.
//!
//! A ticket moves from left to right:
//!
//! ```text
//! note_submitted -------------------> watched -- reap: its event ended -------------> completed
//!                                        ^                                                ^
//! note_without_event --> unwatched ------+ add_marker, or a later ticket's event          |
//!                            |                                                            |
//!                            +----------------- wait_blocking: clFinish returned ---------+
//! ```
//!
//! The events are kept in submission order. Each is stored with the last ticket that is complete once this event and all earlier
//! ones have ended. When a command fails, the first incomplete ticket is therefore its own:
//!
//! ```text
//! completed: 4 | pending:  4    5    8  | watched: 8 | last submitted: 9
//!                          ^    ^    ^                                 ^
//!       ticket 5 (two commands)-+    |                                 +-- no event yet: unwatched
//!                                    +-- ticket 8; its event also stands for 6 and 7, which have none
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cl3::ext::cl_int;
use parking_lot::Mutex;
use runtime_core::backend::backoff;
use runtime_core::{Error, ErrorKind, Result};

use crate::completion::Completion;
use crate::context::SharedContext;
use crate::driver::handle::{Event, Owned};
use crate::driver::{Raw, code_name, is_sticky};

/// With this many events pending, submissions reap those that have ended, once every `REAP_INTERVAL` tickets.
const REAP_THRESHOLD: usize = 1024;
const REAP_INTERVAL: u64 = 64;

/// A command in flight.
#[derive(Debug)]
struct Pending {
    event: Owned<Event>,
    /// The last ticket that is complete once this command and all in front of it have ended.
    completes: u64,
    /// A barrier that waits for another queue. It fails when that queue fails, which core propagates itself.
    is_barrier: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The last ticket whose commands have all ended, as of the latest reap.
    completed: u64,
    /// In submission order; `completes` never decreases.
    pending: VecDeque<Pending>,
    failure: Option<(u64, Error)>,
}

impl State {
    /// The last ticket that is complete once everything pending has ended. Later tickets have no event yet.
    fn watched(&self) -> u64 {
        self.pending.back().map_or(self.completed, |last| last.completes)
    }

    fn push(&mut self, event: Owned<Event>, completes: u64) {
        self.pending.push_back(Pending { event, completes, is_barrier: false });
    }

    /// Lets `ticket`, which has no event of its own, complete with the last pending command.
    fn complete_with_last(&mut self, ticket: u64) {
        match self.pending.back_mut() {
            Some(last) => last.completes = ticket,
            None => self.completed = ticket,
        }
    }

    /// Completes all tickets up to `ticket`, even if their events are still pending.
    fn complete(&mut self, ticket: u64) {
        self.completed = self.completed.max(ticket);
        for pending in &mut self.pending {
            pending.completes = pending.completes.max(ticket);
        }
    }
}

/// The progress of a queue.
#[derive(Debug)]
pub(crate) struct Progress {
    context: Arc<SharedContext>,
    last_submitted: AtomicU64,
    completed: AtomicU64,
    /// The first failed ticket; 0: none.
    first_failed: AtomicU64,
    state: Mutex<State>,
}

impl Progress {
    pub(crate) fn new(context: Arc<SharedContext>) -> Self {
        Self {
            context,
            last_submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            first_failed: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Records the only command of `ticket`. Returns whether the queue was idle.
    #[inline]
    pub(crate) fn note_submitted(&self, ticket: u64, event: Owned<Event>) -> bool {
        let mut state = self.state.lock();
        let idle = state.pending.is_empty();
        if state.pending.len() >= REAP_THRESHOLD && ticket.is_multiple_of(REAP_INTERVAL) {
            self.reap(&mut state, None);
        }
        state.push(event, ticket);
        drop(state);
        self.last_submitted.store(ticket, Ordering::Release);
        idle
    }

    /// Records all commands of `ticket`, of which there may be none.
    pub(crate) fn note_submitted_all(&self, ticket: u64, events: impl IntoIterator<Item = Owned<Event>>) {
        let mut state = self.state.lock();
        let (watched, before) = (state.watched(), state.pending.len());
        for event in events {
            state.push(event, watched);
        }
        // Without commands, the ticket can join the last pending one only if no unwatched ticket lies between.
        if state.pending.len() > before || watched + 1 == ticket {
            state.complete_with_last(ticket);
        }
        drop(state);
        self.last_submitted.store(ticket, Ordering::Release);
    }

    /// Records a command of `ticket` that has no event.
    #[inline]
    pub(crate) fn note_without_event(&self, ticket: u64) {
        self.last_submitted.store(ticket, Ordering::Release);
    }

    /// Whether a pending event, or one that has ended, stands for `ticket`.
    #[inline]
    pub(crate) fn is_watched(&self, ticket: u64) -> bool {
        self.state.lock().watched() >= ticket
    }

    /// The last ticket, if it is unwatched and no event is pending.
    pub(crate) fn last_unwatched(&self) -> Option<u64> {
        let last = self.last_submitted.load(Ordering::Acquire);
        let state = self.state.lock();
        (state.pending.is_empty() && state.watched() < last).then_some(last)
    }

    /// Records a marker that was submitted behind `ticket`.
    pub(crate) fn add_marker(&self, ticket: u64, event: Owned<Event>) {
        let mut state = self.state.lock();
        if state.watched() < ticket {
            state.push(event, ticket);
        }
    }

    /// Records a barrier that makes the next ticket wait for another queue.
    pub(crate) fn add_barrier(&self, event: Owned<Event>) {
        let mut state = self.state.lock();
        let completes = state.watched();
        state.pending.push_back(Pending { event, completes, is_barrier: true });
    }

    /// Whether nothing is in flight: neither submissions nor barriers.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        let mut state = self.state.lock();
        self.reap(&mut state, None);
        state.pending.is_empty() && state.watched() >= self.last_submitted.load(Ordering::Acquire)
    }

    /// Fails a ticket of which only a part could be submitted.
    #[cold]
    pub(crate) fn fail(&self, ticket: u64, error: Error) {
        self.set_failure(&mut self.state.lock(), ticket, error);
    }

    /// The completed prefix, as of the last poll.
    #[inline]
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Polls the driver and returns the completed prefix.
    #[inline]
    pub(crate) fn poll(&self) -> Result<u64> {
        let last = self.last_submitted.load(Ordering::Acquire);
        if self.completed() >= last {
            return Ok(last);
        }
        self.context.check_alive()?;
        let mut state = self.state.lock();
        self.reap(&mut state, None);
        // Not beyond `last`: later tickets may have been submitted meanwhile.
        let completed = state.completed.min(last);
        drop(state);
        self.context.check_alive()?;
        self.completed.fetch_max(completed, Ordering::AcqRel);
        Ok(self.completed())
    }

    /// Removes the commands that have ended. `waited` is an event on which the driver was made to wait already.
    fn reap(&self, state: &mut State, waited: Option<&Owned<Event>>) {
        let mut last = None;
        while let Some(first) = state.pending.front() {
            let status = self.context.status(first.event.raw());
            if status > 0 {
                break;
            }
            let Some(ended) = state.pending.pop_front() else { break };
            let ticket = state.completed + 1;
            state.completed = ended.completes;
            match status {
                0 => last = Some(ended.event),
                _ if ended.is_barrier => {}
                _ => self.note_failure(state, ticket, status),
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
            let message = "the command failed; open another queue to continue";
            Error::new(ErrorKind::Failed, message).with_driver(code_name(status), i64::from(status))
        };
        self.set_failure(state, ticket, error);
    }

    /// Keeps the first failure.
    fn set_failure(&self, state: &mut State, ticket: u64, error: Error) {
        if state.failure.is_none() {
            state.failure = Some((ticket, error));
            self.first_failed.store(ticket, Ordering::Release);
        }
    }

    /// The first failed ticket; 0: none.
    pub(crate) fn first_failed(&self) -> u64 {
        self.first_failed.load(Ordering::Acquire)
    }

    /// Why the first failed ticket failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.as_ref().map(|(_, error)| error.clone())
    }

    /// Polls until `ticket` is complete or about `slice` has passed. On a serial driver of this processor, it sleeps between
    /// polls.
    pub(crate) fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        let begin = Instant::now();
        let is_processor = self.context.caps.is_processor;
        let sleeps = is_processor && self.context.quirks.serial;
        let mut completion = None;
        while self.poll()? < ticket {
            let elapsed = begin.elapsed();
            if elapsed >= slice {
                break;
            }
            if sleeps
                && completion.is_none()
                && let Some(event) = self.event(ticket)?
            {
                completion = Completion::of(self.context.driver, event.raw());
            }
            match completion.as_ref().filter(|completion| !completion.has_ended()) {
                Some(completion) => completion.sleep(slice.saturating_sub(elapsed)),
                // On a processor the work itself needs the core.
                None => backoff(elapsed, !is_processor),
            }
        }
        Ok(())
    }

    /// Blocks in the driver, without holding a lock, until `ticket` is complete. Returns at once if the driver has nothing to
    /// wait on that ends with the ticket.
    pub(crate) fn wait_blocking(&self, ticket: u64, queue: Raw) -> Result<()> {
        self.context.check_alive()?;
        let last = self.last_submitted.load(Ordering::Acquire);
        if self.completed() >= ticket {
            return Ok(());
        }
        let mut waited = None;
        let is_watched = self.is_watched(ticket);
        if is_watched {
            waited = self.event(ticket)?.filter(|event| self.context.wait_event(event.raw()));
        } else if ticket != last || !self.context.finish_queue(queue) {
            // `clFinish` only for the last ticket: some drivers also wait for what is submitted meanwhile.
            return Ok(());
        }
        let mut state = self.state.lock();
        // Reap first, so that a failure of an earlier command is charged to its own ticket.
        self.reap(&mut state, waited.as_ref());
        if !is_watched {
            state.complete(last);
        }
        self.completed.fetch_max(state.completed.min(last), Ordering::AcqRel);
        Ok(())
    }

    /// The event that ends with `ticket`; `None` if the ticket is complete.
    pub(crate) fn event(&self, ticket: u64) -> Result<Option<Owned<Event>>> {
        if self.completed() >= ticket {
            return Ok(None);
        }
        let state = self.state.lock();
        if state.watched() < ticket {
            return Err(Error::unsupported(
                "the device can only wait for tickets that have an event or a marker",
            ));
        }
        if state.completed >= ticket {
            return Ok(None);
        }
        let index = state.pending.partition_point(|pending| pending.completes < ticket);
        state.pending.get(index).map(|pending| pending.event.share()).transpose()
    }
}
