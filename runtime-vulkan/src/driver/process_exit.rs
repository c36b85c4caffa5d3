//! Process exit with work in flight.
//!
//! Exit handlers destroy state that threads of the validation layer, or of a CPU driver's compiler, still use while work is in
//! flight, and the process crashes. Our own exit handler therefore waits for the work of such devices, and then refuses new
//! work.
//!
//! Exit handlers run in reverse order of registration, so ours must be registered after the driver's. LLVM, which compiles
//! for Mesa, registers one at its first compilation, on a driver thread. Hence a CPU device compiles and runs a kernel
//! before the program's first one ([`warm_up_compiler`]), and only then registers the handler:
//!
//! ```text
//! warm_up_compiler: compile a kernel (LLVM registers its handler) -> register ours
//! exit:             ours (wait for compilation and work, refuse more) -> LLVM's
//! ```
//!
//! The module documentation of `process.rs` in `runtime-core` shows this order among all exit handlers.

use std::mem;
use std::sync::{Arc, Once, Weak, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::Result;

use super::LogicalDevice;

/// Longest wait at exit. A compiler has finished by then; kernels may still run.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The same under the validation layer, whose threads track kernels, too.
const VALIDATED_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(60);

/// Open devices, each with the process that opened it.
static OPEN_DEVICES: Mutex<Vec<(u32, Weak<LogicalDevice>)>> = Mutex::new(Vec::new());
/// Devices whose compiler has run.
static WARMED_UP: Mutex<Vec<[u8; 16]>> = Mutex::new(Vec::new());

fn is_validated(logical: &LogicalDevice) -> bool {
    logical.instance.messenger.is_some()
}

/// Makes process exit wait for a device's work, if its driver needs that.
pub(crate) fn wait_at_exit(logical: &Arc<LogicalDevice>) {
    static ONCE: Once = Once::new();
    if !is_validated(logical) && !logical.caps.is_cpu() {
        return;
    }
    ONCE.call_once(register_handler);
    let mut open = OPEN_DEVICES.lock();
    open.retain(|(_, logical)| logical.strong_count() > 0);
    open.push((std::process::id(), Arc::downgrade(logical)));
}

/// Before a CPU device's first kernel, calls `run`, which compiles and runs one, and registers the exit handler.
///
/// # Errors
/// Those of `run`; the next call tries again.
pub(crate) fn warm_up_compiler(logical: &LogicalDevice, run: impl FnOnce() -> Result<()>) -> Result<()> {
    if !logical.caps.is_cpu() {
        return Ok(());
    }
    let mut warmed_up = WARMED_UP.lock();
    if !warmed_up.contains(&logical.caps.uuid) {
        run()?;
        register_handler();
        warmed_up.push(logical.caps.uuid);
    }
    Ok(())
}

fn register_handler() {
    // SAFETY: the function exists until the process ends: this library is never unloaded.
    let _ = unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    let begin = Instant::now();
    let Some(open) = OPEN_DEVICES.try_lock_for(SHUTDOWN_TIMEOUT).map(|mut open| mem::take(&mut *open)) else {
        return;
    };
    // A forked child has no work of its parent's devices.
    let own = open.iter().filter(|(process, _)| *process == std::process::id());
    for logical in own.filter_map(|(_, logical)| logical.upgrade()) {
        let timeout = if is_validated(&logical) { VALIDATED_SHUTDOWN_TIMEOUT } else { SHUTDOWN_TIMEOUT };
        let (done, is_done) = mpsc::channel();
        let ending = Arc::clone(&logical);
        let thread = std::thread::Builder::new().spawn(move || {
            ending.shut_down();
            // Never destroy the device during process exit.
            mem::forget(ending);
            let _ = done.send(());
        });
        if thread.is_ok() {
            let _ = is_done.recv_timeout(timeout.saturating_sub(begin.elapsed()));
        }
        logical.refuse_work();
        mem::forget(logical);
    }
}
