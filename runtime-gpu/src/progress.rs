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

use crate::completion_events::CompletionEvents;
use crate::context::PrimaryContext;
use crate::driver::abi::{CuResult, Event, Stream};
use crate::free_list::FreeList;
use crate::interner::KernelNameId;
use crate::pinned_blocks::PinnedBlock;
use crate::timer::Timestamps;

/// Launches whose kernels are remembered.
const LAUNCH_LOG: usize = 256;
/// Bits of a name in a remembered launch.
const NAME_BITS: u32 = 20;
/// How long a wait only looks, without giving the processor away.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// How long a wait looks without sleeping.
const YIELD_TIME: Duration = Duration::from_millis(2);
/// Longest sleep between two looks.
const MAX_SLEEP: Duration = Duration::from_micros(200);

/// A small read: its bytes are in a block when `ticket` has ended on the device.
#[derive(Debug)]
pub(crate) struct Readback {
    pub(crate) ticket: u64,
    pub(crate) block: PinnedBlock,
    pub(crate) destination: HostBytesMut,
}

#[derive(Debug, Default)]
struct State {
    events: CompletionEvents,
    readbacks: VecDeque<Readback>,
    timestamps: Timestamps,
    /// The last submission, if it was a timestamp: its event is its mark too.
    last_timestamp: Option<(u64, Event)>,
    /// Ticket of the transfer that threads stage; nothing is submitted after it before it is through.
    staging: Option<u64>,
    /// Every ticket up to this one has ended, by what the host has done.
    completed_by_host: u64,
    failure: Option<(u64, Error)>,
}

/// What a queue shares with the threads that stage its transfers.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) primary: Arc<PrimaryContext>,
    pub(crate) stream: Stream,
    pub(crate) free_list: FreeList,
    last_submitted: AtomicU64,
    completed: AtomicU64,
    /// The last submission, if a mark of it is wanted, else 0. It is recorded before the next one, since until then the
    /// stream itself tells its end; taken back only with the state's lock held.
    pending_event: AtomicU64,
    /// `state.staging` is set.
    busy: AtomicBool,
    state: Mutex<State>,
    launch_log: [AtomicU64; LAUNCH_LOG],
}

impl StreamState {
    pub(crate) fn new(primary: Arc<PrimaryContext>, stream: Stream, free_list: FreeList) -> Self {
        Self {
            primary,
            stream,
            free_list,
            last_submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            pending_event: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            state: Mutex::default(),
            launch_log: [const { AtomicU64::new(0) }; LAUNCH_LOG],
        }
    }

    /// The completed prefix as it was last seen.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Notes that the driver has taken `ticket`.
    #[inline]
    pub(crate) fn note_submitted(&self, ticket: u64) {
        self.last_submitted.store(ticket, Ordering::Release);
    }

    /// Notes that `ticket` launches a kernel.
    #[inline]
    pub(crate) fn note_launch(&self, ticket: u64, name: KernelNameId) {
        let entry = ticket << NAME_BITS | u64::from(name.0 & ((1 << NAME_BITS) - 1));
        let place = usize::try_from(ticket % LAUNCH_LOG as u64).unwrap_or(0);
        self.launch_log[place].store(entry, Ordering::Relaxed);
    }

    /// The oldest launch that is not known to have ended.
    pub(crate) fn oldest_running_launch(&self) -> Option<(u64, KernelNameId)> {
        let (completed, submitted) = (self.completed(), self.last_submitted.load(Ordering::Acquire));
        let launches = self.launch_log.iter().map(|entry| entry.load(Ordering::Relaxed));
        let split = launches.map(|entry| (entry >> NAME_BITS, (entry & ((1 << NAME_BITS) - 1)) as u32));
        let open = split.filter(|(ticket, _)| *ticket > completed && *ticket <= submitted);
        open.min().map(|(ticket, name)| (ticket, KernelNameId(name)))
    }

