//! The thread that makes the calls to a chip, one after the other.

#![allow(unsafe_code, reason = "calls the shim")]

use std::ffi::{CString, c_void};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use runtime_core::{Error, ErrorKind, Result};

use super::call_timeout::Limits;
use super::call_watch::Calls;
use super::functions::{Functions, check};

/// Functions of the library that open and close a chip.
const CREATE: &str = "mppa_offload_create";
const DESTROY: &str = "mppa_offload_destroy";

/// What the thread needs.
pub(super) struct CallThread {
    pub(super) functions: Functions,
    pub(super) calls: Arc<Calls>,
    pub(super) limits: Limits,
}

/// A thread that was started.
pub(super) struct Started {
    /// Its calls. It closes the chip when this is dropped.
    pub(super) requests: mpsc::Sender<Request>,
    /// Whether the chip is open.
    pub(super) created: mpsc::Receiver<Result<()>>,
    /// Disconnected when the thread ends.
    pub(super) closed: mpsc::Receiver<()>,
}

/// Calls functions of the shim with what is opened.
type Call = Box<dyn FnOnce(&Functions, *mut c_void) + Send>;

/// A call for the thread.
pub(super) struct Request {
    pub(super) function: String,
    pub(super) limit: Option<Duration>,
    pub(super) call: Call,
}

/// What the library has opened, with the name of its firmware, whose address the library may keep.
struct Opened {
    handle: *mut c_void,
    firmware: CString,
}

impl CallThread {
    /// Starts the thread, which opens the chip of a board.
    ///
    /// # Errors
    /// `OutOfResources` if no thread can be started.
    pub(super) fn start(self, board: u32, firmware: CString) -> Result<Started> {
        let (requests, received) = mpsc::channel();
        let (creates, created) = mpsc::channel();
        let (closes, closed) = mpsc::channel();
        let run = move || {
            let _closes: mpsc::Sender<()> = closes;
            if let Some(opened) = self.create(board, firmware, &creates) {
                self.serve(opened, &received);
            }
        };
        let thread = std::thread::Builder::new().name("mppa-chip".to_owned());
        thread.spawn(run).map_err(|error| {
            let message = format!("cannot start the thread of a chip: {error}; close other devices");
            Error::new(ErrorKind::OutOfResources, message)
        })?;
        Ok(Started { requests, created, closed })
    }

    /// Opens the chip.
    fn create(&self, board: u32, firmware: CString, created: &mpsc::Sender<Result<()>>) -> Option<Opened> {
        if !self.calls.begin(CREATE, Some(self.limits.open), ErrorKind::Timeout) {
            return None;
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: the name lives as long as what is opened, and the handle is writable.
        let code = unsafe { (self.functions.open)(board, firmware.as_ptr().cast_mut(), &raw mut handle) };
        self.calls.end();
        // A chip that nobody waits for any more is lost, which ends the thread.
        let _ = created.send(check(ErrorKind::Driver, CREATE, code));
        (code == 0).then_some(Opened { handle, firmware })
    }

    /// Makes calls until the chip is closed or lost.
    fn serve(&self, opened: Opened, requests: &mpsc::Receiver<Request>) {
        while let Ok(Request { function, limit, call }) = requests.recv() {
            if !self.calls.begin(&function, limit, ErrorKind::DeviceLost) {
                return opened.forget(&self.calls);
            }
            call(&self.functions, opened.handle);
            self.calls.end();
        }
        // The library cannot be asked to close a lost chip: it might wait for a simulator forever.
        if !self.calls.begin(DESTROY, Some(self.limits.call), ErrorKind::DeviceLost) {
            return opened.forget(&self.calls);
        }
        // SAFETY: the handle is open, and nothing made from the chip is left. A failure leaves nothing to do.
        let _ = unsafe { (self.functions.close)(opened.handle) };
        self.calls.end();
    }
}

impl Opened {
    /// Leaves it to the library, which may still use it. A board is never opened again after that, so its calls, which say so, stay.
    fn forget(self, calls: &Arc<Calls>) {
        std::mem::forget(self.firmware);
        if calls.is_board() {
            std::mem::forget(Arc::clone(calls));
        }
    }
}
