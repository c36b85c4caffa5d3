//! Packs the arguments of a launch for a call, and provides scratch memory for those passed by pointer.

#![allow(unsafe_code, reason = "copies by-value arguments into scratch memory")]

use std::sync::Arc;

use runtime_core::backend::{ArgRef, unsupported_argument};
use runtime_core::{Error, ErrorKind, Result};

use crate::call::{Function, Registers};
use crate::convention::Convention;
use crate::memory::HostBuffer;
use crate::packed_func::Tensors;
use crate::parallel_for::ParallelFor;
use crate::pool::Pool;
use crate::range::RangeCall;
use crate::record_type::RecordType;
use crate::register::{RegClass, RegValue};
use crate::work_groups::{Extent, GroupCall};

/// Alignment of arguments in scratch memory.
const SCRATCH_ALIGNMENT_BYTES: usize = 64;

/// Packs the arguments of a plain function directly into registers; `None` if they do not fit or are not supported there.
#[inline]
pub(crate) fn registers<'a>(args: impl Iterator<Item = ArgRef<'a, HostBuffer>>) -> Option<Registers> {
    let mut registers = Registers::default();
    for arg in args {
        let word = match arg {
            ArgRef::Tensor(tensor) => RegValue::pointer(tensor.address()),
            ArgRef::Scalar { dtype, bits } => RegValue::scalar(dtype, bits)?,
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
    /// Its index in the argument list.
    index: usize,
    bytes: usize,
    /// Whether it has contents (in `contents`, in order); work-group memory has none.
    by_value: bool,
}

/// The arguments of one call. Reused for many calls, so that it rarely allocates.
#[derive(Debug, Default)]
pub(crate) struct PackedArgs {
    words: Vec<RegValue>,
    tensors: Tensors,
    indirect: Vec<Indirect>,
    contents: Vec<u8>,
}

impl PackedArgs {
    /// Packs the arguments of a launch for a function of `convention`.
    ///
    /// # Errors
    /// `Unsupported`, with the index of the argument.
    pub(crate) fn fill<'a>(
        &mut self,
        convention: Convention,
        args: impl Iterator<Item = ArgRef<'a, HostBuffer>>,
    ) -> Result<()> {
        self.clear();
        let plain = convention.is_bare();
        for (index, arg) in args.enumerate() {
            let word = match arg {
                ArgRef::Tensor(tensor) if plain => RegValue::pointer(tensor.address()),
                ArgRef::Tensor(tensor) => {
                    self.tensors.push(tensor.address(), tensor.dtype(), tensor.shape(), tensor.strides());
                    RegValue { bits: 0, class: RegClass::Tensor }
                }
                ArgRef::Scalar { dtype, bits } => {
                    let word =
                        if plain { RegValue::scalar(dtype, bits) } else { RegValue::wide(dtype, bits) };
                    word.ok_or_else(|| {
                        Error::unsupported(format!("argument {index}: a {dtype} scalar is not supported"))
                            .with_note("pass it as bytes")
                    })?
                }
                ArgRef::Bytes(_) if convention == Convention::Plain => {
                    return Err(Error::unsupported(format!(
                        "argument {index}: C passes a structure by the types of its fields; pass it as Arg::record"
                    )));
                }
                ArgRef::Bytes(bytes) => {
                    self.push_contents(index, bytes);
                    RegValue::pointer(0)
                }
                ArgRef::Record { fields, bytes } if convention == Convention::Plain => {
                    let of_argument = |error: Error| {
                        Error::new(error.kind(), format!("argument {index}: {}", error.message()))
                    };
                    let class = RegClass::Record(RecordType::of(fields).map_err(of_argument)?);
                    self.push_contents(index, bytes);
                    RegValue { bits: 0, class }
                }
                ArgRef::Local(bytes) => {
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                    self.indirect.push(Indirect { index, bytes, by_value: false });
                    RegValue::pointer(0)
                }
                _ => return Err(unsupported_argument(index)),
            };
            self.words.push(word);
        }
        Ok(())
    }

    fn push_contents(&mut self, index: usize, bytes: &[u8]) {
        self.indirect.push(Indirect { index, bytes: bytes.len(), by_value: true });
        self.contents.extend_from_slice(bytes);
    }

    /// Removes the arguments, and frees large memory.
    pub(crate) fn clear(&mut self) {
        const KEPT_BYTES: usize = 4096;
        self.words.clear();
        self.tensors.clear();
        self.indirect.clear();
        self.contents.clear();
        self.contents.shrink_to(KEPT_BYTES);
    }

    /// Calls `function` with the arguments, for all of `extent`, on this thread and those of `pool`.
    ///
    /// # Errors
    /// `OutOfMemory` if scratch memory cannot be allocated; `OutOfResources` if the pool cannot start; `Unsupported`;
    /// `Failed` if the function reports a failure.
    pub(crate) fn invoke(
        &mut self,
        function: &Arc<Function>,
        extent: &Extent,
        scratch: &mut Scratch,
        pool: &Pool,
    ) -> Result<()> {
        match *extent {
            Extent::Single => {
                self.place(scratch, 1)?;
                function.call(&self.words)
            }
            Extent::Range(span) => {
                let split = span.split(pool.threads());
                let local_bytes = self.place(scratch, split.workers())?;
                let locals = self.indirect.iter().filter(|argument| !argument.by_value);
                let locals = locals.map(|argument| (argument.index, local_bytes)).collect();
                ParallelFor::new(RangeCall::new(function, &self.words, locals), split).run(pool)
            }
            Extent::Groups(groups) => {
                if let Some(local) = self.indirect.iter().find(|argument| !argument.by_value) {
                    return Err(Error::unsupported(format!(
                        "argument {}: work-group memory as an argument is not supported with convention \"groups\"; the code allocates it itself",
                        local.index
                    )));
                }
                self.place(scratch, 1)?;
                GroupCall::run(function, &self.words, groups, pool)
            }
        }
    }

    /// Gives every indirect argument its memory, work-group memory `workers` times; says how far apart these are.
    fn place(&mut self, scratch: &mut Scratch, workers: usize) -> Result<u64> {
        self.tensors.place(&mut self.words);
        if self.indirect.is_empty() {
            return Ok(0);
        }
        let by_value = self.bytes(|argument| argument.by_value);
        let local = self.bytes(|argument| !argument.by_value);
        let total = local.and_then(|local| local.checked_mul(workers)?.checked_add(by_value?));
        let start = scratch.reserve(total.unwrap_or(usize::MAX))?;
        let mut contents = self.contents.as_slice();
        let (mut value, mut work) = (start, start.wrapping_add(by_value.unwrap_or(0)));
        for argument in &self.indirect {
            let place = if argument.by_value { &mut value } else { &mut work };
            self.words[argument.index].bits = place.expose_provenance() as u64;
            if argument.by_value {
                let (bytes, rest) = contents.split_at(argument.bytes);
                // SAFETY: the scratch memory holds the sum of the rounded sizes, and `contents` is elsewhere.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), *place, bytes.len()) };
                contents = rest;
            }
            *place = place.wrapping_add(rounded(argument.bytes).unwrap_or(0));
        }
        Ok(local.unwrap_or(0) as u64)
    }

    /// Scratch memory of the indirect arguments that `fits` chooses; `None` if there is no such number.
    fn bytes(&self, fits: impl Fn(&Indirect) -> bool) -> Option<usize> {
        let mut chosen = self.indirect.iter().filter(|argument| fits(argument));
        chosen.try_fold(0_usize, |sum, argument| sum.checked_add(rounded(argument.bytes)?))
    }
}

const fn rounded(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(SCRATCH_ALIGNMENT_BYTES)
}

/// Scratch memory, reused by one call after another.
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
    use runtime_core::code::Record;

    use super::*;

    /// Larger than two registers, so that it is passed on the stack.
    #[repr(C)]
    struct Triple(u64, f64, u32);

    #[repr(C)]
    struct Pair(f32, u8);

    extern "C" fn gather(out: *mut f64, triple: Triple, local: *mut u8, pair: Pair, factor: u32) {
        // SAFETY: the test passes 100 bytes of local memory.
        unsafe { local.wrapping_add(99).write(1) };
        let aligned = f64::from(u8::from((local as usize).is_multiple_of(64)));
        let sum = triple.0 as f64 + triple.1 + f64::from(triple.2) + f64::from(pair.0) + f64::from(pair.1);
        // SAFETY: the test passes memory for it.
        unsafe { out.write(sum * f64::from(factor) + aligned) };
    }

    fn pool() -> Pool {
        Pool::new("test".to_owned(), &[])
    }

    fn pointer<'a, T>(out: &mut T) -> ArgRef<'a, HostBuffer> {
        ArgRef::Scalar { dtype: DType::U64, bits: (&raw mut *out).expose_provenance() as u64 }
    }

    #[test]
    fn structures_arrive_by_value_and_local_memory_as_a_pointer() {
        let function = Arc::new(Function::new(gather as *const c_void, None));
        let (mut packed, mut scratch) = (PackedArgs::default(), Scratch::default());
        let mut out = 0_f64;
        for round in 1..4_u8 {
            let triple = Record::new().with(u64::from(round)).with(0.5f64).with(3u32);
            let pair = Record::new().with(0.25f32).with(round);
            let args = [
                pointer(&mut out),
                ArgRef::Record { fields: triple.fields(), bytes: triple.as_bytes() },
                ArgRef::Local(100),
                ArgRef::Record { fields: pair.fields(), bytes: pair.as_bytes() },
                ArgRef::Scalar { dtype: DType::U32, bits: 10 },
            ];
            assert!(registers(args.into_iter()).is_none(), "they need memory");
            packed.fill(Convention::Plain, args.into_iter()).unwrap();
            packed.invoke(&function, &Extent::Single, &mut scratch, &pool()).unwrap();
            // SAFETY: `out` is written behind the compiler's back.
            let written = unsafe { (&raw const out).read_volatile() };
            assert_eq!(written, 10.0 * (2.0 * f64::from(round) + 3.75) + 1.0);
        }
    }

    #[test]
    fn an_unsupported_argument_is_named() {
        let mut packed = PackedArgs::default();
        let error = packed
            .fill(Convention::Plain, [ArgRef::Scalar { dtype: DType::COMPLEX128, bits: 0 }].into_iter())
            .unwrap_err();
        assert!(error.message().starts_with("argument 0: a complex128 scalar"), "{error}");
        let refused =
            |packed: &mut PackedArgs, arg| packed.fill(Convention::Plain, [arg].into_iter()).unwrap_err();
        let error = refused(&mut packed, ArgRef::Bytes(&[1; 8]));
        assert!(error.message().contains("argument 0") && error.message().contains("Arg::record"), "{error}");
        let field = ArgRef::Record { fields: &[DType::COMPLEX128], bytes: &[0; 16] };
        let error = refused(&mut packed, field);
        assert!(error.message().contains("argument 0: a structure with a field of complex128"), "{error}");
        let error = refused(&mut packed, ArgRef::Record { fields: &[], bytes: &[] });
        assert!(error.message().contains("without fields"), "{error}");
        packed
            .fill(Convention::Plain, [ArgRef::Local(u64::MAX), ArgRef::Local(u64::MAX)].into_iter())
            .unwrap();
        let error = packed
            .invoke(&Arc::new(Function::empty()), &Extent::Single, &mut Scratch::default(), &pool())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    }
}
