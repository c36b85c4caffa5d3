//! How far a queue is: what its marks, its staged transfer and its stream say, as one completed prefix.

#![allow(
    unsafe_code,
    reason = "calls the driver, and copies into memory that core keeps until the ticket ends"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::HostBytesMut;
use runtime_core::{Error, Result};

use crate::bounce::Block;
use crate::context::Primary;
use crate::driver::abi::{Code, Event, Stream};
use crate::marks::Marks;
use crate::names::NameId;
use crate::spares::Spares;
use crate::timer::Timestamps;

/// Launches whose kernels are remembered.
const REMEMBERED: usize = 256;
/// Bits of a name in a remembered launch.
const NAME_BITS: u32 = 20;
/// How long a wait only looks, without giving the processor away.
const SPIN: Duration = Duration::from_micros(50);
/// How long a wait looks without sleeping.
const AWAKE: Duration = Duration::from_millis(2);
/// Longest sleep between two looks.
const LONGEST_PAUSE: Duration = Duration::from_micros(200);

/// A small read: its bytes are in a block when `ticket` has ended on the device.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) ticket: u64,
    pub(crate) block: Block,
    pub(crate) destination: HostBytesMut,
}

#[derive(Debug, Default)]
struct State {
    marks: Marks,
    landings: VecDeque<Landing>,
    timestamps: Timestamps,
    /// The last submission, if it was a timestamp: its event is its mark too.
    last_stamp: Option<(u64, Event)>,
    /// Ticket of the transfer that threads stage; nothing is submitted after it before it is through.
    staged: Option<u64>,
    /// Every ticket up to this one has ended, by what the host has done.
    ended_on_host: u64,
    failure: Option<(u64, Error)>,
}

/// What a queue shares with the threads that stage its transfers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) primary: Arc<Primary>,
    pub(crate) stream: Stream,
    pub(crate) spares: Spares,
    tail: AtomicU64,
    completed: AtomicU64,
    /// The last submission, if a mark of it is wanted, else 0. It is recorded before the next one, since until then the
    /// stream itself tells its end; taken back only with the state's lock held.
    wanted: AtomicU64,
    /// `state.staged` is set.
    busy: AtomicBool,
    state: Mutex<State>,
    launched: [AtomicU64; REMEMBERED],
}

impl Shared {
    pub(crate) fn new(primary: Arc<Primary>, stream: Stream, spares: Spares) -> Self {
        Self {
            primary,
            stream,
            spares,
            tail: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            state: Mutex::default(),
            launched: [const { AtomicU64::new(0) }; REMEMBERED],
        }
    }

    /// The completed prefix as it was last seen.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Notes that the driver has taken `ticket`.
    #[inline]
    pub(crate) fn took(&self, ticket: u64) {
        self.tail.store(ticket, Ordering::Release);
    }

    /// Notes that `ticket` launches a kernel.
    #[inline]
    pub(crate) fn launches(&self, ticket: u64, name: NameId) {
        let entry = ticket << NAME_BITS | u64::from(name.0 & ((1 << NAME_BITS) - 1));
        let place = usize::try_from(ticket % REMEMBERED as u64).unwrap_or(0);
        self.launched[place].store(entry, Ordering::Relaxed);
    }

    /// The oldest launch that is not known to have ended.
    pub(crate) fn oldest_launch(&self) -> Option<(u64, NameId)> {
        let (completed, tail) = (self.completed(), self.tail.load(Ordering::Acquire));
        let launches = self.launched.iter().map(|entry| entry.load(Ordering::Relaxed));
        let split = launches.map(|entry| (entry >> NAME_BITS, (entry & ((1 << NAME_BITS) - 1)) as u32));
        let open = split.filter(|(ticket, _)| *ticket > completed && *ticket <= tail);
        open.min().map(|(ticket, name)| (ticket, NameId(name)))
    }

    /// Stands before every submission: records the mark that is wanted of the last one, and waits until a staged transfer
    /// has handed everything to the driver.
    #[inline]
    pub(crate) fn settle(&self) -> Result<()> {
        let wanted = self.wanted.load(Ordering::Acquire) != 0;
        if wanted || self.busy.load(Ordering::Acquire) { self.settle_last() } else { Ok(()) }
    }