    /// Stands before every submission: records the mark that is wanted of the last one, and waits until a staged transfer
    /// has handed everything to the driver.
    #[inline]
    pub(crate) fn prepare_submit(&self) -> Result<()> {
        let pending_event = self.pending_event.load(Ordering::Acquire) != 0;
        if pending_event || self.busy.load(Ordering::Acquire) { self.prepare_submit_slow() } else { Ok(()) }
    }

    fn prepare_submit_slow(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.record_pending(&mut state)?;
        if state.staging.is_none() {
            return Ok(());
        }
        drop(state);
        self.drain_staging()
    }

    /// Tells submissions whether there is something to do before them; only with the state's lock held.
    #[inline]
    fn tell_busy(&self, state: &State) {
        self.busy.store(state.staging.is_some(), Ordering::Release);
    }

    /// Records the mark that is wanted, if one is. Nothing is submitted after its ticket before this.
    fn record_pending(&self, state: &mut State) -> Result<()> {
        let ticket = self.pending_event.load(Ordering::Acquire);
        if ticket == 0 {
            return Ok(());
        }
        match state.last_timestamp {
            // Threads mark what they stage when they are through.
            _ if state.staging == Some(ticket) || state.completed_by_host >= ticket => {}
            Some((stamped, event)) if stamped == ticket => state.events.push_timestamp(ticket, event),
            _ => state.events.record(&self.primary, self.stream, ticket)?,
        }
        self.clear_pending(ticket);
        Ok(())
    }

