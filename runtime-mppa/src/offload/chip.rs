//! An opened chip. Calls to it are made one after the other.

#![allow(unsafe_code, reason = "calls the shim")]

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::{ErrorKind, Result};

use super::functions::{Functions, check};
use super::shim::Shim;

/// An opened chip; closed when everything made from it is dropped.
#[derive(Debug)]
pub struct Chip {
    shim: Arc<Shim>,
    handle: Mutex<Handle>,
    /// The library may keep its address.
    _firmware: CString,
}

#[derive(Debug)]
struct Handle(*mut c_void);

// SAFETY: the handle is used by one thread at a time, under its lock.
unsafe impl Send for Handle {}

impl Chip {
    pub(super) fn new(shim: Arc<Shim>, handle: *mut c_void, firmware: CString) -> Self {
        Self { shim, handle: Mutex::new(Handle(handle)), _firmware: firmware }
    }

    /// Makes a call to the chip.
    pub(super) fn call(
        &self,
        kind: ErrorKind,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) -> c_int,
    ) -> Result<()> {
        let handle = self.handle.lock();
        check(kind, function, call(&self.shim.functions, handle.0))
    }

    /// Size of a command.
    pub(super) fn command_bytes(&self) -> u64 {
        // SAFETY: returns the size of a structure.
        unsafe { (self.shim.functions.command_bytes)() }
    }

    /// A command that runs `function` with the arguments at an address.
    pub(super) fn command(&self, function: u64, arguments: u64) -> Vec<u8> {
        let bytes = self.command_bytes();
        let mut command = vec![0u64; usize::try_from(bytes.div_ceil(8)).unwrap_or(0)];
        // SAFETY: there is room for the structure, aligned as any structure of integers is.
        unsafe { (self.shim.functions.command)(command.as_mut_ptr().cast(), function, arguments) };
        command.into_iter().flat_map(u64::to_ne_bytes).collect()
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing made from the chip is left. A failure leaves nothing to do.
        let _ = unsafe { (self.shim.functions.close)(self.handle.get_mut().0) };
    }
}
