//! The threads of a device that run host tasks, and drop what was kept for work.
//!
//! As many jobs run at a time as the machine has processors. A job that waits for an event does not count, and neither do jobs
//! that have all blocked in some other way: one idle thread watches a queue that does not move, and takes a job itself after a
//! while. So jobs may wait for each other. Idle threads end.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::process;
use crate::{Error, ErrorKind, Result};

/// How long an idle thread lives.
const IDLE: Duration = Duration::from_secs(1);
/// How long a queue may stand still before one more job runs; multiplied by the number of jobs beyond the usual, so that long
/// computations do not get a thread each.
const STALL: Duration = Duration::from_millis(10);

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// What a thread of a pool knows of itself.
struct Worker {
    pool: Arc<HostPool>,
    fork_generation: u32,
    /// How many waits it is in, one inside the other.
    waits: usize,
}

/// The threads of a device that run host tasks.
#[derive(Debug, Default)]
pub(crate) struct HostPool {
    state: Mutex<State>,
    changed: Condvar,
    /// How many jobs run at a time. Asking the system takes a while, so only the first job does.
    parallel: OnceLock<usize>,
    /// When the first thread was started.
    first_start: OnceLock<Instant>,
}

/// What a thread of the pool runs. `HostJob` implements it once; it is a trait because events lie above the pool.
pub(crate) trait Job: fmt::Debug + Send + Sync {
    fn run(self: Arc<Self>);
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<Arc<dyn Job>>,
    /// Threads that run a job which does not wait for an event.
    active: usize,
    /// Threads that run no job.
    idle: usize,
    /// Number of jobs that were begun.
    begun: u64,
}

impl HostPool {
    /// Runs a job as soon as a thread is free.
    ///
    /// # Errors
    /// `OutOfResources` if there is no thread and none can be started. The job is dropped.
    pub(crate) fn push(self: &Arc<Self>, job: Arc<dyn Job>) -> Result<()> {
        let mut state = self.state.lock();
        state.ready.push_back(job);
        if state.idle == 0
            && let Err(error) = self.spawn(&mut state)
            && state.active == 0
        {
            let job = state.ready.pop_back();
            drop(state);
            // Foreign code, so outside the lock.
            drop(job);
            return Err(error);
        }
        // A thread that watches a full queue need not hear of every job.
        let notify = state.active < self.parallel() || state.ready.len() == 1;
        drop(state);
        if notify {
            self.changed.notify_one();
        }
        Ok(())
    }

    fn parallel(&self) -> usize {
        *self.parallel.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// The zero of the times of host tasks.
    pub(crate) fn first_start(&self) -> Instant {
        *self.first_start.get_or_init(Instant::now)
    }

    /// Starts a thread, which counts as idle from now on.
    fn spawn(self: &Arc<Self>, state: &mut State) -> Result<()> {
        self.first_start();
        let pool = self.clone();
        let thread = std::thread::Builder::new().name("rt-host-task".to_owned());
        let started = thread.spawn(move || pool.run()).map_err(|error| {
            Error::new(ErrorKind::OutOfResources, "cannot start a thread for host tasks").with_source(error)
        });
        state.idle += usize::from(started.is_ok());
        started.map(drop)
    }

    fn run(self: Arc<Self>) {
        IS_WORKER.set(true);
        let fork_generation = process::generation();
        WORKER.set(Some(Worker { pool: self.clone(), fork_generation, waits: 0 }));
        while let Some(job) = self.next() {
            let Some(running) = process::ThreadGuard::enter() else {
                // The process is exiting: what the job owns is leaked.
                return std::mem::forget(job);
            };
            // This may drop its last reference, which may own foreign values.
            job.run();
            drop(running);
            if fork_generation != process::generation() {
                // The lock may be held by a thread of the parent; or the process is exiting.
                return;
            }
            let mut state = self.state.lock();
            state.active -= 1;
            state.idle += 1;
        }
    }

    /// The next job to run; `None` for a thread that was idle for long.
    fn next(self: &Arc<Self>) -> Option<Arc<dyn Job>> {
        let mut state = self.state.lock();
        let mut stalled = false;
        loop {
            let has_room = state.active < self.parallel() || stalled;
            if let Some(job) = if has_room { state.ready.pop_front() } else { None } {
                self.begin(&mut state);
                return Some(job);
            }
            let idle = state.ready.is_empty();
            let timed_out = self.wait(&mut state, &mut stalled);
            if idle && timed_out && state.ready.is_empty() {
                state.idle -= 1;
                return None;
            }
        }
    }

    /// Waits for a change; returns whether there was none, and finds out whether the queue stands still.
    fn wait(&self, state: &mut MutexGuard<'_, State>, stalled: &mut bool) -> bool {
        let (begun, idle) = (state.begun, state.ready.is_empty());
        let beyond = u32::try_from((state.active + 1).saturating_sub(self.parallel())).unwrap_or(u32::MAX);
        let longest = if idle { IDLE } else { STALL.saturating_mul(beyond.max(1)) };
        let timed_out = self.changed.wait_for(state, longest).timed_out();
        *stalled = timed_out && !idle && state.begun == begun;
        timed_out
    }

    /// An idle thread begins a job. Another one watches those that are left.
    fn begin(self: &Arc<Self>, state: &mut State) {
        state.idle -= 1;
        state.active += 1;
        state.begun += 1;
        if !state.ready.is_empty() {
            self.wake(state);
        }
    }

    /// Wakes an idle thread, or starts one. If none can be started, the running ones go on with the queue.
    fn wake(self: &Arc<Self>, state: &mut State) {
        if state.idle > 0 {
            self.changed.notify_one();
        } else if let Err(error) = self.spawn(state) {
            tracing::warn!(%error, "host tasks run one after the other");
        }
    }

    /// A thread's job waits for an event: another job may run meanwhile.
    fn begin_wait(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.active -= 1;
        if !state.ready.is_empty() {
            self.wake(&mut state);
        }
    }

    fn end_wait(&self) {
        self.state.lock().active += 1;
    }
}

/// Whether this is a thread of a pool.
#[inline]
pub(crate) fn is_worker() -> bool {
    IS_WORKER.get()
}

/// Fails on a thread of a pool when the process exits.
///
/// # Errors
/// `Unavailable`.
#[inline]
pub(crate) fn check_exit() -> Result<()> {
    if is_worker() && process::exiting() {
        return Err(Error::new(ErrorKind::Unavailable, "the process is exiting"));
    }
    Ok(())
}

/// This thread is about to wait for an event. If it is one of a pool, another job may run until the guard is dropped.
#[inline]
pub(crate) fn blocking() -> Blocking {
    if is_worker() {
        nest(|waits| *waits += 1, |waits| waits == 1, HostPool::begin_wait);
    }
    Blocking(())
}

/// A wait on a thread that may be one of a pool.
#[derive(Debug)]
pub(crate) struct Blocking(());

impl Drop for Blocking {
    #[inline]
    fn drop(&mut self) {
        if is_worker() {
            nest(|waits| *waits -= 1, |waits| waits == 0, |pool| pool.end_wait());
        }
    }
}

/// Changes the number of waits that this thread is in; tells its pool of the outermost one.
#[cold]
fn nest(change: fn(&mut usize), is_outermost: fn(usize) -> bool, tell: fn(&Arc<HostPool>)) {
    let pool = WORKER.with_borrow_mut(|worker| {
        let worker = worker.as_mut().filter(|worker| worker.fork_generation == process::generation())?;
        change(&mut worker.waits);
        is_outermost(worker.waits).then(|| worker.pool.clone())
    });
    if let Some(pool) = pool {
        tell(&pool);
    }
}
