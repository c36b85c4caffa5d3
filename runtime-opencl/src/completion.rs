//! A wait that leaves the processor to the work, for serial drivers whose device is this processor: no thread may block in such a driver,
//! and a thread that polls it takes the time of the work. The driver calls back when a command ends.

#![allow(unsafe_code, reason = "calls the driver, and is called by it")]

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use cl3::ext::{CL_COMPLETE, cl_event, cl_int};
use parking_lot::{Condvar, Mutex};

use crate::driver::{Driver, Raw, call};

/// Drivers do not call back for every failed command, so a wait polls this often.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Whether a command has ended.
#[derive(Debug, Default)]
pub(crate) struct Completion {
    has_ended: Mutex<bool>,
    changed: Condvar,
}

impl Completion {
    /// Asks the driver to report the end of the command of an event; `None` if it does not.
    pub(crate) fn of(driver: &Driver, event: Raw) -> Option<Arc<Self>> {
        let completion = Arc::new(Self::default());
        let data = Arc::into_raw(Arc::clone(&completion)).cast_mut().cast::<c_void>();
        // SAFETY: the event is alive, and so is `data`, until the callback takes it.
        let set = unsafe { call!(driver.call, clSetEventCallback(event, CL_COMPLETE, Some(report), data)) };
        if matches!(set, Ok(0)) {
            return Some(completion);
        }
        // SAFETY: the driver has not kept the pointer, which is that of `into_raw`.
        drop(unsafe { Arc::from_raw(data.cast::<Self>()) });
        None
    }

    /// Sleeps until the command has ended, for at most `limit`, or until the next poll is due.
    pub(crate) fn sleep(&self, limit: Duration) {
        self.changed.wait_while_for(
            &mut self.has_ended.lock(),
            |has_ended| !*has_ended,
            limit.min(POLL_INTERVAL),
        );
    }

    /// Whether the driver has reported the end.
    pub(crate) fn has_ended(&self) -> bool {
        *self.has_ended.lock()
    }
}

/// Called by the driver, on any thread, also during `clSetEventCallback`. It must not call the driver.
extern "C" fn report(_event: cl_event, _status: cl_int, data: *mut c_void) {
    // SAFETY: the pointer is that of `into_raw`, and a callback is called once.
    let completion = unsafe { Arc::from_raw(data.cast::<Completion>().cast_const()) };
    *completion.has_ended.lock() = true;
    completion.changed.notify_all();
}
