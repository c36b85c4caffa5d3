//! Fork and exit: the only state that belongs to the process instead of a `Runtime`.
//!
//! After a fork, the child has the parent's handles, but none of its threads and, for most drivers, no
//! working driver. Using an object created before the fork is an error in the child; dropping one leaks it.
//! At exit, core waits, with a deadline, until the wait threads have left the backends and the running host tasks have
//! ended; no further host task starts. From then on drops leak, because the exit handlers of the drivers may already
//! have run, and the calls of a host task that still runs fail.
//!
//! # Order of the exit handlers
//!
//! Handlers run in reverse order of registration: read this table from the bottom up. Each of ours is registered
//! right after the driver state that it must still find intact. The table is for the `runtime` command with a Vulkan
//! CPU device, whose driver compiles with LLVM; other programs and devices have a subset of the rows.
//!
//! ```text
//! registered when                      handler                      at exit
//! the command starts                   command: crash_context       makes an `exit` by foreign code an error
//! the first backend opens              core: install                nothing left to do
//! the driver is loaded, opens devices  driver                       tears itself down
//! a Vulkan device has been opened      Vulkan: wait_at_exit         nothing left to do
//! a backend opened its first device    core: reinstall_exit_hook    stops threads of core; drops leak from now on
//! the first kernel is compiled         LLVM                         tears itself down
//! that compilation has ended           Vulkan: warm_up_compiler     waits for work, then rejects any more
//! ```
//!
//! - Core and Vulkan register twice because drivers register late. The later handler leaves nothing for the
//!   earlier one, which covers an exit in between.
//! - Core and Vulkan may run in either order, as they do when another backend opens its first device later: core
//!   stops only its own threads, and Vulkan waits for its devices without core.
//! - The command registers before it calls any foreign code, so its handler runs last and its `_exit` skips none
//!   of the others.
//! - A process that dies of a signal or calls `_exit` runs none of them.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::platform;

/// How long process exit waits for the threads of core.
const EXIT_DEADLINE: Duration = Duration::from_millis(200);

static GENERATION: AtomicU32 = AtomicU32::new(0);
static EXITING: AtomicBool = AtomicBool::new(false);
static CALLS_IN_PROGRESS: AtomicUsize = AtomicUsize::new(0);

/// Installs the fork and exit hooks, once per process, when the first backend is opened.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        platform::at_fork_in_child(on_fork);
        platform::at_exit(on_exit);
    });
}

/// Installs the exit hook again, so that it runs before the exit handlers of the drivers: handlers run in
/// reverse order of registration, and drivers have registered theirs by the time a backend's first device is
/// open.
pub(crate) fn reinstall_exit_hook() {
    platform::at_exit(on_exit);
}

/// Number of forks so far. An object of another generation was created in a parent process.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether the process is exiting; drivers must not be called from then on.
#[inline]
pub(crate) fn exiting() -> bool {
    EXITING.load(Ordering::Relaxed)
}

/// Runs in the child before `fork` returns, where only async-signal-safe operations such as atomics are
/// allowed.
extern "C" fn on_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // The threads that made these calls exist only in the parent.
    CALLS_IN_PROGRESS.store(0, Ordering::Relaxed);
}

extern "C" fn on_exit() {
    if !EXITING.swap(true, Ordering::SeqCst) && !wait_until_zero(&CALLS_IN_PROGRESS, EXIT_DEADLINE) {
        // A host task goes on. The drivers are about to be torn down, so its further calls must fail, as after a fork.
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until `calls` is zero; returns false if the deadline passes first.
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

/// Held by a thread of core's while it calls a backend or runs a host task; process exit waits for it, with a deadline.
#[derive(Debug)]
pub(crate) struct ThreadGuard {
    generation: u32,
}

impl ThreadGuard {
    /// Begins a call to a backend, or a host task; `None` if the process is exiting. Hold the guard for one call at a time.
    pub(crate) fn enter() -> Option<Self> {
        // Increment first, then load `EXITING`. `on_exit` stores first and then reads the counter, so at
        // least one of the two sees the other.
        CALLS_IN_PROGRESS.fetch_add(1, Ordering::SeqCst);
        let guard = Self { generation: generation() };
        (!EXITING.load(Ordering::SeqCst)).then_some(guard)
    }
}

impl Drop for ThreadGuard {
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
    fn exit_waits_for_wait_threads_with_a_deadline() {
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
    fn a_guard_is_granted_before_exit() {
        assert!(!exiting());
        let guard = ThreadGuard::enter();
        assert!(guard.is_some());
    }
}
