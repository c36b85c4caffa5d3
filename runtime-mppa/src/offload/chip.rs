//! An opened chip. Calls to it are made one after the other.

#![allow(unsafe_code, reason = "calls the shim")]

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use runtime_core::{ErrorKind, Result};

use super::functions::{Functions, check};
use super::shim::Shim;
use super::simulator::{CHECK_INTERVAL, Simulator};

/// An opened chip; closed when everything made from it is dropped.
#[derive(Debug)]
pub struct Chip {
    shim: Arc<Shim>,
    handle: Mutex<Handle>,
    /// The library may keep its address.
    _firmware: CString,
    /// Ended after the chip is closed.
    simulator: Option<Simulator>,
}

/// What the library has opened.
#[derive(Debug)]
pub(super) struct Handle(pub(super) *mut c_void);

// SAFETY: the handle is used by one thread at a time, under its lock.
unsafe impl Send for Handle {}

impl Chip {
    pub(super) fn new(
        shim: Arc<Shim>,
        handle: Handle,
        firmware: CString,
        simulator: Option<Simulator>,
    ) -> Self {
        Self { shim, handle: Mutex::new(handle), _firmware: firmware, simulator }
    }

    /// Checks that the chip's simulator, if it has one, still runs.
    ///
    /// # Errors
    /// `DeviceLost`, with the simulator's output.
    pub(super) fn check_running(&self) -> Result<()> {
        self.while_running(|| ())
    }

    /// Whether the chip has a simulator. Calls may never return then, because that may end.
    pub(super) const fn is_simulated(&self) -> bool {
        self.simulator.is_some()
    }

    /// Does something that must not be going on when the end of the chip's simulator is reported, or after that.
    ///
    /// # Errors
    /// As [`Chip::check_running`].
    pub(super) fn while_running<T>(&self, act: impl FnOnce() -> T) -> Result<T> {
        match &self.simulator {
            Some(simulator) => simulator.while_running(act),
            None => Ok(act()),
        }
    }

    /// As [`Simulator::record_files`], if the chip has a simulator.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn record_files(&self) -> Result<()> {
        self.simulator.as_ref().map_or(Ok(()), Simulator::record_files)
    }

    /// Locks something that is held during calls to the chip. A call to a simulator that has ended may never return.
    ///
    /// # Errors
    /// As [`Chip::check_running`].
    pub(super) fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>> {
        if !self.is_simulated() {
            return Ok(mutex.lock());
        }
        loop {
            self.check_running()?;
            if let Some(guard) = mutex.try_lock_for(CHECK_INTERVAL) {
                return Ok(guard);
            }
        }
    }

    /// Makes a call to the chip.
    ///
    /// # Errors
    /// `kind`; as [`Chip::check_running`].
    pub(super) fn call(
        &self,
        kind: ErrorKind,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) -> c_int,
    ) -> Result<()> {
        let handle = self.lock(&self.handle)?;
        let result = check(kind, function, call(&self.shim.functions, handle.0));
        // The end of the simulator explains any failure.
        result.or_else(|error| self.check_running().and(Err(error)))
    }

    /// Runs code of this process that calls the library itself, with the address of the structures that it takes.
    ///
    /// # Errors
    /// As [`Chip::check_running`].
    pub(super) fn run_host_code(&self, run: impl FnOnce(*mut c_void)) -> Result<()> {
        let handle = self.lock(&self.handle)?;
        // SAFETY: the handle is open.
        run(unsafe { (self.shim.functions.common_structures)(handle.0) });
        self.check_running()
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
        // The library cannot be asked to close a simulator that has ended: it might wait for it forever.
        if self.check_running().is_err() {
            return;
        }
        // SAFETY: the handle is open, and nothing made from the chip is left. A failure leaves nothing to do.
        let _ = unsafe { (self.shim.functions.close)(self.handle.get_mut().0) };
    }
}
