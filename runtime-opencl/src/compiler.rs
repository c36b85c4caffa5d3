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

use crate::context::Primary;
use crate::driver::Raw;

/// How long a first launch sleeps between two looks.
const LOOK: Duration = Duration::from_micros(20);

/// Held by whoever compiles: the compiler is the process's.
static COMPILER: Mutex<()> = Mutex::new(());

/// What was launched before, and need not be alone again.
#[derive(Debug, Default)]
pub(crate) struct Launched(AtomicBool);

/// The first launch of a kernel, which is compiled when this is gone.
#[derive(Debug)]
pub(crate) struct FirstLaunch<'a> {
    primary: &'a Primary,
    queue: Raw,
    launched: &'a Launched,
    is_compiled: bool,
    _alone: MutexGuard<'static, ()>,
}

impl Primary {
    /// Waits for the compiler, where it bears one caller at a time.
    pub(crate) fn compiler(&self) -> Option<MutexGuard<'static, ()>> {
        self.facts.compiles_at_launch.then(|| COMPILER.lock())
    }

    /// To be held over a launch.
    #[inline]
    pub(crate) fn first_launch<'a>(&'a self, queue: Raw, launched: &'a Launched) -> Option<FirstLaunch<'a>> {
        if !self.facts.compiles_at_launch || launched.0.load(Ordering::Acquire) {
            return None;
        }
        Some(FirstLaunch { primary: self, queue, launched, is_compiled: false, _alone: COMPILER.lock() })
    }
}

impl FirstLaunch<'_> {
    /// Waits until the kernel runs: it is compiled then, and its end need not be waited for.
    pub(crate) fn wait_until_running(mut self, event: Raw) {
        // SAFETY: the queue is alive.
        let _ = self.primary.driver.call("clFlush", |calls| Some(unsafe { (calls.clFlush?)(self.queue) }));
        while self.primary.status(event) > CL_RUNNING {
            std::thread::sleep(LOOK);
        }
        self.is_compiled = true;
    }
}

impl Drop for FirstLaunch<'_> {
    fn drop(&mut self) {
        if !self.is_compiled {
            self.primary.block_all(self.queue);
        }
        self.launched.0.store(true, Ordering::Release);
    }
}
