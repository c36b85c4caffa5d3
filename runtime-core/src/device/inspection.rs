//! Memory and registers of an embedded device whose program has stopped.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use crate::device::embedded::EmbeddedDevice;
use crate::model::kernel_info::Register;
use crate::{Error, ErrorKind, Result, abi};

/// Room for the text of a processor's registers at first.
const REGISTERS_BYTES: usize = 4096;

impl EmbeddedDevice {
    /// Reads memory of the target, also after a run that has crashed or timed out.
    ///
    /// # Errors
    /// `InvalidArgument` if nothing was flashed; `Unsupported`; `Driver` for an address without memory; `Io` or `Timeout` if the
    /// target does not answer.
    pub fn read_memory(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let read = self.inspect("read memory", abi::INSPECT_MEMORY, address, bytes)?;
        match read == bytes.len() {
            true => Ok(()),
            false => {
                Err(self.mismatch("read memory", format!("{read} bytes were read, not {}", bytes.len())))
            }
        }
    }

    /// Reads the registers of the target. After a crash, they are those that the program had.
    ///
    /// # Errors
    /// As for [`EmbeddedDevice::read_memory`]; `Unsupported` for a target without a debugger, unless its program has crashed.
    pub fn registers(&self) -> Result<Vec<Register>> {
        let (text, bytes) =
            read_text(|buffer| self.inspect("read registers", abi::INSPECT_REGISTERS, 0, buffer))?;
        let lines = text.get(..bytes).and_then(|text| std::str::from_utf8(text).ok());
        let registers = lines.and_then(|lines| lines.lines().map(register).collect());
        registers.ok_or_else(|| {
            self.mismatch("read registers", format!("{bytes} bytes are not lines of registers"))
        })
    }

    fn inspect(&self, operation: &'static str, what: u32, address: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut bytes = 0;
        self.device.call(operation, |calls, device| {
            let (pointer, capacity) = (buffer.as_mut_ptr(), buffer.len());
            // SAFETY: the device is open, and `buffer` and `bytes` are writable during the call.
            unsafe { (calls.embedded.inspect)(device, what, address, pointer, capacity, &raw mut bytes) }
        })?;
        Ok(bytes)
    }

    fn mismatch(&self, operation: &str, message: String) -> Error {
        Error::new(ErrorKind::AbiMismatch, message).in_operation(operation).on_device(&self.device.name)
    }
}

/// Reads text, again if it is longer than the first buffer. Returns the buffer and the length of the whole text.
fn read_text(mut read: impl FnMut(&mut [u8]) -> Result<usize>) -> Result<(Vec<u8>, usize)> {
    let mut text = vec![0; REGISTERS_BYTES];
    let mut bytes = read(&mut text)?;
    if bytes > text.len() {
        text.resize(bytes.min(abi::MAX_TEXT_BYTES), 0);
        bytes = read(&mut text)?;
    }
    Ok((text, bytes))
}

/// A line `NAME 0xVALUE`.
fn register(line: &str) -> Option<Register> {
    let (name, value) = line.split_once(" 0x")?;
    Some(Register { name: name.to_owned(), value: u64::from_str_radix(value, 16).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_a_name_and_a_hexadecimal_number() {
        let found = register("pc 0x8000001c").unwrap();
        assert_eq!((found.name.as_str(), found.value), ("pc", 0x8000_001c));
        for wrong in ["", "pc", "pc 12", "pc 0x", "pc 0x10000000000000000"] {
            assert_eq!(register(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn text_beyond_the_first_buffer_is_read_again() {
        for (bytes, room) in [(0, 4096), (4096, 4096), (4097, 4097), (usize::MAX, 1 << 20)] {
            let (text, found) = read_text(|buffer| {
                buffer.fill(1);
                Ok(bytes)
            })
            .unwrap();
            assert_eq!((text.len(), found), (room, bytes));
            assert!(text.iter().all(|&byte| byte == 1), "{bytes}");
        }
    }
}
