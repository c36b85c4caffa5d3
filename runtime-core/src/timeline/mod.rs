//! Tickets, waiting and lifetimes: the timelines of a device's queues, hazards, events, and deferred freeing.
//!
//! A [`Timeline`] is core's side of one backend queue; one more counts the program's own transfers, which have no queue.
//! Submissions get the tickets 1, 2, 3, …, and complete in that order:
//!
//! ```text
//!      1 … completed │ completed+1 … signaled │ signaled+1 … last_submitted │ not yet submitted
//!      ended         │ in flight,             │ in flight; the end shows    │
//!                    │ the end shows          │ after a later signal        │
//! ```
//!
//! `completed`, `signaled`, `flushed` and `last_submitted` only grow, and `completed ≤ last_submitted`. `flushed` is the last ticket
//! that is known to have reached the driver. A ticket goes through these states:
//!
//! ```text
//!                          ┌── completed ≥ ticket, no open edge ──► succeeded
//!   submitted ──► in flight┤
//!                          └── first_failed ≤ ticket ─────────────► failed ──► failed and ended
//!                                                                    (its memory may still be in use until it has ended)
//! ```
//!
//! Failure is permanent: every ticket from `first_failed` on has failed, also those submitted later. An [`Edge`] records that
//! a ticket waits, on the device, for a ticket of another queue; a failure travels along it, so a ticket with an open edge has
//! not succeeded yet. `end` is the state of the device: open, closed after all work had ended, or leaked.
//!
//! A [virtual queue](virtual_queue) has a timeline without a queue of the backend, too. Its submissions are listed, and get tickets
//! of another queue later.
//!
//! Locks: `submission` is held through every submitting driver call. While `edges` is locked, only `failure` may be locked; while
//! `failure` is locked, no other lock is taken.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

pub(crate) mod deferred_free;
pub(crate) mod device_state;
mod edges;
pub(crate) mod event;
pub(crate) mod hazards;
mod hold;
pub(crate) mod host_access;
pub(crate) mod host_pool;
pub(crate) mod open_device;
pub(crate) mod queue_table;
pub(crate) mod virtual_queue;
mod wait;
pub(crate) mod wait_thread;
pub(crate) mod word_lock;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::abi::{Handle, Progress, QueueCalls, Status, SubmitInfo};
use crate::timeline::device_state::DeviceState;
use crate::timeline::host_pool::HostPool;
use crate::timeline::virtual_queue::{Cause, Location, VirtualQueue};
use crate::timeline::word_lock::WordLock;
use crate::{Error, ErrorKind, Result};

/// `first_failed` while no ticket has failed.
const NONE: u64 = u64::MAX;
/// Values of `end`: the device is open or being closed; it was closed after all work had ended; it was leaked with work in
/// flight.
const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const LEAKED: u8 = 2;
/// Progress before the backend has answered; no backend can report it.
const UNANSWERED: Progress = Progress { completed: u64::MAX, first_failed: u64::MAX };
/// How often, and at which interval, a device that answers with errors is polled before it is declared lost.
pub(crate) const LAST_TRIES: u32 = 50;
pub(crate) const LAST_PAUSE: Duration = Duration::from_millis(2);

/// The error of a backend that reports impossible `progress` after `submitted` tickets.
fn wrong_progress(progress: Progress, submitted: u64) -> Error {
    let Progress { completed, first_failed } = progress;
    let message = if completed == UNANSWERED.completed && first_failed == UNANSWERED.first_failed {
        "the backend's `poll` succeeded without a result".to_owned()
    } else {
        format!(
            "the backend reports completed {completed} and first_failed {first_failed}, but {submitted} tickets were \
             submitted"
        )
    };
    let message =
        format!("{message}; what it still uses is unknown, so the device is lost, and its memory is leaked");
    Error::new(ErrorKind::DeviceLost, message)
}

/// What timelines, events and the wait thread need of an open device. A strong reference keeps it open.
///
/// `OpenDevice` implements it once; it is a trait so that this module does not import `open_device`, which is made of timelines.
pub(crate) trait DeviceServices: fmt::Debug + Send + Sync {
    fn state(&self) -> &DeviceState;

