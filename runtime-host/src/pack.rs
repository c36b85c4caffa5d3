//! The arguments of a launch, taken out of the caller's memory, and the scratch memory of a call.

#![allow(unsafe_code, reason = "copies by-value arguments into scratch memory")]

use runtime_core::backend::ArgRef;
use runtime_core::{Error, ErrorKind, Result};

use crate::call::{Function, Registers, Word};
use crate::memory::HostBuffer;

/// Arguments that stand in scratch memory begin at multiples of this.
const SCRATCH_ALIGNMENT_BYTES: usize = 64;

/// Puts arguments straight into registers; `None` if they do not all fit there, or something is to be said of one.
#[inline]
pub(crate) fn registers<'a>(args: impl Iterator<Item = ArgRef<'a, HostBuffer>>) -> Option<Registers> {
    let mut registers = Registers::default();
    for arg in args {
        let word = match arg {
            ArgRef::Tensor(tensor) => Word::pointer(tensor.address()),
            ArgRef::Scalar { dtype, bits } => Word::scalar(dtype, bits)?,
            _ => return None,
        };
        if !registers.push(word) {
            return None;
        }
    }
    Some(registers)
}

/// An argument that needs memory during the call.
#[derive(Clone, Copy, Debug)]
struct Indirect {
    /// Its place in the argument list.
    index: usize,
    bytes: usize,
    /// Its contents follow those of the argument before; work-group memory has none.
    by_value: bool,
}

/// Arguments of one call. Filled again and again: it keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    words: Vec<Word>,
    indirect: Vec<Indirect>,
    contents: Vec<u8>,
}

impl Packed {
    /// Takes the arguments of a launch.
    ///
    /// # Errors
    /// `Unsupported`, which names the argument by its number.
    pub(crate) fn fill<'a>(&mut self, args: impl Iterator<Item = ArgRef<'a, HostBuffer>>) -> Result<()> {
        self.clear();
        for (index, arg) in args.enumerate() {
            let word = match arg {
                ArgRef::Tensor(tensor) => Word::pointer(tensor.address()),
                ArgRef::Scalar { dtype, bits } => Word::scalar(dtype, bits).ok_or_else(|| {
                    Error::unsupported(format!("argument {index}: a {dtype} scalar"))
                        .with_note("pass it as bytes")
                })?,
                ArgRef::Bytes(bytes) => {
                    self.indirect.push(Indirect { index, bytes: bytes.len(), by_value: true });
                    self.contents.extend_from_slice(bytes);
                    Word::pointer(0)
                }
                ArgRef::Local(bytes) => {
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                    self.indirect.push(Indirect { index, bytes, by_value: false });
                    Word::pointer(0)
                }
                _ => return Err(Error::unsupported(format!("argument {index}: its kind"))),
            };
            self.words.push(word);
        }
        Ok(())
    }

    /// Forgets the arguments; large memory is given back.
    pub(crate) fn clear(&mut self) {
        const KEPT_BYTES: usize = 4096;
        self.words.clear();
        self.indirect.clear();
        self.contents.clear();
        self.contents.shrink_to(KEPT_BYTES);
    }

    /// Calls `function` with the arguments.
    ///
    /// # Errors
    /// `OutOfMemory` without scratch memory; `Unsupported`.
    pub(crate) fn invoke(&mut self, function: &Function, scratch: &mut Scratch) -> Result<()> {
        if !self.indirect.is_empty() {
            self.place(scratch)?;
        }
        function.call(&self.words)
    }

    fn place(&mut self, scratch: &mut Scratch) -> Result<()> {
        let sizes = self
            .indirect
            .iter()
            .map(|argument| argument.bytes.checked_next_multiple_of(SCRATCH_ALIGNMENT_BYTES));
        let total = sizes.clone().try_fold(0_usize, |sum, size| sum.checked_add(size?));
        let mut place = scratch.reserve(total.unwrap_or(usize::MAX))?;
        let mut contents = self.contents.as_slice();
        for (argument, size) in self.indirect.iter().zip(sizes) {
            self.words[argument.index] = Word::pointer(place.expose_provenance() as u64);
            if argument.by_value {
                let (bytes, rest) = contents.split_at(argument.bytes);
                // SAFETY: the scratch memory holds the sum of the rounded sizes, and `contents` is elsewhere.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
                contents = rest;
            }
            place = place.wrapping_add(size.unwrap_or(0));
        }
        Ok(())
    }
}

/// Memory that calls use one after the other.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Option<HostBuffer>);

impl Scratch {
    fn reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        if let Some(buffer) = self.0.as_ref().filter(|buffer| buffer.bytes() >= bytes) {
            return Ok(buffer.start());
        }
        self.0 = None;
        let buffer = HostBuffer::allocate(bytes, SCRATCH_ALIGNMENT_BYTES, false).map_err(|error| {
            Error::new(
                ErrorKind::OutOfMemory,
                format!("scratch memory for bytes and local arguments: {}", error.message()),
            )
        })?;
        Ok(self.0.insert(buffer).start())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use runtime_core::DType;

    use super::*;

    extern "C" fn gather(out: *mut u64, descriptor: *const u64, local: *mut u8, factor: u32) {
        // SAFETY: the test passes one word of bytes.
        let value = unsafe { descriptor.read_unaligned() };
        // SAFETY: the test passes 100 bytes of local memory.
        unsafe { local.wrapping_add(99).write(1) };
        let aligned = (descriptor as usize).is_multiple_of(64) && (local as usize).is_multiple_of(64);
        // SAFETY: the test passes memory for it.
        unsafe { out.write(value * u64::from(factor) + u64::from(aligned)) };
    }

    fn pointer<'a>(out: &mut u64) -> ArgRef<'a, HostBuffer> {
        ArgRef::Scalar { dtype: DType::U64, bits: (&raw mut *out).expose_provenance() as u64 }
    }

    #[test]
    fn bytes_and_local_memory_arrive_as_pointers() {
        let function = Function::new(gather as *const c_void, None);
        let (mut packed, mut scratch) = (Packed::default(), Scratch::default());
        let mut out = 0_u64;
        for round in 1..4_u64 {
            let descriptor = round.to_le_bytes();
            let args = [
                pointer(&mut out),
                ArgRef::Bytes(&descriptor),
                ArgRef::Local(100),
                ArgRef::Scalar { dtype: DType::U32, bits: 10 },
            ];
            assert!(registers(args.into_iter()).is_none(), "they need memory");
            packed.fill(args.into_iter()).unwrap();
            packed.invoke(&function, &mut scratch).unwrap();
            // SAFETY: `out` is written behind the compiler's back.
            assert_eq!(unsafe { (&raw const out).read_volatile() }, 10 * round + 1);
        }
    }

    #[test]
    fn what_cannot_be_passed_is_named() {
        let mut packed = Packed::default();
        let error =
            packed.fill([ArgRef::Scalar { dtype: DType::COMPLEX128, bits: 0 }].into_iter()).unwrap_err();
        assert!(error.message().starts_with("argument 0: a complex128 scalar"), "{error}");
        packed.fill([ArgRef::Local(u64::MAX), ArgRef::Local(u64::MAX)].into_iter()).unwrap();
        let error = packed.invoke(&Function::empty(), &mut Scratch::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    }
}
