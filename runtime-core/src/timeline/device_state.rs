//! The state of an opened device: its handle and functions, and whether it may still be used.

#![allow(unsafe_code, reason = "takes the errors of a backend's table")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use crate::abi::{self, Handle, Status};
use crate::plugin::convert;
use crate::plugin::instance::Instance;
use crate::plugin::negotiate::DispatchTable;
use crate::process;
use crate::{DeviceInfo, Error, ErrorKind, Result};

/// What everything that was made from a device needs of it. The fields that every launch reads come first.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct DeviceState {
    /// The process generation in which it was opened; another one means a forked child.
    fork_generation: u32,
    /// Why the device was lost.
    lost: OnceLock<Error>,
    /// The backend has reported impossible progress, so nothing that it was given may ever be freed.
    distrusted: AtomicBool,
    pub(crate) instance: Arc<Instance>,
    pub(crate) info: DeviceInfo,
    /// The device string.
    pub(crate) name: String,
    pub(crate) handle: Handle,
    pub(crate) calls: DispatchTable,
    /// The one lock of a device that declares itself serial.
    pub(crate) serial: Option<Arc<Mutex<()>>>,
}

// SAFETY: `handle` is a backend device; the contract of the table lets any thread use it.
unsafe impl Send for DeviceState {}
// SAFETY: as above.
unsafe impl Sync for DeviceState {}

impl DeviceState {
    pub(super) fn new(instance: Arc<Instance>, info: DeviceInfo, handle: Handle) -> Self {
        Self {
            fork_generation: process::generation(),
            lost: OnceLock::new(),
            distrusted: AtomicBool::new(false),
            calls: instance.calls,
            instance,
            name: info.id.to_string(),
            serial: info.capabilities.has(abi::CAP_SERIAL).then(Arc::default),
            info,
            handle,
        }
    }

    /// Rejects any use in a forked child, and of a lost device.
    ///
    /// # Errors
    /// `Unavailable` after a fork; `DeviceLost`.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.fork_generation == process::generation() && self.lost.get().is_none() {
            Ok(())
        } else {
            Err(self.unavailable())
        }
    }

    #[cold]
    fn unavailable(&self) -> Error {
        match self.lost.get() {
            Some(error) => error.clone(),
            None if process::exiting() => {
                Error::new(ErrorKind::Unavailable, "the process is exiting").on_device(&self.name)
            }
            None => Error::new(
                ErrorKind::Unavailable,
                "this process was forked after the device was opened; make a new `Runtime` in the child and open it there",
            )
            .on_device(&self.name),
        }
    }

    /// Whether the device is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Records why the device was lost; returns whether it was not lost before.
    pub(super) fn set_lost(&self, error: &Error) -> bool {
        self.lost.set(error.clone()).is_ok()
    }

    /// Records that the backend has reported impossible progress.
    pub(super) fn set_distrusted(&self) {
        self.distrusted.store(true, Ordering::Relaxed);
    }

    /// Whether drops must leak: at exit the driver may be gone, after a fork it belongs to the parent, and a distrusted
    /// backend may use everything.
    pub(crate) fn must_leak(&self) -> bool {
        process::exiting()
            || self.fork_generation != process::generation()
            || self.distrusted.load(Ordering::Relaxed)
    }

    /// Locks a serial device for one call; does nothing for others.
    pub(crate) fn lock_serial(&self) -> Option<MutexGuard<'_, ()>> {
        self.serial.as_ref().map(|serial| serial.lock())
    }

    /// Checks the handle that a successful call returned.
    ///
    /// # Errors
    /// `AbiMismatch` for a null handle.
    pub(crate) fn check_made(&self, operation: &str, what: &str, handle: Handle) -> Result<()> {
        convert::check_handle(what, handle)
            .map_err(|error| error.in_operation(operation).on_device(&self.name))
    }
}

/// The error of a call of the backend that returned `status`, which is not null.
#[cold]
pub(super) fn call_error(device: &str, operation: &'static str, status: Status) -> Error {
    // SAFETY: a non-null status of the table is an owned error object, taken here once.
    let error = unsafe { convert::from_status(status) }.err();
    let error = error.unwrap_or_else(|| Error::new(ErrorKind::Internal, "empty error"));
    error.in_operation(operation).on_device(device)
}