    /// Marks the device as lost, and fails all work in flight.
    fn mark_lost(&self, error: &Error);

    /// Wakes `waker` once a ticket has a result. `registration` identifies the future, and is 0 at first.
    ///
    /// # Errors
    /// `OutOfResources` when the wait thread cannot be started.
    fn register_waker(&self, at: (&Arc<Timeline>, u64), registration: &mut u64, waker: &Waker) -> Result<()>;

    /// Removes the waker of a dropped future.
    fn forget_waker(&self, registration: u64);

    /// Frees dropped resources whose work has ended; returns whether memory of external owners is left.
    fn reap(&self) -> bool;

    /// The threads that run host tasks.
    fn host_pool(&self) -> &Arc<HostPool>;
}

/// `ticket` waits, on the device, for `source_ticket` of `source`.
#[derive(Debug)]
struct Edge {
    ticket: u64,
    source: Arc<Timeline>,
    source_ticket: u64,
}

/// Core's side of a backend queue. The fields that every launch reads come first, so that they share cache lines.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Timeline {
    /// Held through every submitting driver call.
    pub(crate) submission: WordLock<()>,
    pub(crate) id: u64,
    pub(crate) handle: Handle,
    /// The lock of a device that declares itself serial.
    serial: Option<Arc<Mutex<()>>>,
    last_submitted: AtomicU64,
    first_failed: AtomicU64,
    /// The last ticket whose event was handed out, and the last one whose only event was dropped again.
    watched: AtomicU64,
    unwatched: AtomicU64,
    /// Another queue has waited for this one: signal every submission.
    signal_all: AtomicBool,
    /// Whether the backend can block until a ticket has ended; assumed until it refuses.
    can_block: AtomicBool,
    /// Its work waits until the queue is resumed.
    is_held: AtomicBool,
    end: AtomicU8,
    /// Number of `edges`, readable without their lock.
    edge_count: AtomicUsize,
    pub(crate) calls: QueueCalls,
    pub(crate) device: Weak<dyn DeviceServices>,
    /// Address of the device's state, to recognise it; unique because `device` keeps the allocation.
    device_address: usize,
    name: String,
    /// The last signaled ticket: its end is observable by itself.
    signaled: AtomicU64,
    /// The last ticket that is known to have reached the driver.
    flushed: AtomicU64,
    completed: AtomicU64,
    /// The error of `first_failed`.
    failure: Mutex<Option<Error>>,
    edges: Mutex<SmallVec<[Edge; 4]>>,
    /// A submission that finds this many edges closes what it can.
    edge_limit: AtomicUsize,
    /// What only the timeline of a virtual queue has.
    virtual_queue: Option<Box<VirtualQueue>>,
    /// The number of `Queue`s that submit to it.
    handles: AtomicUsize,
}

// SAFETY: `handle` is a backend queue; the contract of the table lets any thread use it under the rules kept here.
unsafe impl Send for Timeline {}
// SAFETY: as above.
unsafe impl Sync for Timeline {}

impl Timeline {
    pub(crate) fn new(
        id: u64,
        handle: Handle,
        device: Weak<dyn DeviceServices>,
        state: &DeviceState,
    ) -> Self {
        Self {
            id,
            handle,
            calls: state.calls.queue,
            device,
            device_address: std::ptr::from_ref(state).addr(),
            submission: WordLock::default(),
            serial: state.serial.clone(),
            name: state.name.clone(),
            last_submitted: AtomicU64::new(0),
            signaled: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            first_failed: AtomicU64::new(NONE),
            watched: AtomicU64::new(0),
            unwatched: AtomicU64::new(0),
            signal_all: AtomicBool::new(false),
            can_block: AtomicBool::new(!handle.is_null()),
            is_held: AtomicBool::new(false),
            end: AtomicU8::new(OPEN),
            failure: Mutex::default(),
            edges: Mutex::default(),
            edge_count: AtomicUsize::new(0),
            edge_limit: AtomicUsize::new(edges::LIMIT),
            virtual_queue: None,
            handles: AtomicUsize::new(1),
        }
    }

