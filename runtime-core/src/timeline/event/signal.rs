//! Signals: results that core gives itself, for example that of a host task.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::panics::contain;
use crate::timeline::event::times::{EventClock, EventTimes};
use crate::timeline::host_pool::{self, HostPool};
use crate::{Error, ErrorKind, Result, process};

thread_local! {
    /// The address of the signal whose host task this thread runs.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The result of a host task, given once.
#[derive(Debug)]
pub(crate) struct Signal {
    /// `None` for a signal that was given from the start.
    pool: Option<Arc<HostPool>>,
    fork_generation: u32,
    result: OnceLock<Result<()>>,
    is_running: AtomicBool,
    submitted: Instant,
    /// When the task started and ended.
    times: OnceLock<[Instant; 2]>,
    wakers: Mutex<Wakers>,
    given: Condvar,
}

/// The wakers of futures, each with its registration.
#[derive(Debug, Default)]
struct Wakers {
    registrations: u64,
    waiting: HashMap<u64, Waker>,
}

impl Signal {
    pub(crate) fn new(pool: &Arc<HostPool>) -> Arc<Self> {
        Arc::new(Self { pool: Some(pool.clone()), ..Self::empty() })
    }

    /// A signal that is an error from the start.
    pub(crate) fn failed(error: Error) -> Arc<Self> {
        Arc::new(Self { result: OnceLock::from(Err(error)), ..Self::empty() })
    }

    fn empty() -> Self {
        Self {
            pool: None,
            fork_generation: process::generation(),
            result: OnceLock::new(),
            is_running: AtomicBool::new(false),
            submitted: Instant::now(),
            times: OnceLock::new(),
            wakers: Mutex::default(),
            given: Condvar::new(),
        }
    }

    /// The threads that will give it.
    pub(crate) const fn pool(&self) -> Option<&Arc<HostPool>> {
        self.pool.as_ref()
    }

    /// Its result, unless it has none yet.
    pub(crate) fn result(&self) -> Option<&Result<()>> {
        self.result.get()
    }

    /// The same as [`Signal::result`], on behalf of the program.
    ///
    /// # Errors
    /// `Unavailable` in a forked child, where nobody will give it.
    pub(crate) fn poll_result(&self) -> Result<Option<Result<()>>> {
        match self.result() {
            Some(result) => Ok(Some(result.clone())),
            None if self.fork_generation != process::generation() => Err(unavailable()),
            None => Ok(None),
        }
    }

    /// Whether the task runs, or has run.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    /// When the task was submitted, started and ended.
    pub(crate) fn times(&self) -> Option<EventTimes> {
        let (zero, [start, end]) = (self.pool.as_ref()?.first_start(), *self.times.get()?);
        let since = |time: Instant| {
            u64::try_from(time.saturating_duration_since(zero).as_nanos()).unwrap_or(u64::MAX)
        };
        let (clock, submitted) = (EventClock::Host, self.submitted);
        Some(EventTimes { submitted, clock, start_ns: since(start), end_ns: since(end) })
    }

    /// Runs the task of this signal on this thread. Its panic becomes an error.
    pub(crate) fn run(&self, task: impl FnOnce() -> Result<()>) -> Result<()> {
        let start = Instant::now();
        self.is_running.store(true, Ordering::Relaxed);
        CURRENT.set(std::ptr::from_ref(self).addr());
        let result = contain(task);
        CURRENT.set(0);
        let _ = self.times.set([start, Instant::now()]);
        let panicked = |message| Error::new(ErrorKind::Failed, format!("the host task panicked: {message}"));
        result.unwrap_or_else(|message| Err(panicked(message)))
    }

    /// Gives the result, unless there is one, and wakes whoever waits for it. No lock is held while wakers run.
    pub(crate) fn give(&self, result: Result<()>) {
        if self.result.set(result).is_err() {
            return;
        }
        let waiting = std::mem::take(&mut self.wakers.lock().waiting);
        self.given.notify_all();
        for (_, waker) in waiting {
            // The panic hook has reported it, and the other futures must still be woken.
            let _ = contain(|| waker.wake());
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The failure of the task; `Timeout`; `InvalidArgument` in the task itself; `Unavailable` in a forked child.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Result<()> {
        if let Some(result) = self.poll_result()? {
            return result;
        }
        if CURRENT.get() == std::ptr::from_ref(self).addr() {
            return Err(Error::invalid("a host task cannot wait for its own event"));
        }
        let _blocked = host_pool::blocking();
        let mut wakers = self.wakers.lock();
        loop {
            if let Some(result) = self.result() {
                return result.clone();
            }
            host_pool::check_exit()?;
            if self.wait_once(&mut wakers, deadline) {
                return Err(Error::new(ErrorKind::Timeout, "the host task timed out; it is not cancelled")
                    .in_operation("wait"));
            }
        }
    }

    /// Waits for a change; returns whether the deadline has passed.
    fn wait_once(&self, wakers: &mut parking_lot::MutexGuard<'_, Wakers>, deadline: Option<Instant>) -> bool {
        match deadline {
            Some(deadline) => {
                self.given.wait_until(wakers, deadline).timed_out() && Instant::now() >= deadline
            }
            None => {
                self.given.wait(wakers);
                false
            }
        }
    }

    /// Wakes `waker` once there is a result; returns whether there is none yet. `registration` is 0 at first.
    pub(crate) fn register(&self, registration: &mut u64, waker: &Waker) -> bool {
        // Foreign code, so outside the lock.
        let waker = waker.clone();
        let mut wakers = self.wakers.lock();
        if self.result().is_some() {
            return false;
        }
        if *registration == 0 {
            wakers.registrations += 1;
            *registration = wakers.registrations;
        }
        let old = wakers.waiting.insert(*registration, waker);
        drop(wakers);
        let _ = contain(|| drop(old));
        true
    }

    /// Removes the waker of a dropped future.
    pub(crate) fn forget(&self, registration: u64) {
        if self.fork_generation != process::generation() {
            return;
        }
        let forgotten = self.wakers.lock().waiting.remove(&registration);
        let _ = contain(|| drop(forgotten));
    }
}

#[cold]
fn unavailable() -> Error {
    let message = if process::exiting() {
        "the process is exiting"
    } else {
        "this process was forked after the host task was submitted; the task runs in the parent"
    };
    Error::new(ErrorKind::Unavailable, message)
}
