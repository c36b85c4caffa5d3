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
        let code = code.bytes();
        let bytes = code.len() as u64;
        let memory = Memory::allocate(chip, Space::Chip, bytes)?;
        let mut handle = 0;
        chip.call(ErrorKind::Driver, "mppa_offload_acc_load", |functions, opened| {
            let (elf, out) = (code.as_ptr().cast_mut().cast(), &raw mut handle);
            let addresses = (memory.kernel_address(), memory.transfer_address());
            // SAFETY: the chip is open, the code is only read, its memory is as large, and the handle is writable.
            unsafe { (functions.load)(opened, elf, bytes, addresses.0, addresses.1, out) }
        })?;
        Ok(Self { chip: Arc::clone(chip), handle })
    }

    /// The address of a function or variable.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn symbol(&self, name: &str) -> Result<u64> {
        let text = CString::new(name).map_err(|_| Error::invalid("a symbol has no zero byte"))?;
        let mut address = 0;
        self.chip.call(
            ErrorKind::NotFound,
            &format!("mppa_offload_query_symbol \"{name}\""),
            |functions, handle| {
                // SAFETY: the chip is open, the name ends with a zero byte, and the address is writable.
                unsafe { (functions.symbol)(handle, self.handle, text.as_ptr(), &raw mut address) }
            },
        )?;
        Ok(address)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // A failure leaves nothing to do.
        let _ = self.chip.call(ErrorKind::Driver, "mppa_offload_acc_unload", |functions, handle| {
            // SAFETY: the chip is open, and the module was loaded on it.
            unsafe { (functions.unload)(handle, self.handle) }
        });
    }
}
