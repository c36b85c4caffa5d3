//! The state of a stream, and its progress as one completed prefix of tickets: from completion events, from the transfer being
//! staged, and from the stream itself. The states are drawn in [`crate::queue`].

#![allow(
    unsafe_code,
    reason = "calls the driver, and copies into memory that core keeps until the ticket ends"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::{Direction, HostBytesMut, backoff};
use runtime_core::{Error, Result};

use crate::completion_events::CompletionEvents;
use crate::context::PrimaryContext;
use crate::driver::abi::{Event, Stream};
use crate::free_list::FreeList;
use crate::interner::KernelNameId;
use crate::pinned_blocks::PinnedBlock;
use crate::timer::Timestamps;

/// Launches whose kernels are recorded.
const LAUNCH_LOG: usize = 256;
/// Bits of the kernel name in a recorded launch.
const NAME_BITS: u32 = 20;

/// A small read: once `ticket` has ended on the device, the bytes are in the block.
#[derive(Debug)]
pub(crate) struct Readback {
    pub(crate) ticket: u64,
    pub(crate) block: PinnedBlock,
    pub(crate) destination: HostBytesMut,
}

#[derive(Debug, Default)]
struct Inner {
    events: CompletionEvents,
    readbacks: VecDeque<Readback>,
    timestamps: Timestamps,
    /// The latest timestamp: its event doubles as the completion event of its ticket.
    last_timestamp: Option<(u64, Event)>,
    /// Every ticket up to this one has ended, as established by the host.
    completed_by_host: u64,
    /// The first failed ticket, and why.
    failure: Option<(u64, Error)>,
}

