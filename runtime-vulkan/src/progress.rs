//! How far a queue is: what its semaphore says, as one completed prefix.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::HostBytesMut;
use runtime_core::{Error, Result};

use crate::context::Context;
use crate::driver::{Memory, Semaphore};
use crate::slots::gone;
use crate::timer::Timestamps;

/// How long a wait only looks: the driver's own wait puts the thread to sleep, and what is waited for is often near.
const LOOK: Duration = Duration::from_micros(20);

/// How long a submission waits at a time for a transfer before it.
const SETTLE_SLICE: Duration = Duration::from_millis(10);

/// A read: its bytes are in memory that the program reaches when `ticket` has ended on the device.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) ticket: u64,
    pub(crate) from: Arc<Memory>,
    pub(crate) offset: u64,
    pub(crate) destination: HostBytesMut,
}

#[derive(Debug, Default)]
struct State {
    landings: VecDeque<Landing>,
    failure: Option<(u64, Error)>,
    /// What submissions waited for that the driver did not take, and the last ticket of those.
    abandoned: Vec<(Arc<Semaphore>, u64)>,
    abandoned_to: u64,
}

impl State {
    /// Whether all has ended that submissions waited for which the driver did not take.
    fn is_released(&mut self) -> Result<bool> {
        while let Some((semaphore, value)) = self.abandoned.last() {
            if semaphore.value()? < *value {
                return Ok(false);
            }
            self.abandoned.pop();
        }
        Ok(true)
    }
}

/// What a queue shares with those who wait for it.
#[derive(Debug)]
pub(crate) struct Shared {
    // Before `context`, which they were made of.
    state: Mutex<State>,
    pub(crate) timestamps: Mutex<Timestamps>,
    pub(crate) semaphore: Arc<Semaphore>,
    pub(crate) context: Arc<Context>,
    /// The last ticket that was taken, and the last one that the device will move the semaphore to.
    tail: AtomicU64,
    submitted: AtomicU64,
    /// The last ticket that the program itself has ended, all before it having ended: the semaphore knows nothing of it.
    ended_here: AtomicU64,
    completed: AtomicU64,
    /// Threads stage a transfer: nothing is handed to the driver before it has ended.
    staged: AtomicBool,
}

