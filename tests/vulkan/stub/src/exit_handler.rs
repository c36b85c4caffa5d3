//! The end of the process, with the word `exits`: like a compiler, the driver adds an exit handler when it is given work for
//! the first time. The process is aborted when nobody has waited for that work by then, or when work is given to it, or it is
//! asked how far it is, later.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::faults;

/// Whether there is work that nobody has waited for.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whether the handler has run.
static OVER: AtomicBool = AtomicBool::new(false);
/// What nobody does any more then. Who was about to record something may still do that.
const LATE: [&str; 4] = ["vkQueueSubmit", "vkQueueSubmit2", "vkGetSemaphoreCounterValue", "vkWaitSemaphores"];
/// How long others have for a call too many.
const PAUSE: Duration = Duration::from_millis(100);

/// Notes a call.
pub(crate) fn note(function: &str) {
    static ONCE: Once = Once::new();
    if faults::word("exits").is_none() {
        return;
    }
    match function {
        "vkQueueSubmit" | "vkQueueSubmit2" => {
            ONCE.call_once(|| {
                // SAFETY: the function is there as long as it is wanted: no driver in use is unloaded.
                let _ = unsafe { libc::atexit(end) };
            });
            BUSY.store(true, Ordering::SeqCst);
        }
        "vkDeviceWaitIdle" => BUSY.store(false, Ordering::SeqCst),
        _ => {}
    }
    if LATE.contains(&function) && OVER.load(Ordering::SeqCst) {
        abort(function);
    }
}

#[allow(clippy::print_stderr, reason = "the process has no other way to say it any more")]
fn abort(why: &str) -> ! {
    eprintln!("{why} at the end of the process");
    std::process::abort()
}

extern "C" fn end() {
    OVER.store(true, Ordering::SeqCst);
    if BUSY.load(Ordering::SeqCst) {
        abort("work in flight");
    }
    std::thread::sleep(PAUSE);
}