/// The state of a stream, shared by its queue and the threads that stage its transfers.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) primary: Arc<PrimaryContext>,
    pub(crate) stream: Stream,
    pub(crate) free_list: FreeList,
    last_submitted: AtomicU64,
    completed: AtomicU64,
    /// The last submission if its completion event was requested and is not recorded yet, else 0. Recorded before the next
    /// submission, since until then the idle stream reports its end; cleared only with `inner` locked.
    pending_event: AtomicU64,
    /// The ticket being staged, else 0; written only with `inner` locked. Nothing is submitted meanwhile.
    staging: AtomicU64,
    inner: Mutex<Inner>,
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
            staging: AtomicU64::new(0),
            inner: Mutex::default(),
            launch_log: [const { AtomicU64::new(0) }; LAUNCH_LOG],
        }
    }

    /// The completed prefix as of the last poll.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Records that `ticket` is submitted.
    #[inline]
    pub(crate) fn note_submitted(&self, ticket: u64) {
        self.last_submitted.store(ticket, Ordering::Release);
    }

    /// Records the kernel that `ticket` launches.
    #[inline]
    pub(crate) fn note_launch(&self, ticket: u64, name: KernelNameId) {
        let entry = ticket << NAME_BITS | u64::from(name.0 & ((1 << NAME_BITS) - 1));
        let index = usize::try_from(ticket % LAUNCH_LOG as u64).unwrap_or(0);
        self.launch_log[index].store(entry, Ordering::Relaxed);
    }

    /// The oldest launch that is not known to have ended.
    pub(crate) fn oldest_running_launch(&self) -> Option<(u64, KernelNameId)> {
        let (completed, submitted) = (self.completed(), self.last_submitted.load(Ordering::Acquire));
        let entries = self.launch_log.iter().map(|entry| entry.load(Ordering::Relaxed));
        let launches = entries.map(|entry| (entry >> NAME_BITS, (entry & ((1 << NAME_BITS) - 1)) as u32));
        let running = launches.filter(|(ticket, _)| *ticket > completed && *ticket <= submitted);
        running.min().map(|(ticket, name)| (ticket, KernelNameId(name)))
    }

    /// Must precede every submission: records the pending completion event of the last one, and waits until the transfer
    /// being staged is enqueued.
    #[inline]
    pub(crate) fn prepare_submit(&self) -> Result<()> {
        let pending = self.pending_event.load(Ordering::Acquire) != 0;
        if pending || self.is_staging() { self.prepare_submit_slow() } else { Ok(()) }
    }

    fn prepare_submit_slow(&self) -> Result<()> {
        let mut inner = self.inner.lock();
        self.record_pending(&mut inner)?;
        if !self.is_staging() {
            return Ok(());
        }
        drop(inner);
        self.drain_staging()
    }

    /// Whether a transfer is being staged. Stable while `inner` is locked.
    #[inline]
    fn is_staging(&self) -> bool {
        self.staging.load(Ordering::Acquire) != 0
    }

    /// Records the pending completion event, if there is one; nothing has been submitted after its ticket.
    fn record_pending(&self, inner: &mut Inner) -> Result<()> {
        let ticket = self.pending_event.load(Ordering::Acquire);
        if ticket == 0 {
            return Ok(());
        }
        match inner.last_timestamp {
            // `finish_staging` records the event of a staged transfer.
            _ if self.staging.load(Ordering::Acquire) == ticket || inner.completed_by_host >= ticket => {}
            Some((stamped, event)) if stamped == ticket => inner.events.push_timestamp(ticket, event),
            _ => inner.events.record(&self.primary, self.stream, ticket)?,
        }
        self.clear_pending(ticket);
        Ok(())
    }

    /// Clears the pending event of `ticket`; only with `inner` locked, so that no submission overtakes it.
    fn clear_pending(&self, ticket: u64) {
        // A later one may have been requested by now.
        let _ = self.pending_event.compare_exchange(ticket, 0, Ordering::AcqRel, Ordering::Acquire);
    }

    #[cold]
    fn drain_staging(&self) -> Result<()> {
        let begin = Instant::now();
        while self.is_staging() {
            self.primary.check_alive()?;
            backoff(begin.elapsed(), true);
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Requests a completion event for `ticket`, the last submission; never concurrent with a submission to this queue.
    #[inline]
    pub(crate) fn request_event(&self, ticket: u64) {
        if self.completed() < ticket {
            self.pending_event.store(ticket, Ordering::Release);
        }
    }

    /// Polls the completed prefix, and completes small reads.
    pub(crate) fn poll(&self) -> Result<u64> {
        // Before the stream is queried: an idle stream says nothing about what is submitted later.
        let submitted = self.last_submitted.load(Ordering::Acquire);
        if self.completed() >= submitted {
            return Ok(submitted);
        }
        self.primary.check_alive()?;
        let mut inner = self.inner.lock();
        let polled = inner.events.poll(|event| self.primary.is_event_complete(event))?;
        let mut ended = polled.max(inner.completed_by_host);
        // While a transfer is staged, part of it is not on the stream yet, and an idle stream proves nothing.
        let all_on_stream = !self.is_staging() && inner.events.is_empty();
        if ended < submitted && all_on_stream && self.primary.is_stream_idle(self.stream)? {
            ended = submitted;
        }
        self.complete_readbacks(&mut inner, ended)?;
        self.completed.fetch_max(ended, Ordering::AcqRel);
        let pending = self.pending_event.load(Ordering::Acquire);
        if pending != 0 && pending <= ended {
            self.clear_pending(pending);
        }
        Ok(self.completed())
    }

    /// Copies the bytes of small reads that have ended to their destinations.
    fn complete_readbacks(&self, inner: &mut Inner, ended: u64) -> Result<()> {
        while inner.readbacks.front().is_some_and(|readback| readback.ticket <= ended) {
            let Some(Readback { block, destination, .. }) = inner.readbacks.pop_front() else { break };
            let (from, to, bytes) = (block.as_ptr(), destination.as_ptr(), destination.len());
            let copied = self.primary.access_borrowed(|| {
                // SAFETY: the block holds the bytes, and core keeps the destination until the ticket ends, which is
                // reported after this.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            });
            self.primary.pinned_blocks.free(block);
            copied?;
        }
        Ok(())
    }

    /// Adds a small read, whose copy into the block is submitted.
    pub(crate) fn push_readback(&self, readback: Readback) {
        self.inner.lock().readbacks.push_back(readback);
    }

    /// The first failed ticket; 0 if there is none.
    pub(crate) fn first_failed(&self) -> u64 {
        self.inner.lock().failure.as_ref().map_or(0, |(ticket, _)| *ticket)
    }

    /// Why the first failed ticket failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.inner.lock().failure.as_ref().map(|(_, error)| error.clone())
    }

    /// Waits for `ticket`, for about `slice`.
    pub(crate) fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        let begin = Instant::now();
        while self.poll()? < ticket {
            let elapsed = begin.elapsed();
            if elapsed >= slice {
                break;
            }
            backoff(elapsed, true);
        }
        Ok(())
    }

    /// Makes later submissions to this queue wait on the device for `ticket` of `other`.
    pub(crate) fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        if std::ptr::eq(self, other) || other.completed() >= ticket {
            return Ok(());
        }
        self.prepare_submit()?;
        let mut inner = other.inner.lock();
        if inner.events.completed() >= ticket || inner.completed_by_host >= ticket {
            return Ok(());
        }
        other.record_pending(&mut inner)?;
        let Some(event) = inner.events.event_for(ticket) else {
            // Core then waits on the host: the transfer is not on the stream yet.
            return Err(Error::unsupported(
                "a wait on the device for a transfer that is still being staged is not supported",
            ));
        };
        // SAFETY: both are alive; the lock keeps the event from being recorded again meanwhile.
        let code = unsafe { (self.primary.driver.cuStreamWaitEvent)(self.stream.0, event.0, 0) };
        self.primary.check("cuStreamWaitEvent", code)
    }

    /// Returns the free list to the pool.
    pub(crate) fn drain_free_list(&self) {
        if let Some(pool) = self.primary.pool {
            self.free_list.drain(|block| pool.free(block, self.stream));
        }
    }

    /// Starts staging a transfer.
    pub(crate) fn begin_staging(&self, ticket: u64) {
        let _inner = self.inner.lock();
        self.staging.store(ticket, Ordering::Release);
    }

    /// Ends the staging of a transfer: the last piece of an upload is on the stream, the last byte of a download is in host
    /// memory, or it has failed.
    pub(crate) fn finish_staging(&self, outcome: Result<Direction>) {
        let mut inner = self.inner.lock();
        let ticket = self.staging.load(Ordering::Acquire);
        let result = outcome.and_then(|direction| match direction {
            // The device still has to copy the last pieces.
            Direction::Upload => inner.events.record(&self.primary, self.stream, ticket),
            Direction::Download => {
                inner.completed_by_host = ticket;
                Ok(())
            }
        });
        if let Err(error) = result {
            inner.failure.get_or_insert((ticket, error));
            inner.completed_by_host = ticket;
        }
        self.staging.store(0, Ordering::Release);
    }

    /// Records a timestamp.
    pub(crate) fn record_timestamp(&self, ticket: u64) -> Result<()> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if let Some(event) = inner.timestamps.discard_oldest(self.completed()) {
            inner.events.release_timestamp(event);
        }
        let event = inner.timestamps.record(&self.primary, self.stream, ticket)?;
        inner.last_timestamp = Some((ticket, event));
        Ok(())
    }

    /// Reads the timestamp of an ended ticket.
    pub(crate) fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.poll()?;
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let event = inner.timestamps.unread.take(ticket)?;
        if !self.primary.is_event_complete(event)? {
            inner.timestamps.unread.add(ticket, event);
            return Err(Error::invalid(format!("ticket {ticket} has not ended; wait for its event first")));
        }
        inner.events.release_timestamp(event);
        if inner.last_timestamp.is_some_and(|(stamped, _)| stamped == ticket) {
            inner.last_timestamp = None;
        }
        inner.timestamps.read(&self.primary, event)
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        self.drain_free_list();
        let inner = self.inner.get_mut();
        for readback in inner.readbacks.drain(..) {
            self.primary.pinned_blocks.free(readback.block);
        }
        if let Ok(_current) = self.primary.make_current() {
            inner.events.close(self.primary.driver);
            inner.timestamps.close(self.primary.driver);
            // SAFETY: ours, and no longer in use; the driver completes the work on it.
            let _ = unsafe { (self.primary.driver.cuStreamDestroy_v2)(self.stream.0) };
        }
    }
}
