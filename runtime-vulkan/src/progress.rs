//! A queue's progress: its timeline semaphore, turned into one completed prefix of tickets.
//!
//! The device signals the semaphore for the tickets submitted to it. Three kinds of tickets complete otherwise:
//!
//! ```text
//! on the device     the semaphore reaches the ticket; its readbacks are copied to the host first
//! inline            the host carried it out on an idle queue (`completed_inline`)
//! staged            staging threads copy, then signal the semaphore; nothing else is submitted meanwhile
//! abandoned         never submitted; completes as failed once all submitted work and all dependencies have completed
//! ```
//!
//! `completed` is the maximum over these, and only grows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::{HostRange, POLL_TIME, backoff};
use runtime_core::{Error, Result};

use crate::driver::{LogicalDevice, Memory, Semaphore};
use crate::timer::Timestamps;

/// How long a submission blocks at a time while it waits for a staged transfer.
const STAGING_WAIT_SLICE: Duration = Duration::from_millis(10);

/// A read whose bytes are in mapped memory when `ticket` has completed on the device.
#[derive(Debug)]
pub(crate) struct Readback {
    pub(crate) ticket: u64,
    pub(crate) from: Arc<Memory>,
    pub(crate) offset: u64,
    pub(crate) destination: HostRange,
}

#[derive(Debug, Default)]
struct State {
    readbacks: VecDeque<Readback>,
    /// The first failed ticket, and why.
    failure: Option<(u64, Error)>,
    abandoned: Abandoned,
}

/// Tickets that were never submitted.
#[derive(Debug, Default)]
struct Abandoned {
    last_ticket: u64,
    /// The semaphore values that they should have waited for.
    waits: Vec<(Arc<Semaphore>, u64)>,
}

impl Abandoned {
    /// Whether everything they should have waited for has completed.
    fn waits_completed(&mut self) -> Result<bool> {
        while let Some((semaphore, value)) = self.waits.last() {
            if semaphore.value()? < *value {
                return Ok(false);
            }
            self.waits.pop();
        }
        Ok(true)
    }
}

/// The state that a queue shares with its waiters.
#[derive(Debug)]
pub(crate) struct QueueProgress {
    // Declared, and so dropped, before `logical`, which they belong to.
    state: Mutex<State>,
    pub(crate) timestamps: Mutex<Timestamps>,
    pub(crate) semaphore: Arc<Semaphore>,
    pub(crate) logical: Arc<LogicalDevice>,
    /// The last ticket recorded.
    recorded: AtomicU64,
    /// The last ticket for which the semaphore is or will be signaled.
    submitted: AtomicU64,
    /// The last ticket that the host carried out itself; the semaphore does not reflect it.
    completed_inline: AtomicU64,
    completed: AtomicU64,
    /// Staging threads have a transfer: nothing is submitted before it has completed.
    staging: AtomicBool,
}

impl QueueProgress {
    pub(crate) fn new(logical: &Arc<LogicalDevice>) -> Result<Self> {
        Ok(Self {
            state: Mutex::default(),
            timestamps: Mutex::default(),
            semaphore: Arc::new(Semaphore::new(logical)?),
            logical: Arc::clone(logical),
            recorded: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            completed_inline: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            staging: AtomicBool::new(false),
        })
    }

    /// Notes that `ticket` is recorded.
    #[inline]
    pub(crate) fn set_recorded(&self, ticket: u64) {
        self.recorded.store(ticket, Ordering::Release);
    }

    /// Notes that all tickets up to `ticket` are submitted.
    pub(crate) fn set_submitted(&self, ticket: u64) {
        self.submitted.store(ticket, Ordering::Release);
    }

    /// Notes that the host carried out `ticket`, after all earlier ones had completed.
    pub(crate) fn complete_inline(&self, ticket: u64) {
        self.completed_inline.store(ticket, Ordering::Release);
        // Until `recorded` follows, other threads see at most that all earlier tickets have completed.
        self.completed.store(ticket, Ordering::Release);
        self.set_recorded(ticket);
    }