impl Shared {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        Ok(Self {
            state: Mutex::default(),
            timestamps: Mutex::default(),
            semaphore: Arc::new(Semaphore::new(&context.logical)?),
            context: Arc::clone(context),
            tail: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            ended_here: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            staged: AtomicBool::new(false),
        })
    }

    /// Notes that `ticket` was taken.
    #[inline]
    pub(crate) fn took(&self, ticket: u64) {
        self.tail.store(ticket, Ordering::Release);
    }

    /// Notes that all up to `ticket` were handed to the driver.
    pub(crate) fn handed(&self, ticket: u64) {
        self.submitted.store(ticket, Ordering::Release);
    }

    /// Notes that the program itself has ended `ticket`, all before it having ended.
    pub(crate) fn ended(&self, ticket: u64) {
        self.ended_here.store(ticket, Ordering::Release);
        // Whoever looks meanwhile sees no more than that all before it have ended.
        self.completed.store(ticket, Ordering::Release);
        self.took(ticket);
    }

    /// The completed prefix as it was last seen.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Whether all that was taken is known to have ended.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.completed() == self.tail.load(Ordering::Acquire)
    }

    /// Whether the device will move the semaphore to `ticket`, or has.
    pub(crate) fn was_handed(&self, ticket: u64) -> bool {
        ticket <= self.submitted.load(Ordering::Acquire)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        Ok(self.has_ended() || self.semaphore.value()? >= self.submitted.load(Ordering::Acquire))
    }

    /// Copies a read to the program when its ticket has ended.
    pub(crate) fn expect(&self, landing: Landing) {
        self.state.lock().landings.push_back(landing);
    }

    /// Fails `ticket` and all that follow.
    pub(crate) fn fail(&self, ticket: u64, error: Error) {
        self.state.lock().failure.get_or_insert((ticket, error));
    }

    /// Notes that the driver did not take what lies up to `ticket`, and what that waited for.
    pub(crate) fn abandon(&self, ticket: u64, waits: impl IntoIterator<Item = (Arc<Semaphore>, u64)>) {
        let mut state = self.state.lock();
        state.abandoned.extend(waits);
        state.abandoned_to = ticket;
    }

    /// What those waited for that the driver did not take.
    pub(crate) fn abandoned(&self) -> Vec<(Arc<Semaphore>, u64)> {
        self.state.lock().abandoned.clone()
    }

    /// Notes that threads have a transfer.
    pub(crate) fn begin_staged(&self) {
        self.staged.store(true, Ordering::Release);
    }

    /// Ends the transfer that threads had.
    pub(crate) fn end_staged(&self, ticket: u64, failure: Option<Error>) {
        if let Some(error) = failure {
            self.fail(ticket, error);
        }
        // An error means that the device is lost, which everybody is told.
        let _ = self.semaphore.signal(ticket);
        self.staged.store(false, Ordering::Release);
    }

    /// Whether threads have a transfer.
    pub(crate) fn is_staged(&self) -> bool {
        self.staged.load(Ordering::Acquire)
    }

    /// Waits until threads have no transfer: only then may something follow it.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.staged.load(Ordering::Acquire) {
            self.settle_staged();
        }
    }

    #[cold]
    fn settle_staged(&self) {
        let ticket = self.submitted.load(Ordering::Acquire);
        while self.staged.load(Ordering::Acquire) {
            // The semaphore is moved on a moment before the transfer's end is noted; an error shows again elsewhere.
            let _ = self.semaphore.wait(ticket, SETTLE_SLICE);
            std::thread::yield_now();
        }
    }

    /// Why the queue failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.as_ref().map(|(_, error)| error.clone())
    }

    /// The first ticket that failed; 0: none.
    pub(crate) fn first_failed(&self) -> u64 {
        self.state.lock().failure.as_ref().map_or(0, |(ticket, _)| *ticket)
    }

    /// The completed prefix now: reads that have ended are with the program.
    pub(crate) fn poll(&self) -> Result<u64> {
        let (completed, alive) = (self.completed(), self.context.logical.check_alive());
        if alive.is_ok() && completed == self.tail.load(Ordering::Acquire) {
            return Ok(completed);
        }
        let value = alive.and_then(|()| self.semaphore.value())?;
        let mut state = self.state.lock();
        let logical = &self.context.logical;
        while let Some(landing) = state.landings.front().filter(|landing| landing.ticket <= value) {
            let Landing { from, offset, destination, .. } = landing;
            if !logical.lending.copy(|| from.read(*offset, destination, 0, destination.len())) {
                return Err(gone(logical));
            }
            state.landings.pop_front();
        }
        let mut completed = value.max(self.ended_here.load(Ordering::Acquire));
        if state.failure.is_some()
            && value >= self.submitted.load(Ordering::Acquire)
            && state.is_released()?
        {
            // The rest never reached the driver. What is still being recorded ends when it is given up, with all that it
            // waits for known.
            state.landings.clear();
            completed = completed.max(state.abandoned_to);
        }
        // Under the lock: who sees a ticket ended sees what was read, too.
        self.completed.fetch_max(completed, Ordering::AcqRel);
        Ok(completed)
    }

    /// Waits up to about `slice` for a ticket that was handed to the driver.
    pub(crate) fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        if ticket > self.submitted.load(Ordering::Acquire) {
            return self.context.logical.check_alive();
        }
        let begin = Instant::now();
        let look = if self.context.logical.facts.is_processor() { Duration::ZERO } else { LOOK.min(slice) };
        while begin.elapsed() < look {
            if self.semaphore.value()? >= ticket {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.semaphore.wait(ticket, slice.saturating_sub(begin.elapsed())).map(|_| ())
    }
}