    fn settle_last(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.record_wanted(&mut state)?;
        if state.staged.is_none() {
            return Ok(());
        }
        drop(state);
        self.settle_staged()
    }

    /// Tells submissions whether there is something to do before them; only with the state's lock held.
    #[inline]
    fn tell_busy(&self, state: &State) {
        self.busy.store(state.staged.is_some(), Ordering::Release);
    }

    /// Records the mark that is wanted, if one is. Nothing is submitted after its ticket before this.
    fn record_wanted(&self, state: &mut State) -> Result<()> {
        let ticket = self.wanted.load(Ordering::Acquire);
        if ticket == 0 {
            return Ok(());
        }
        match state.last_stamp {
            // Threads mark what they stage when they are through.
            _ if state.staged == Some(ticket) || state.ended_on_host >= ticket => {}
            Some((stamped, event)) if stamped == ticket => state.marks.borrow(ticket, event),
            _ => state.marks.record(&self.primary, self.stream, ticket)?,
        }
        self.take_back(ticket);
        Ok(())
    }

    /// Takes back that a mark of `ticket` is wanted; only with the state's lock held, so that no submission overtakes it.
    fn take_back(&self, ticket: u64) {
        // Somebody may want a later one by now.
        let _ = self.wanted.compare_exchange(ticket, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    #[cold]
    fn settle_staged(&self) -> Result<()> {
        let begin = Instant::now();
        while self.busy.load(Ordering::Acquire) {
            self.primary.check_alive()?;
            pause(begin.elapsed());
        }
        self.state.lock().failure.as_ref().map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    /// Makes the end of `ticket`, the last submission, observable by itself; never beside a submission of this queue.
    #[inline]
    pub(crate) fn mark(&self, ticket: u64) {
        if self.completed() < ticket {
            self.wanted.store(ticket, Ordering::Release);
        }
    }

    /// Looks how far the queue is, and lets small reads land.
    pub(crate) fn poll(&self) -> Result<u64> {
        // Before the stream is asked: what is submitted meanwhile is not part of its answer.
        let tail = self.tail.load(Ordering::Acquire);
        if self.completed() >= tail {
            return Ok(tail);
        }
        self.primary.check_alive()?;
        let mut state = self.state.lock();
        let mut ended = state.marks.look(|event| self.primary.has_passed(event))?.max(state.ended_on_host);
        // A plain load of the tail: whatever is staged now may be newer than it.
        let plain = state.staged.is_none() && state.marks.is_empty();
        if ended < tail && plain && self.primary.is_idle(self.stream)? {
            ended = tail;
        }
        self.land(&mut state, ended)?;
        self.completed.fetch_max(ended, Ordering::AcqRel);
        let wanted = self.wanted.load(Ordering::Acquire);
        if wanted != 0 && wanted <= ended {
            self.take_back(wanted);
        }
        Ok(self.completed())
    }

    /// Copies what small reads have brought.
    fn land(&self, state: &mut State, ended: u64) -> Result<()> {
        while state.landings.front().is_some_and(|landing| landing.ticket <= ended) {
            let Some(landing) = state.landings.pop_front() else { break };
            let (from, to, bytes) =
                (landing.block.as_ptr(), landing.destination.as_ptr(), landing.destination.len());
            let landed = self.primary.lending.copy(|| {
                // SAFETY: the block holds the bytes, and core keeps the destination until the ticket ends, which is
                // reported after this.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            });
            self.primary.bounces.give(landing.block);
            if !landed {
                self.primary.check_alive()?;
            }
        }
        Ok(())
    }

    /// Adds a small read, whose copy into the block is submitted.
    pub(crate) fn expect(&self, landing: Landing) {
        self.state.lock().landings.push_back(landing);
    }

    /// The first failed ticket; 0: none.
    pub(crate) fn first_failed(&self) -> u64 {
        self.state.lock().failure.as_ref().map_or(0, |(ticket, _)| *ticket)
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
            pause(elapsed);
        }
        Ok(())
    }

    /// Makes what is submitted to this queue later wait for `ticket` of `other`, on the device.
    pub(crate) fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        if std::ptr::eq(self, other) || other.completed() >= ticket {
            return Ok(());
        }
        self.settle()?;
        let mut state = other.state.lock();
        if state.marks.passed() >= ticket || state.ended_on_host >= ticket {
            return Ok(());
        }
        other.record_wanted(&mut state)?;
        let Some(event) = state.marks.event(ticket) else {
            // Core then waits on the host: a staged transfer is not in the stream yet.
            return Err(Error::unsupported(
                "a wait on the device for a transfer that is being staged is not supported",
            ));
        };
        // SAFETY: both are alive; the lock keeps the event from being recorded anew meanwhile.
        let code = unsafe { (self.primary.driver.cuStreamWaitEvent)(self.stream, event, 0) };
        self.primary.check("cuStreamWaitEvent", code)
    }

    /// Gives the pool back what is kept.
    pub(crate) fn free_spares(&self) {
        if let Some(pool) = self.primary.pool {
            self.spares.empty(|block| pool.free(block, self.stream));
        }
    }

    /// Begins a transfer that threads stage.
    pub(crate) fn begin_staged(&self, ticket: u64) {
        let mut state = self.state.lock();
        state.staged = Some(ticket);
        self.tell_busy(&state);
    }

    /// Ends a transfer whose last piece is on the stream: a mark tells when it is through.
    pub(crate) fn staged_to_device(&self) {
        let mut state = self.state.lock();
        if let Some(ticket) = state.staged.take()
            && let Err(error) = state.marks.record(&self.primary, self.stream, ticket)
        {
            state.failure.get_or_insert((ticket, error));
            state.ended_on_host = ticket;
        }
        self.tell_busy(&state);
    }

    /// Ends a transfer whose last byte is in the program's memory.
    pub(crate) fn staged_to_host(&self) {
        let mut state = self.state.lock();
        if let Some(ticket) = state.staged.take() {
            state.ended_on_host = ticket;
        }
        self.tell_busy(&state);
    }

    /// Ends a staged transfer that failed.
    pub(crate) fn staging_failed(&self, function: &str, code: Code) {
        let error = self.primary.fail(function, code);
        let mut state = self.state.lock();
        if let Some(ticket) = state.staged.take() {
            state.failure.get_or_insert((ticket, error));
            state.ended_on_host = ticket;
        }
        self.tell_busy(&state);
    }

    /// Records a timestamp.
    pub(crate) fn stamp(&self, ticket: u64) -> Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if let Some(event) = state.timestamps.forget(self.completed()) {
            state.marks.give_back(event);
        }
        let event = state.timestamps.record(&self.primary, self.stream, ticket)?;
        state.last_stamp = Some((ticket, event));
        Ok(())
    }

    /// Reads a timestamp of an ended ticket.
    pub(crate) fn read_stamp(&self, ticket: u64) -> Result<u64> {
        self.poll()?;
        let mut state = self.state.lock();
        let state = &mut *state;
        let event = state.timestamps.take(ticket)?;
        if !self.primary.has_passed(event)? {
            state.timestamps.keep(ticket, event);
            return Err(Error::invalid(format!("ticket {ticket} has not ended; wait for its event first")));
        }
        state.marks.give_back(event);
        if state.last_stamp.is_some_and(|(stamped, _)| stamped == ticket) {
            state.last_stamp = None;
        }
        state.timestamps.read(&self.primary, event)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.free_spares();
        let state = self.state.get_mut();
        for landing in state.landings.drain(..) {
            self.primary.bounces.give(landing.block);
        }
        if let Ok(_current) = self.primary.enter() {
            state.marks.close(self.primary.driver);
            state.timestamps.close(self.primary.driver);
            // SAFETY: ours, and used by nobody any more; the driver finishes what is on it.
            let _ = unsafe { (self.primary.driver.cuStreamDestroy_v2)(self.stream) };
        }
    }
}

/// Lets others run between two looks, the more the longer the wait has lasted.
pub(crate) fn pause(elapsed: Duration) {
    if elapsed < SPIN {
        // Once: it lasts 40 ns and more, and what is waited for is often a few microseconds away.
        std::hint::spin_loop();
    } else if elapsed < AWAKE {
        std::thread::yield_now();
    } else {
        std::thread::sleep((elapsed / 32).min(LONGEST_PAUSE));
    }
}
