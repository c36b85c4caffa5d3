//! The end of the process: the validation layer takes its own data down while its threads still follow work in flight,
//! which ends in a crash. So under that layer work is waited for first.

use std::sync::mpsc;
use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::Logical;

/// How long the end of the process waits at most.
const FAREWELL: Duration = Duration::from_secs(5);

static OPEN: Mutex<Vec<Weak<Logical>>> = Mutex::new(Vec::new());

/// Has the end of the process wait for the work of a device.
pub(super) fn before_exit(logical: &Arc<Logical>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function is there as long as the process: this library is never unloaded. Handlers run in the
        // reverse of their order, and the layer's were there before.
        let _ = unsafe { libc::atexit(wait) };
    });
    let mut open = OPEN.lock();
    open.retain(|logical| logical.strong_count() > 0);
    open.push(Arc::downgrade(logical));
}

extern "C" fn wait() {
    let Some(mut open) = OPEN.try_lock_for(FAREWELL) else { return };
    let (done, all_done) = mpsc::channel();
    for logical in open.drain(..).filter_map(|logical| logical.upgrade()) {
        let done = done.clone();
        let waiting = std::thread::Builder::new().spawn(move || {
            logical.wait_idle();
            // To close the device now is nobody's business any more.
            std::mem::forget(logical);
            let _ = done.send(());
        });
        if waiting.is_err() || all_done.recv_timeout(FAREWELL).is_err() {
            return;
        }
    }
}
