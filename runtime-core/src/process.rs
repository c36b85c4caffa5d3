//! Fork and exit: the only facts that belong to the process and not to a `Runtime`.
//!
//! After a fork the child has the parent's handles but none of its threads and, for most drivers, no driver: what was
//! made before is an error there and is leaked. At exit the waiter threads leave the backends, with a deadline, and
//! from then on drops leak: a driver's own exit handlers may have run.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::platform;

/// How long the exit of the process waits for waiter threads.
const EXIT_DEADLINE: Duration = Duration::from_millis(200);

static GENERATION: AtomicU32 = AtomicU32::new(0);
static EXITING: AtomicBool = AtomicBool::new(false);
static CALLS_IN_PROGRESS: AtomicUsize = AtomicUsize::new(0);

/// Watches for fork and exit, from the first backend of the process on.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        platform::at_fork_in_child(on_fork);
        platform::at_exit(on_exit);
    });
}

/// Watches for exit before whatever drivers do at exit: handlers run in the reverse of their order, and drivers have added
/// theirs when a backend's first device is open.
pub(crate) fn reinstall_exit_hook() {
    platform::at_exit(on_exit);
}

/// Counts forks: what was made in another generation belongs to a parent process.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether the process is ending: drivers must not be called any more.
#[inline]
pub(crate) fn exiting() -> bool {
    EXITING.load(Ordering::Relaxed)
}

/// Runs in the child, between `fork` and its return: nothing but atomics is allowed.
extern "C" fn on_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // The threads that were inside are the parent's.
    CALLS_IN_PROGRESS.store(0, Ordering::Relaxed);
}

extern "C" fn on_exit() {
    if !EXITING.swap(true, Ordering::SeqCst) {
        wait_until_zero(&CALLS_IN_PROGRESS, EXIT_DEADLINE);
    }
}

/// Waits until no thread is counted; says whether that came before the deadline.
fn wait_until_zero(calls: &AtomicUsize, deadline: Duration) -> bool {
    let start = Instant::now();
    while calls.load(Ordering::SeqCst) != 0 {
        if start.elapsed() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

/// A waiter thread is inside a backend: the exit of the process waits, for a while, until it is out.
#[derive(Debug)]
pub(crate) struct WaiterGuard {
    generation: u32,
}

impl WaiterGuard {
    /// Enters a backend, unless the process is ending. Keep it for one short call at a time.
    pub(crate) fn enter() -> Option<Self> {
        // Counted before the look: exit looks in the other order, so one of the two sees the other.
        CALLS_IN_PROGRESS.fetch_add(1, Ordering::SeqCst);
        let guard = Self { generation: generation() };
        (!EXITING.load(Ordering::SeqCst)).then_some(guard)
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        if self.generation == generation() {
            CALLS_IN_PROGRESS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_waits_for_waiters_but_not_for_ever() {
        let calls = AtomicUsize::new(0);
        assert!(wait_until_zero(&calls, Duration::from_secs(60)));
        calls.store(1, Ordering::SeqCst);
        assert!(!wait_until_zero(&calls, Duration::from_millis(5)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                calls.store(0, Ordering::SeqCst);
            });
            assert!(wait_until_zero(&calls, Duration::from_secs(60)));
        });
    }

    #[test]
    fn a_guard_that_is_refused_leaves_no_trace() {
        assert!(!exiting());
        let guard = WaiterGuard::enter();
        assert!(guard.is_some());
    }
}
