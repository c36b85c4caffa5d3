//! Packs the arguments of a launch into one buffer (`CU_LAUNCH_PARAM_BUFFER_POINTER`), which the driver copies at once instead of
//! looking up each parameter.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use runtime_core::backend::{ArgRef, Launch, unsupported_argument};
use runtime_core::{Error, Result};

use crate::driver::abi::{LAUNCH_PARAM_BUFFER, LAUNCH_PARAM_BUFFER_SIZE};
use crate::memory::CudaBuffer;
use crate::module::CudaKernel;
use crate::param_info::{MAX_BYTES, ParamInfo};

/// Every scalar is written as a whole word: the bytes after it belong to later parameters, which overwrite them.
const WORD_BYTES: usize = 8;

/// The buffer, on the stack.
#[repr(align(16))]
pub(crate) struct ParamBuffer([MaybeUninit<u8>; MAX_BYTES + WORD_BYTES]);

impl ParamBuffer {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self([MaybeUninit::uninit(); MAX_BYTES + WORD_BYTES])
    }

    /// The `extra` array of `cuLaunchKernel` for a buffer of `bytes` bytes; the driver only reads what it points to.
    #[inline]
    pub(crate) fn launch_extra(&self, bytes: &usize) -> [*mut c_void; 5] {
        let (pointer, size) = (
            ptr::without_provenance_mut(LAUNCH_PARAM_BUFFER),
            ptr::without_provenance_mut(LAUNCH_PARAM_BUFFER_SIZE),
        );
        let buffer = self.0.as_ptr().cast_mut().cast();
        [pointer, buffer, size, ptr::from_ref(bytes).cast_mut().cast(), ptr::null_mut()]
    }

    #[inline]
    fn write_word(&mut self, offset: usize, value: u64) {
        if let Some(target) = self.0.get_mut(offset..).and_then(<[_]>::first_chunk_mut::<WORD_BYTES>) {
            *target = value.to_le_bytes().map(MaybeUninit::new);
        }
    }

    fn write_bytes(&mut self, offset: usize, bytes: &[u8]) {
        for (target, byte) in self.0[offset..].iter_mut().zip(bytes) {
            target.write(*byte);
        }
    }

    /// Packs the arguments of a kernel that has `packed_bytes`; returns the bytes of dynamic work-group memory.
    ///
    /// # Errors
    /// `InvalidArgument`, with the index of the argument.
    #[inline]
    pub(crate) fn pack(&mut self, kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>) -> Result<u32> {
        let mut shared_bytes = 0_u64;
        let mut parameters = kernel.parameters.as_deref().unwrap_or_default().iter();
        for (index, word) in launch.words().enumerate() {
            let Some((value, bytes)) = word else {
                let local_bytes = self.pack_other(kernel, launch, index, &mut parameters)?;
                shared_bytes = shared_bytes.saturating_add(local_bytes);
                continue;
            };
            match parameters.next() {
                Some(parameter) if parameter.bytes == bytes => self.write_word(parameter.offset, value),
                _ => return Err(size_mismatch(kernel, launch, index, bytes)),
            }
        }
        match parameters.len() {
            0 => kernel.allow_dynamic_shared(shared_bytes),
            missing => {
                Err(kernel.arg_count_error(kernel.parameters.as_deref().map_or(0, <[_]>::len) - missing))
            }
        }
    }

    /// Packs an argument that is not a word; returns the bytes it adds to the dynamic work-group memory.
    #[inline(never)]
    fn pack_other(
        &mut self,
        kernel: &CudaKernel,
        launch: &Launch<'_, CudaBuffer>,
        index: usize,
        parameters: &mut std::slice::Iter<'_, ParamInfo>,
    ) -> Result<u64> {
        match launch.args().nth(index) {
            Some(ArgRef::Local(bytes)) => Ok(bytes),
            Some(ArgRef::Bytes(bytes) | ArgRef::Record { bytes, .. }) => match parameters.next() {
                Some(parameter) if parameter.bytes == bytes.len() => {
                    self.write_bytes(parameter.offset, bytes);
                    Ok(0)
                }
                _ => Err(size_mismatch(kernel, launch, index, bytes.len())),
            },
            _ => Err(unsupported_argument(index)),
        }
    }
}

/// The error for an argument of `bytes` bytes where the kernel takes another size or no more arguments.
#[cold]
fn size_mismatch(kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>, index: usize, bytes: usize) -> Error {
    let before = launch.args().take(index);
    kernel.arg_size_error(index, before.filter(|arg| !matches!(arg, ArgRef::Local(_))).count(), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code, reason = "reads what was written")]
    fn a_later_parameter_overwrites_the_tail_of_a_word() {
        let mut packed = ParamBuffer::new();
        packed.write_word(0, u64::MAX);
        packed.write_word(4, 0x0807_0605_0403_0201);
        packed.write_bytes(6, &[9, 9]);
        let read = |at: usize| {
            let bytes = packed.0[at..at + 4].iter();
            // SAFETY: the first eight bytes were written.
            bytes.map(|byte| unsafe { byte.assume_init() }).collect::<Vec<_>>()
        };
        assert_eq!((read(0), read(4)), (vec![255; 4], vec![1, 2, 9, 9]));
    }
}