    /// Calls a function of the backend's queue table.
    #[inline]
    pub(crate) fn raw(
        &self,
        operation: &'static str,
        call: impl FnOnce(&QueueCalls, Handle) -> Status,
    ) -> Result<()> {
        let status = match &self.serial {
            None => call(&self.calls, self.handle),
            Some(serial) => {
                let _one_at_a_time = serial.lock();
                call(&self.calls, self.handle)
            }
        };
        if status.is_null() { Ok(()) } else { Err(self.refused(operation, status)) }
    }

    #[cold]
    fn refused(&self, operation: &'static str, status: Status) -> Error {
        let error = device_state::call_error(&self.name, operation, status);
        if error.kind() == ErrorKind::DeviceLost {
            self.fail_from(self.completed() + 1, &error);
            if let Some(device) = self.device.upgrade() {
                device.mark_lost(&error);
            }
        }
        error
    }

    /// The last ticket that was assigned.
    #[inline]
    pub(crate) fn last_submitted(&self) -> u64 {
        self.last_submitted.load(Ordering::Acquire)
    }

    /// Assigns the next ticket; call it under the submission lock.
    #[inline]
    pub(crate) fn set_last_submitted(&self, ticket: u64) {
        self.last_submitted.store(ticket, Ordering::Release);
    }

    /// Submits one operation, after all earlier ones; returns its ticket.
    ///
    /// # Errors
    /// The failure of the queue; a refusal by the backend, which takes no ticket.
    pub(crate) fn submit_next(
        &self,
        operation: &'static str,
        call: impl FnOnce(&QueueCalls, Handle, SubmitInfo) -> Status,
    ) -> Result<u64> {
        let _submission = self.submission.lock();
        self.check_healthy()?;
        let ticket = self.last_submitted() + 1;
        self.raw(operation, |calls, queue| call(calls, queue, SubmitInfo { ticket, after: ticket - 1 }))?;
        self.set_last_submitted(ticket);
        Ok(ticket)
    }

    /// The last completed ticket, as of the last poll.
    #[inline]
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Records that `ticket` and all before it have ended.
    #[inline]
    pub(crate) fn complete(&self, ticket: u64) {
        self.completed.fetch_max(ticket, Ordering::AcqRel);
    }

    /// Rejects a submission to a queue that has failed.
    ///
    /// # Errors
    /// The failure.
    #[inline]
    pub(crate) fn check_healthy(&self) -> Result<()> {
        if self.first_failed.load(Ordering::Acquire) == NONE { Ok(()) } else { Err(self.failure_error()) }
    }

    #[cold]
    fn failure_error(&self) -> Error {
        let error = self.failure.lock().clone();
        error.unwrap_or_else(|| Error::new(ErrorKind::Internal, "a failure without an error"))
    }

    /// The first failed ticket and its error.
    pub(crate) fn failure(&self) -> Option<(u64, Error)> {
        match self.first_failed.load(Ordering::Acquire) {
            NONE => None,
            ticket => Some((ticket, self.failure_error())),
        }
    }

    /// Fails `ticket` and all later ones, unless an earlier one failed already.
    pub(crate) fn fail_from(&self, ticket: u64, error: &Error) {
        let mut failure = self.failure.lock();
        if ticket < self.first_failed.load(Ordering::Acquire) {
            *failure = Some(
                error
                    .clone()
                    .with_note(format_args!("ticket {ticket} of queue {} on {} failed", self.id, self.name)),
            );
            self.first_failed.store(ticket, Ordering::Release);
        }
    }

    /// The result of a ticket as of the last poll; `None` while it may be in flight.
    #[inline]
    pub(crate) fn status(&self, ticket: u64) -> Option<Result<()>> {
        if self.first_failed.load(Ordering::Acquire) <= ticket {
            return Some(Err(self.failure_error()));
        }
        if let Some(own) = &self.virtual_queue {
            return own.status(ticket);
        }
        if self.completed() < ticket || self.has_open_edge(ticket) {
            return None;
        }
        // A failure may have been recorded between the two loads.
        (self.first_failed.load(Ordering::Acquire) > ticket)
            .then_some(Ok(()))
            .or_else(|| Some(Err(self.failure_error())))
    }

