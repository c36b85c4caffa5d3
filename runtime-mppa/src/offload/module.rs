//! Code on a chip.

#![allow(unsafe_code, reason = "calls the shim")]

use std::ffi::CString;
use std::sync::Arc;

use runtime_core::{Error, ErrorKind, Result};

use super::chip::Chip;
use super::memory::{Memory, Space};
use crate::elf::Elf;

/// A loaded ELF file, unloaded on drop.
#[derive(Debug)]
pub struct Module {
    chip: Arc<Chip>,
    handle: u64,
}

impl Module {
    /// Loads an ELF file.
    ///
    /// # Errors
    /// `OutOfMemory`; `Driver`.
    pub fn load(chip: &Arc<Chip>, code: &Elf) -> Result<Self> {
        let mut code = code.bytes().to_vec();
        let bytes = code.len() as u64;
        let memory = Memory::allocate(chip, Space::Chip, bytes)?;
        let addresses = (memory.kernel_address(), memory.transfer_address());
        let handle = chip.call(ErrorKind::Driver, "mppa_offload_acc_load", move |functions, opened| {
            let (mut handle, elf) = (0, code.as_mut_ptr().cast());
            // SAFETY: the chip is open, the code is readable, its memory is as large, and the handle is writable.
            let load =
                unsafe { (functions.load)(opened, elf, bytes, addresses.0, addresses.1, &raw mut handle) };
            (load, handle)
        })?;
        Ok(Self { chip: Arc::clone(chip), handle })
    }

    /// The address of a function or variable.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn symbol(&self, name: &str) -> Result<u64> {
        let text = CString::new(name).map_err(|_| Error::invalid("a symbol has no zero byte"))?;
        let (module, function) = (self.handle, format!("mppa_offload_query_symbol \"{name}\""));
        let address = self.chip.call(ErrorKind::NotFound, &function, move |functions, handle| {
            let mut address = 0;
            // SAFETY: the chip is open, the name ends with a zero byte, and the address is writable.
            let code = unsafe { (functions.symbol)(handle, module, text.as_ptr(), &raw mut address) };
            (code, address)
        })?;
        match address {
            0 => Err(Error::new(ErrorKind::NotFound, format!("{function} returned no address"))),
            address => Ok(address),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let module = self.handle;
        self.chip.release("mppa_offload_acc_unload", move |functions, handle| {
            // SAFETY: the chip is open, and the module was loaded on it.
            let _ = unsafe { (functions.unload)(handle, module) };
        });
    }
}
