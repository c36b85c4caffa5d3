//! Exit handling, with the setting `exit_handler`: like a compiler, the driver registers an exit handler at its first
//! submission. The process aborts if work is still in flight when the handler runs, or if work is submitted or a semaphore
//! queried afterwards.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::settings;

/// Whether there is work that was not waited for.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whether the handler has run.
static EXITED: AtomicBool = AtomicBool::new(false);
/// Calls that are errors after the handler has run; recording commands is not.
const FORBIDDEN: [&str; 4] =
    ["vkQueueSubmit", "vkQueueSubmit2", "vkGetSemaphoreCounterValue", "vkWaitSemaphores"];
/// How long the handler waits for a forbidden call of another thread.
const PAUSE: Duration = Duration::from_millis(100);

/// Notes a call of a function.
pub(crate) fn note_call(function: &str) {
    static ONCE: Once = Once::new();
    if settings::value("exit_handler").is_none() {
        return;
    }
    match function {
        "vkQueueSubmit" | "vkQueueSubmit2" => {
            ONCE.call_once(|| {
                // SAFETY: the function outlives its registration: no driver in use is unloaded.
                let _ = unsafe { libc::atexit(end) };
            });
            BUSY.store(true, Ordering::SeqCst);
        }
        "vkDeviceWaitIdle" => BUSY.store(false, Ordering::SeqCst),
        _ => {}
    }
    if FORBIDDEN.contains(&function) && EXITED.load(Ordering::SeqCst) {
        abort(function);
    }
}

#[allow(clippy::print_stderr, reason = "the only output left at process exit")]
fn abort(why: &str) -> ! {
    eprintln!("{why} at process exit");
    std::process::abort()
}

extern "C" fn end() {
    EXITED.store(true, Ordering::SeqCst);
    if BUSY.load(Ordering::SeqCst) {
        abort("work in flight");
    }
    std::thread::sleep(PAUSE);
}