    /// Whether a ticket has ended, so that its memory may be reused. A failed ticket may still be running.
    pub(crate) fn has_ended(&self, ticket: u64) -> bool {
        self.completed() >= ticket || self.virtual_queue.as_ref().is_some_and(|own| own.has_ended(ticket))
    }

    /// Counts one more `Queue` that submits to it.
    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one less; returns whether it was the last.
    pub(crate) fn drop_handle(&self) -> bool {
        self.handles.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether it is a queue of this device.
    pub(crate) fn is_of(&self, device: &DeviceState) -> bool {
        self.device_address == std::ptr::from_ref(device).addr()
    }

    /// Whether it has no queue of the backend: its tickets are transfers by the program, which completes them, or those of a
    /// virtual queue.
    pub(crate) fn is_of_program(&self) -> bool {
        self.handle.is_null()
    }

    /// Begins the next transfer by the program; returns its ticket. One thread at a time uses such a timeline.
    pub(crate) fn begin_by_program(&self) -> u64 {
        let ticket = self.last_submitted() + 1;
        self.set_last_submitted(ticket);
        ticket
    }

    /// Asks the backend for the progress of this queue, and records it. The device must be open.
    pub(crate) fn poll_queue(&self) -> Result<()> {
        if self.is_of_program() {
            return self.poll_real_queue();
        }
        let mut progress = UNANSWERED;
        // SAFETY: the queue is open and `progress` is writable.
        self.raw("poll", |calls, queue| unsafe { (calls.poll)(queue, &raw mut progress) })?;
        if progress.completed.max(progress.first_failed) > self.last_submitted() {
            progress = self.check_progress(progress)?;
        }
        if progress.first_failed != 0 && progress.first_failed < self.first_failed.load(Ordering::Acquire) {
            // SAFETY: the queue is open; it answers an owned error or null.
            let error = self.raw("queue", |calls, queue| unsafe { (calls.failure)(queue) });
            let error =
                error.err().unwrap_or_else(|| Error::new(ErrorKind::Failed, "the device gave no reason"));
            self.fail_from(progress.first_failed, &error);
        }
        self.complete(progress.completed);
        Ok(())
    }

    /// Judges progress beyond the last ticket. One more may be right: a submission that is under way on another thread may
    /// have ended before its ticket was recorded. Anything beyond that was never submitted.
    ///
    /// # Errors
    /// `DeviceLost`: which memory such a backend still uses is unknown.
    #[cold]
    fn check_progress(&self, progress: Progress) -> Result<Progress> {
        let Progress { completed, first_failed } = progress;
        // A thread that holds the lock may be submitting. Read after the poll, since tickets only grow.
        let under_way = u64::from(self.submission.try_lock().is_none());
        let tail = self.last_submitted();
        if completed.max(first_failed) <= tail.saturating_add(under_way) {
            return Ok(Progress {
                completed: completed.min(tail),
                first_failed: if first_failed > tail { 0 } else { first_failed },
            });
        }
        let error = wrong_progress(progress, tail).in_operation("poll").on_device(&self.name);
        if let Some(device) = self.device.upgrade() {
            device.state().set_distrusted();
            device.mark_lost(&error);
        }
        self.fail_from(self.completed() + 1, &error);
        Err(error)
    }

    /// Signals every later submission: another queue waits for this one.
    pub(crate) fn signal_from_now_on(&self) {
        self.signal_all.store(true, Ordering::Relaxed);
    }

    /// Signals the last submission if it is watched. Call it under the submission lock, before the next submission.
    #[inline]
    pub(crate) fn signal_watched(&self) -> Result<()> {
        let tail = self.last_submitted.load(Ordering::Relaxed);
        if tail != 0 && self.is_watched(tail) { self.signal_last() } else { Ok(()) }
    }

    /// Whether the program has an event of `ticket`, the last one, so that a wait for it must not wait for later work.
    #[inline]
    pub(crate) fn is_watched(&self, ticket: u64) -> bool {
        self.watched.load(Ordering::Relaxed) == ticket && self.unwatched.load(Ordering::Relaxed) != ticket
    }

    /// Signals the submission just made if it is a transfer, or if other queues wait for this one. Call it under the submission
    /// lock.
    #[inline]
    pub(crate) fn signal_submitted(&self, transfer: bool) -> Result<()> {
        if transfer || self.signal_all.load(Ordering::Relaxed) { self.signal_last() } else { Ok(()) }
    }

    fn signal_last(&self) -> Result<()> {
        let tail = self.last_submitted();
        if self.signaled.load(Ordering::Acquire) < tail {
            // SAFETY: the queue is open and `tail` is its last ticket.
            self.raw("signal", |calls, queue| unsafe { (calls.signal)(queue, tail) })?;
            self.signaled.store(tail, Ordering::Release);
        }
        Ok(())
    }

    /// Signals `ticket` and flushes the queue: nothing may wait for work that the driver does not have.
    pub(crate) fn signal_and_flush(&self, ticket: u64) -> Result<()> {
        if self.is_virtual() {
            self.hand_over(ticket, Cause::Event);
            return match self.locate(ticket) {
                Location::Real(real, at) => real.signal_and_flush(at),
                _ => Ok(()),
            };
        }
        // The end of `ticket` may only show by a later signal, which must have reached the driver, too.
        let signaled = self.signaled.load(Ordering::Acquire);
        if self.is_of_program() || signaled >= ticket && self.flushed.load(Ordering::Acquire) >= signaled {
            return Ok(());
        }
        let _submission = self.submission.lock();
        if self.signaled.load(Ordering::Acquire) < ticket {
            self.signal_last()?;
        }
        let tail = self.last_submitted();
        // SAFETY: the queue is open.
        self.raw("flush", |calls, queue| unsafe { (calls.flush)(queue) })?;
        self.flushed.store(tail, Ordering::Release);
        Ok(())
    }

    /// Records that the device is closed, or leaked with work in flight.
    pub(crate) fn close(&self, leaked: bool) {
        self.end.store(if leaked { LEAKED } else { CLOSED }, Ordering::Release);
    }

    /// Records that an event of `ticket`, the last one, was handed out.
    #[inline]
    pub(crate) fn watch(&self, ticket: u64) {
        self.watched.store(ticket, Ordering::Relaxed);
    }

    /// Records that an event of the last ticket was handed out, even if there was one before; returns that ticket.
    pub(crate) fn watch_last(&self) -> u64 {
        let _submission = self.submission.lock();
        let tail = self.last_submitted();
        self.unwatched.store(0, Ordering::Relaxed);
        self.watch(tail);
        tail
    }

    /// Records that the only event of `ticket` was dropped.
    #[inline]
    pub(crate) fn event_dropped(&self, ticket: u64) {
        if self.watched.load(Ordering::Relaxed) == ticket {
            // If another submission has set `watched` meanwhile, this may hide that its own event was dropped. That costs one needless signal.
            self.unwatched.store(ticket, Ordering::Relaxed);
        }
    }

    /// Whether all work has ended and no failure can reach it any more.
    pub(crate) fn is_finished(&self) -> bool {
        self.has_ended(self.last_submitted()) && !self.has_edges()
    }

    /// Whether `ticket`, which has no result yet, is not known to have reached the driver, or must not start yet.
    pub(crate) fn is_recorded(&self, ticket: u64) -> bool {
        match self.locate(ticket) {
            Location::Here => {
                self.is_held.load(Ordering::Acquire) || self.flushed.load(Ordering::Acquire) < ticket
            }
            Location::Real(real, at) => real.is_recorded(at),
            Location::Listed | Location::Over => true,
        }
    }

    /// Name of the device.
    pub(crate) fn device_name(&self) -> &str {
        &self.name
    }
}
