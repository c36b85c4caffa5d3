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
use crate::launch_log::LaunchLog;
use crate::memory_pool::MemoryPool;
use crate::pinned_blocks::PinnedBlock;
use crate::timer::{DeviceClock, Timestamps};

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
    /// The stream is the program's.
    borrowed: bool,
    pub(crate) free_list: FreeList,
    pub(crate) log: Arc<LaunchLog>,
    pool: Option<Arc<MemoryPool>>,
    clock: Arc<DeviceClock>,
    /// The last submission if its completion event was requested and is not recorded yet, else 0. Recorded before the next
    /// submission, since until then the idle stream reports its end; cleared only with `inner` locked.
    pending_event: AtomicU64,
    /// The ticket being staged, else 0; written only with `inner` locked. Nothing is submitted meanwhile.
    staging: AtomicU64,
    inner: Mutex<Inner>,
}

impl StreamState {
    /// A stream of a device, which is the program's or not, with the device's clock, and this pool behind the free list.
    pub(crate) fn new(
        primary: &Arc<PrimaryContext>,
        (stream, borrowed): (Stream, bool),
        clock: &Arc<DeviceClock>,
        (pool, free_list): (Option<&Arc<MemoryPool>>, FreeList),
    ) -> Self {
        Self {
            primary: Arc::clone(primary),
            stream,
            borrowed,
            free_list,
            log: primary.open_log(),
            pool: pool.map(Arc::clone),
            clock: Arc::clone(clock),
            pending_event: AtomicU64::new(0),
            staging: AtomicU64::new(0),
            inner: Mutex::default(),
        }
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
        if self.log.completed() < ticket {
            self.pending_event.store(ticket, Ordering::Release);
        }
    }

    /// Polls the completed prefix, and completes small reads.
    pub(crate) fn poll(&self) -> Result<u64> {
        // Before the stream is queried: an idle stream says nothing about what is submitted later.
        let submitted = self.log.submitted();
        if self.log.completed() >= submitted {
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
        self.log.note_completed(ended);
        let pending = self.pending_event.load(Ordering::Acquire);
        if pending != 0 && pending <= ended {
            self.clear_pending(pending);
        }
        Ok(self.log.completed())
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
        if std::ptr::eq(self, other) || other.log.completed() >= ticket {
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
        if let Some(pool) = &self.pool {
            self.free_list.drain(|block| pool.free(block, Some(self.stream)));
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
        if let Some(event) = inner.timestamps.discard_oldest(self.log.completed()) {
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
        let has_ended = |event: &Event| Ok(self.primary.is_event_complete(*event)?.then_some(()));
        let (event, ()) = inner.timestamps.unread.read(ticket, has_ended)?;
        inner.events.release_timestamp(event);
        if inner.last_timestamp.is_some_and(|(stamped, _)| stamped == ticket) {
            inner.last_timestamp = None;
        }
        inner.timestamps.read(&self.clock, event)
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        self.drain_free_list();
        let Inner { events, timestamps, .. } = self.inner.get_mut();
        self.primary.close_events(events.drain().chain(timestamps.drain()));
        if !self.borrowed {
            self.primary.close_stream(self.stream);
        }
    }
}
