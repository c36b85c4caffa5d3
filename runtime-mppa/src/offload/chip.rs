//! An opened chip. Calls to it are made one after the other.

#![allow(unsafe_code, reason = "calls the shim")]

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::{ErrorKind, Result};

use super::functions::{Functions, check};
use super::memory::{Memory, Space};
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

    /// Runs a kernel on a cluster, with `teams` teams, and waits for it. The kernel gets the address of `arguments`.
    ///
    /// # Errors
    /// `OutOfMemory`; `Failed` if the library cannot run it.
    ///
    /// # Safety
    /// `function` is the address of a kernel on this chip ([`Module::symbol`](super::Module::symbol)), and its arguments are what it
    /// expects: it may access all memory of the chip.
    pub unsafe fn execute(
        self: &Arc<Self>,
        cluster: u32,
        function: u64,
        arguments: &Memory,
        teams: u32,
    ) -> Result<()> {
        // SAFETY: returns the size of a structure.
        let bytes = unsafe { (self.shim.functions.command_bytes)() };
        let mut command = vec![0u64; usize::try_from(bytes.div_ceil(8)).unwrap_or(0)];
        // SAFETY: there is room for the structure, aligned as any structure of integers is.
        unsafe {
            (self.shim.functions.command)(command.as_mut_ptr().cast(), function, arguments.kernel_address());
        }
        let command: Vec<u8> = command.into_iter().flat_map(u64::to_ne_bytes).collect();
        let memory = Memory::allocate(self, Space::Chip, command.len() as u64)?;
        memory.write(0, &command)?;
        self.call(ErrorKind::Failed, "mppa_offload_buffer_exec", |functions, handle| {
            // SAFETY: the chip is open, and the command is in its memory; the rest is the caller's promise.
            unsafe { (functions.execute)(handle, cluster, memory.kernel_address(), teams) }
        })
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nothing made from the chip is left. A failure leaves nothing to do.
        let _ = unsafe { (self.shim.functions.close)(self.handle.get_mut().0) };
    }
}