    /// Takes back that a mark of `ticket` is wanted; only with the state's lock held, so that no submission overtakes it.
    fn clear_pending(&self, ticket: u64) {
        // Somebody may want a later one by now.
        let _ = self.pending_event.compare_exchange(ticket, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    #[cold]
    fn drain_staging(&self) -> Result<()> {
        let begin = Instant::now();
        while self.busy.load(Ordering::Acquire) {
            self.primary.check_alive()?;
            backoff(begin.elapsed());
        }
        self.state.lock().failure.as_ref().map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    /// Makes the end of `ticket`, the last submission, observable by itself; never beside a submission of this queue.
    #[inline]
    pub(crate) fn request_event(&self, ticket: u64) {
        if self.completed() < ticket {
            self.pending_event.store(ticket, Ordering::Release);
        }
    }

    /// Looks how far the queue is, and lets small reads land.
    pub(crate) fn poll(&self) -> Result<u64> {
        // Before the stream is asked: what is submitted meanwhile is not part of its answer.
        let submitted = self.last_submitted.load(Ordering::Acquire);
        if self.completed() >= submitted {
            return Ok(submitted);
        }
        self.primary.check_alive()?;
        let mut state = self.state.lock();
        let mut ended =
            state.events.poll(|event| self.primary.is_event_complete(event))?.max(state.completed_by_host);
        // A plain load of the tail: whatever is staged now may be newer than it.
        let plain = state.staging.is_none() && state.events.is_empty();
        if ended < submitted && plain && self.primary.is_stream_idle(self.stream)? {
            ended = submitted;
        }
        self.complete_readbacks(&mut state, ended)?;
        self.completed.fetch_max(ended, Ordering::AcqRel);
        let pending_event = self.pending_event.load(Ordering::Acquire);
        if pending_event != 0 && pending_event <= ended {
            self.clear_pending(pending_event);
        }
        Ok(self.completed())
    }

    /// Copies what small reads have brought.
    fn complete_readbacks(&self, state: &mut State, ended: u64) -> Result<()> {
        while state.readbacks.front().is_some_and(|readback| readback.ticket <= ended) {
            let Some(readback) = state.readbacks.pop_front() else { break };
            let (from, to, bytes) =
                (readback.block.as_ptr(), readback.destination.as_ptr(), readback.destination.len());
            let landed = self.primary.host_borrows.access(|| {
                // SAFETY: the block holds the bytes, and core keeps the destination until the ticket ends, which is
                // reported after this.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            });
            self.primary.pinned_blocks.free(readback.block);
            if !landed {
                self.primary.check_alive()?;
            }
        }
        Ok(())
    }

    /// Adds a small read, whose copy into the block is submitted.
    pub(crate) fn push_readback(&self, readback: Readback) {
        self.state.lock().readbacks.push_back(readback);
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
            backoff(elapsed);
        }
        Ok(())
    }

    /// Makes what is submitted to this queue later wait for `ticket` of `other`, on the device.
    pub(crate) fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        if std::ptr::eq(self, other) || other.completed() >= ticket {
            return Ok(());
        }
        self.prepare_submit()?;
        let mut state = other.state.lock();
        if state.events.completed() >= ticket || state.completed_by_host >= ticket {
            return Ok(());
        }
        other.record_pending(&mut state)?;
        let Some(event) = state.events.event_for(ticket) else {
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
    pub(crate) fn drain_free_list(&self) {
        if let Some(pool) = self.primary.pool {
            self.free_list.drain(|block| pool.free(block, self.stream));
        }
    }

    /// Begins a transfer that threads stage.
    pub(crate) fn begin_staging(&self, ticket: u64) {
        let mut state = self.state.lock();
        state.staging = Some(ticket);
        self.tell_busy(&state);
    }

    /// Ends a transfer whose last piece is on the stream: a mark tells when it is through.
    pub(crate) fn finish_upload(&self) {
        let mut state = self.state.lock();
        if let Some(ticket) = state.staging.take()
            && let Err(error) = state.events.record(&self.primary, self.stream, ticket)
        {
            state.failure.get_or_insert((ticket, error));
            state.completed_by_host = ticket;
        }
        self.tell_busy(&state);
    }

    /// Ends a transfer whose last byte is in the program's memory.
    pub(crate) fn finish_download(&self) {
        let mut state = self.state.lock();
        if let Some(ticket) = state.staging.take() {
            state.completed_by_host = ticket;
        }
        self.tell_busy(&state);
    }

    /// Ends a staged transfer that failed.
    pub(crate) fn fail_staging(&self, function: &str, code: CuResult) {
        let error = self.primary.fail(function, code);
        let mut state = self.state.lock();
        if let Some(ticket) = state.staging.take() {
            state.failure.get_or_insert((ticket, error));
            state.completed_by_host = ticket;
        }
        self.tell_busy(&state);
    }

    /// Records a timestamp.
    pub(crate) fn record_timestamp(&self, ticket: u64) -> Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if let Some(event) = state.timestamps.discard_oldest(self.completed()) {
            state.events.release_timestamp(event);
        }
        let event = state.timestamps.record(&self.primary, self.stream, ticket)?;
        state.last_timestamp = Some((ticket, event));
        Ok(())
    }

    /// Reads a timestamp of an ended ticket.
    pub(crate) fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.poll()?;
        let mut state = self.state.lock();
        let state = &mut *state;
        let event = state.timestamps.take(ticket)?;
        if !self.primary.is_event_complete(event)? {
            state.timestamps.put_back(ticket, event);
            return Err(Error::invalid(format!("ticket {ticket} has not ended; wait for its event first")));
        }
        state.events.release_timestamp(event);
        if state.last_timestamp.is_some_and(|(stamped, _)| stamped == ticket) {
            state.last_timestamp = None;
        }
        state.timestamps.read(&self.primary, event)
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        self.drain_free_list();
        let state = self.state.get_mut();
        for readback in state.readbacks.drain(..) {
            self.primary.pinned_blocks.free(readback.block);
        }
        if let Ok(_current) = self.primary.make_current() {
            state.events.close(self.primary.driver);
            state.timestamps.close(self.primary.driver);
            // SAFETY: ours, and used by nobody any more; the driver finishes what is on it.
            let _ = unsafe { (self.primary.driver.cuStreamDestroy_v2)(self.stream) };
        }
    }
}

/// Lets others run between two looks, the more the longer the wait has lasted.
pub(crate) fn backoff(elapsed: Duration) {
    if elapsed < SPIN_TIME {
        // Once: it lasts 40 ns and more, and what is waited for is often a few microseconds away.
        std::hint::spin_loop();
    } else if elapsed < YIELD_TIME {
        std::thread::yield_now();
    } else {
        std::thread::sleep((elapsed / 32).min(MAX_SLEEP));
    }
}
