//! The end of the process. Exit handlers take down what threads of a driver go on using while work is in flight, which ends
//! in a crash: those of the validation layer, and of the compiler of a driver that computes on a processor. So there work is
//! waited for first, and then nobody is let in any more.
//!
//! Handlers run in the reverse of their order, so ours has to come after the driver's. LLVM, which compiles for Mesa, adds
//! one when it compiles for the first time, on a thread of the driver: therefore a processor runs something before the first
//! code of the program, and only then the handler is added.

use std::mem;
use std::sync::{Arc, Once, Weak, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::Result;

use super::Logical;

/// How long the end of the process waits at most: a compiler is through by then, and kernels may run on.
const FAREWELL: Duration = Duration::from_secs(5);
/// The same under the validation layer, whose threads follow kernels, too.
const FAREWELL_VALIDATED: Duration = Duration::from_secs(60);

/// Open devices, and the process that has opened them.
static OPEN: Mutex<Vec<(u32, Weak<Logical>)>> = Mutex::new(Vec::new());
/// Devices that have run something.
static READY: Mutex<Vec<[u8; 16]>> = Mutex::new(Vec::new());

fn is_validated(logical: &Logical) -> bool {
    logical.instance.messenger.is_some()
}

/// Has the end of the process wait for the work of a device, where it has to.
pub(super) fn before_exit(logical: &Arc<Logical>) {
    static ONCE: Once = Once::new();
    if !is_validated(logical) && !logical.facts.is_processor() {
        return;
    }
    ONCE.call_once(add_handler);
    let mut open = OPEN.lock();
    open.retain(|(_, logical)| logical.strong_count() > 0);
    open.push((std::process::id(), Arc::downgrade(logical)));
}

/// Before the first code of a processor: calls `run`, which has the driver compile and run something.
///
/// # Errors
/// Those of `run`, which the next code calls again.
pub(crate) fn before_code(logical: &Logical, run: impl FnOnce() -> Result<()>) -> Result<()> {
    if !logical.facts.is_processor() {
        return Ok(());
    }
    let mut ready = READY.lock();
    if !ready.contains(&logical.facts.uuid) {
        run()?;
        add_handler();
        ready.push(logical.facts.uuid);
    }
    Ok(())
}

fn add_handler() {
    // SAFETY: the function is there as long as the process: this library is never unloaded.
    let _ = unsafe { libc::atexit(end) };
}

extern "C" fn end() {
    let begin = Instant::now();
    let Some(open) = OPEN.try_lock_for(FAREWELL).map(|mut open| mem::take(&mut *open)) else { return };
    // In a forked child there is nobody to wait for.
    let ours = open.iter().filter(|(process, _)| *process == std::process::id());
    for logical in ours.filter_map(|(_, logical)| logical.upgrade()) {
        let patience = if is_validated(&logical) { FAREWELL_VALIDATED } else { FAREWELL };
        let (done, is_done) = mpsc::channel();
        let ending = Arc::clone(&logical);
        let thread = std::thread::Builder::new().spawn(move || {
            ending.end();
            // To close the device now is nobody's business any more.
            mem::forget(ending);
            let _ = done.send(());
        });
        if thread.is_ok() {
            let _ = is_done.recv_timeout(patience.saturating_sub(begin.elapsed()));
        }
        logical.refuse();
        mem::forget(logical);
    }
}