    /// The completed prefix, as last polled.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Whether all recorded tickets are known to have completed.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.completed() == self.recorded.load(Ordering::Acquire)
    }

    /// Whether the semaphore is or will be signaled for `ticket`.
    pub(crate) fn is_submitted(&self, ticket: u64) -> bool {
        ticket <= self.submitted.load(Ordering::Acquire)
    }

    /// Whether the device has no work of this queue.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        Ok(self.is_complete() || self.semaphore.value()? >= self.submitted.load(Ordering::Acquire))
    }

    /// Adds a read to be copied to the host when its ticket has completed on the device.
    pub(crate) fn push_readback(&self, readback: Readback) {
        self.state.lock().readbacks.push_back(readback);
    }

    /// Fails `ticket` and all later ones. The first failure is kept.
    pub(crate) fn fail(&self, ticket: u64, error: Error) {
        self.state.lock().failure.get_or_insert((ticket, error));
    }

    /// Notes that tickets up to `ticket` are never submitted, and what they should have waited for.
    pub(crate) fn abandon(&self, ticket: u64, waits: impl IntoIterator<Item = (Arc<Semaphore>, u64)>) {
        let mut state = self.state.lock();
        state.abandoned.waits.extend(waits);
        state.abandoned.last_ticket = ticket;
    }

    /// The semaphore values that abandoned tickets should have waited for.
    pub(crate) fn abandoned_waits(&self) -> Vec<(Arc<Semaphore>, u64)> {
        self.state.lock().abandoned.waits.clone()
    }

    /// Notes that staging threads have a transfer.
    pub(crate) fn begin_staging(&self) {
        self.staging.store(true, Ordering::Release);
    }

    /// Completes the transfer of the staging threads.
    pub(crate) fn end_staging(&self, ticket: u64, failure: Option<Error>) {
        if let Some(error) = failure {
            self.fail(ticket, error);
        }
        // An error means that the device is lost, which every caller sees.
        let _ = self.semaphore.signal(ticket);
        self.staging.store(false, Ordering::Release);
    }

    /// Whether staging threads have a transfer.
    pub(crate) fn is_staging(&self) -> bool {
        self.staging.load(Ordering::Acquire)
    }

    /// Waits until staging threads have no transfer: only then may anything be submitted behind it.
    #[inline]
    pub(crate) fn drain_staging(&self) {
        if self.is_staging() {
            self.wait_for_staging();
        }
    }

    #[cold]
    fn wait_for_staging(&self) {
        let ticket = self.submitted.load(Ordering::Acquire);
        while self.is_staging() {
            // The semaphore is signaled just before `staging` is cleared. An error appears again elsewhere.
            let _ = self.semaphore.wait(ticket, STAGING_WAIT_SLICE);
            std::thread::yield_now();
        }
    }

    /// Why the queue failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.as_ref().map(|(_, error)| error.clone())
    }

    /// The first ticket that failed; 0 for none.
    pub(crate) fn first_failed(&self) -> u64 {
        self.state.lock().failure.as_ref().map_or(0, |(ticket, _)| *ticket)
    }

    /// Polls the semaphore, completes readbacks, and returns the completed prefix.
    pub(crate) fn poll(&self) -> Result<u64> {
        let (completed, alive) = (self.completed(), self.logical.check_alive());
        if alive.is_ok() && completed == self.recorded.load(Ordering::Acquire) {
            return Ok(completed);
        }
        let value = alive.and_then(|()| self.semaphore.value())?;
        let mut state = self.state.lock();
        self.complete_readbacks(&mut state.readbacks, value)?;
        let mut completed = value.max(self.completed_inline.load(Ordering::Acquire));
        if state.failure.is_some()
            && value >= self.submitted.load(Ordering::Acquire)
            && state.abandoned.waits_completed()?
        {
            // The other tickets never reached the driver. Those still being recorded complete when they are abandoned,
            // since only then all their waits are known.
            state.readbacks.clear();
            completed = completed.max(state.abandoned.last_ticket);
        }
        // Under the lock, so that a ticket is never seen complete before its readbacks.
        self.completed.fetch_max(completed, Ordering::AcqRel);
        Ok(completed)
    }

    /// Copies the reads up to `ticket` to the host.
    fn complete_readbacks(&self, readbacks: &mut VecDeque<Readback>, ticket: u64) -> Result<()> {
        let logical = &self.logical;
        while let Some(readback) = readbacks.front().filter(|readback| readback.ticket <= ticket) {
            let Readback { from, offset, destination, .. } = readback;
            if !logical.host_borrows.access(|| from.copy_host(*offset, destination, destination.whole())) {
                return Err(logical.device_lost());
            }
            readbacks.pop_front();
        }
        Ok(())
    }

    /// Waits up to about `slice` for a submitted ticket.
    pub(crate) fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        if ticket > self.submitted.load(Ordering::Acquire) {
            return self.logical.check_alive();
        }
        let (begin, mut elapsed) = (Instant::now(), Duration::ZERO);
        // The driver's own wait suspends the thread: on an H200 (580.159) it ends 35 to 80 µs after the work.
        let poll_time = if self.logical.caps.is_cpu() { Duration::ZERO } else { POLL_TIME.min(slice) };
        while elapsed < poll_time {
            if self.semaphore.value()? >= ticket {
                return Ok(());
            }
            backoff(elapsed, true);
            elapsed = begin.elapsed();
        }
        self.semaphore.wait(ticket, slice.saturating_sub(elapsed)).map(|_| ())
    }
}
