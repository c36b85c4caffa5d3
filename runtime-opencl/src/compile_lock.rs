//! Serialises compilation on drivers that compile a kernel again at its first launch.
//!
//! Intel's CPU driver (intel-opencl-rt 2026.2) is one of them: its compiler hangs or crashes if one thread builds while another
//! launches a kernel for the first time. The second compilation runs on a thread of the driver after `clEnqueueNDRangeKernel` has
//! returned, so a lock around the calls does not help. Instead, builds take a lock. The first launch of a kernel takes the same
//! lock and keeps it until the kernel is running. Can go when a release of that driver passes `tests/opencl`'s races without it.

#![allow(unsafe_code, reason = "flushes a queue of the driver")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cl3::ext::CL_RUNNING;
use parking_lot::{Mutex, MutexGuard};

use crate::context::SharedContext;
use crate::driver::{Raw, call};

/// Sleep between two polls of a first launch.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// Held during every compilation. There is one compiler per process.
static COMPILER_LOCK: Mutex<()> = Mutex::new(());

/// Whether a kernel was launched before, and so is compiled.
#[derive(Debug, Default)]
pub(crate) struct LaunchedFlag(AtomicBool);

/// Holds the compiler lock during the first launch of a kernel. The kernel is compiled when this is dropped.
#[derive(Debug)]
pub(crate) struct FirstLaunchGuard<'a> {
    context: &'a SharedContext,
    queue: Raw,
    launched: &'a LaunchedFlag,
    is_compiled: bool,
    _guard: MutexGuard<'static, ()>,
}

impl SharedContext {
    /// Locks the compiler, if it is not thread-safe.
    pub(crate) fn lock_compiler(&self) -> Option<MutexGuard<'static, ()>> {
        self.caps.compiles_at_launch.then(|| COMPILER_LOCK.lock())
    }

    /// Locks the compiler for the first launch of a kernel, if that compiles. Held during the launch.
    #[inline]
    pub(crate) fn lock_first_launch<'a>(
        &'a self,
        queue: Raw,
        launched: &'a LaunchedFlag,
    ) -> Option<FirstLaunchGuard<'a>> {
        if !self.caps.compiles_at_launch || launched.0.load(Ordering::Acquire) {
            return None;
        }
        Some(FirstLaunchGuard {
            context: self,
            queue,
            launched,
            is_compiled: false,
            _guard: COMPILER_LOCK.lock(),
        })
    }
}

impl FirstLaunchGuard<'_> {
    /// Waits until the kernel runs. It is compiled by then, so there is no need to wait for its end.
    pub(crate) fn wait_until_running(mut self, event: Raw) {
        // SAFETY: the queue is alive.
        let _ = unsafe { call!(self.context.driver.call, clFlush(self.queue)) };
        while self.context.status(event) > CL_RUNNING {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.is_compiled = true;
    }
}

impl Drop for FirstLaunchGuard<'_> {
    fn drop(&mut self) {
        if !self.is_compiled {
            self.context.finish_queue(self.queue);
        }
        self.launched.0.store(true, Ordering::Release);
    }
}
