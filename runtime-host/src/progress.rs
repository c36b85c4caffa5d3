//! Progress of a queue: the completed tickets, the first failure, and the threads that wait for them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use runtime_core::Error;
use runtime_core::abi;
use runtime_core::backend::spin_until;

/// How long a waiter polls before it sleeps: waking it costs more than a short kernel takes.
const SPIN: Duration = Duration::from_micros(10);

/// The completed part of a queue's timeline. Tickets end in order; one thread ends each.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    completed: AtomicU64,
    first_failed: AtomicU64,
    failure: Mutex<Option<Error>>,
    sleepers: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Progress {
    /// The last ticket that has ended.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// The first ticket that failed; 0 if none did.
    pub(crate) fn first_failed(&self) -> u64 {
        self.first_failed.load(Ordering::Acquire)
    }

    /// Both values. A failure is reported only once its ticket has ended.
    pub(crate) fn state(&self) -> abi::Progress {
        let completed = self.completed();
        let first_failed = self.first_failed();
        abi::Progress { completed, first_failed: if first_failed <= completed { first_failed } else { 0 } }
    }

    /// Why the first ticket failed.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }

    /// Ends `ticket`; it succeeded unless an earlier one failed.
    pub(crate) fn end(&self, ticket: u64) {
        // Sequentially consistent with `sleep`: either the sleeper sees the ticket, or this thread sees the sleeper.
        self.completed.swap(ticket, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            self.wake();
        }
    }

    /// Ends `ticket` with `error`; only the first failure is kept.
    pub(crate) fn fail(&self, ticket: u64, error: Error) {
        self.failure.lock().get_or_insert(error);
        let _ = self.first_failed.compare_exchange(0, ticket, Ordering::SeqCst, Ordering::SeqCst);
        self.end(ticket);
    }

    /// Wakes all waiting threads.
    #[cold]
    pub(crate) fn wake(&self) {
        drop(self.lock.lock());
        self.changed.notify_all();
    }

    /// Waits for about `slice` at most until `ticket` has ended; returns whether it has.
    pub(crate) fn wait(&self, ticket: u64, slice: Duration) -> bool {
        if spin_until(SPIN.min(slice), || self.completed() >= ticket) {
            return true;
        }
        self.sleep(ticket, slice);
        self.completed() >= ticket
    }

    fn sleep(&self, ticket: u64, slice: Duration) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock();
        if self.completed.load(Ordering::SeqCst) < ticket {
            let _ = self.changed.wait_for(&mut guard, slice);
        }
        drop(guard);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runtime_core::ErrorKind;

    use super::*;

    #[test]
    fn the_first_failure_is_kept() {
        let progress = Progress::default();
        progress.end(1);
        progress.fail(2, Error::new(ErrorKind::OutOfMemory, "first"));
        progress.fail(3, Error::new(ErrorKind::Failed, "second"));
        let state = progress.state();
        assert_eq!((state.completed, state.first_failed), (3, 2));
        assert_eq!(progress.failure().map(|error| error.kind()), Some(ErrorKind::OutOfMemory));
    }

    #[test]
    fn a_waiter_is_woken_when_the_ticket_ends() {
        let progress = Arc::new(Progress::default());
        let waiter = std::thread::spawn({
            let progress = Arc::clone(&progress);
            move || progress.wait(1, Duration::from_secs(30))
        });
        std::thread::sleep(Duration::from_millis(20));
        progress.end(1);
        assert!(waiter.join().unwrap());
        assert!(!progress.wait(2, Duration::from_millis(1)), "a slice ends without the ticket");
    }
}
