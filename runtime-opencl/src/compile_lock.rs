//! One compilation at a time, on a driver that compiles a kernel again when it is launched first.
//!
//! Intel's driver for processors does (intel-opencl-rt 2026.2): it hangs or crashes in its compiler if one thread builds while
//! another one launches a kernel for the first time. The second compilation is on a thread of the driver's own, after
//! `clEnqueueNDRangeKernel` has returned: a lock around the calls does not help. So the first launch of a kernel holds the
//! lock that builds take, until the kernel runs.

#![allow(unsafe_code, reason = "flushes a queue of the driver")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cl3::ext::CL_RUNNING;
use parking_lot::{Mutex, MutexGuard};

use crate::context::SharedContext;
use crate::driver::Raw;

/// How long a first launch sleeps between two looks.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// Held by whoever compiles: the compiler is the process's.
static COMPILER_LOCK: Mutex<()> = Mutex::new(());

/// What was launched before, and need not be alone again.
#[derive(Debug, Default)]
pub(crate) struct LaunchedFlag(AtomicBool);

/// The first launch of a kernel, which is compiled when this is gone.
#[derive(Debug)]
pub(crate) struct FirstLaunchGuard<'a> {
    context: &'a SharedContext,
    queue: Raw,
    launched: &'a LaunchedFlag,
    is_compiled: bool,
    _guard: MutexGuard<'static, ()>,
}

impl SharedContext {
    /// Waits for the compiler, where it bears one caller at a time.
    pub(crate) fn lock_compiler(&self) -> Option<MutexGuard<'static, ()>> {
        self.caps.compiles_at_launch.then(|| COMPILER_LOCK.lock())
    }

    /// To be held over a launch.
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
    /// Waits until the kernel runs: it is compiled then, and its end need not be waited for.
    pub(crate) fn wait_until_running(mut self, event: Raw) {
        // SAFETY: the queue is alive.
        let _ = self.context.driver.call("clFlush", |cl| Some(unsafe { (cl.clFlush?)(self.queue) }));
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
