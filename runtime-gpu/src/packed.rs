//! Arguments of a launch as one block of bytes: the driver copies it at once, and asks nothing about each of them.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use runtime_core::backend::{ArgRef, Launch};
use runtime_core::{Error, Result};

use crate::memory::CudaBuffer;
use crate::module::CudaKernel;

/// Bytes of the parameters of a kernel that are packed; more of them are passed by pointers.
const MOST_BYTES: usize = 256;
/// A word may be written whole wherever one begins: what comes behind it is written later.
const WORD_BYTES: usize = 8;
/// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `CU_LAUNCH_PARAM_BUFFER_SIZE`.
const POINTER: usize = 1;
const SIZE: usize = 2;

/// Where a parameter of a kernel lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// Bytes of all parameters, if they can be packed.
pub(crate) fn packed_bytes(parameters: &[Parameter]) -> Option<usize> {
    let end = |parameter: &Parameter| parameter.offset.checked_add(parameter.bytes);
    let ascending = parameters.windows(2).all(|pair| end(&pair[0]).is_some_and(|end| end <= pair[1].offset));
    let bytes = end(parameters.last()?)?;
    (ascending && bytes <= MOST_BYTES).then_some(bytes)
}

/// Room for packed arguments.
#[repr(align(16))]
pub(crate) struct Packed([MaybeUninit<u8>; MOST_BYTES + WORD_BYTES]);

impl Packed {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self([MaybeUninit::uninit(); MOST_BYTES + WORD_BYTES])
    }

    /// What the driver is told of `bytes` packed bytes.
    #[inline]
    pub(crate) fn told(&self, bytes: &usize) -> [*const c_void; 5] {
        let (pointer, size) = (ptr::without_provenance(POINTER), ptr::without_provenance(SIZE));
        [pointer, self.0.as_ptr().cast(), size, ptr::from_ref(bytes).cast(), ptr::null()]
    }

    #[inline]
    fn word(&mut self, offset: usize, value: u64) {
        if let Some(place) = self.0.get_mut(offset..).and_then(<[_]>::first_chunk_mut::<WORD_BYTES>) {
            *place = value.to_le_bytes().map(MaybeUninit::new);
        }
    }

    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        for (place, byte) in self.0[offset..].iter_mut().zip(bytes) {
            place.write(*byte);
        }
    }

    /// Packs the arguments of a kernel that has `packed_bytes`; answers the bytes of dynamic work-group memory.
    ///
    /// # Errors
    /// `InvalidArgument` that says which argument.
    #[inline]
    pub(crate) fn fill(&mut self, kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>) -> Result<u32> {
        let mut shared_bytes = u64::from(launch.shared_bytes());
        let mut parameters = kernel.parameters.as_deref().unwrap_or_default().iter();
        for (index, word) in launch.words().enumerate() {
            let Some((value, bytes)) = word else {
                let local_bytes = self.fill_other(kernel, launch, index, &mut parameters)?;
                shared_bytes = shared_bytes.saturating_add(local_bytes);
                continue;
            };
            match parameters.next() {
                Some(parameter) if parameter.bytes == bytes => self.word(parameter.offset, value),
                _ => return Err(wrong(kernel, launch, index, bytes)),
            }
        }
        match parameters.len() {
            0 => kernel.allow_shared(shared_bytes),
            missing => Err(kernel.miscount(kernel.parameters.as_deref().map_or(0, <[_]>::len) - missing)),
        }
    }

    /// Packs an argument that is no word; answers what it adds to the dynamic work-group memory.
    #[inline(never)]
    fn fill_other(
        &mut self,
        kernel: &CudaKernel,
        launch: &Launch<'_, CudaBuffer>,
        index: usize,
        parameters: &mut std::slice::Iter<'_, Parameter>,
    ) -> Result<u64> {
        match launch.args().nth(index) {
            Some(ArgRef::Local(bytes)) => Ok(bytes),
            Some(ArgRef::Bytes(bytes)) => match parameters.next() {
                Some(parameter) if parameter.bytes == bytes.len() => {
                    self.bytes(parameter.offset, bytes);
                    Ok(0)
                }
                _ => Err(wrong(kernel, launch, index, bytes.len())),
            },
            _ => Err(unknown(index)),
        }
    }
}

#[cold]
pub(crate) fn unknown(index: usize) -> Error {
    Error::unsupported(format!("argument {index} is of a kind that this backend does not know"))
}

/// Says what is wrong with an argument that takes `bytes` bytes.
#[cold]
fn wrong(kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>, index: usize, bytes: usize) -> Error {
    let before = launch.args().take(index);
    kernel.mismatch(index, before.filter(|arg| !matches!(arg, ArgRef::Local(_))).count(), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(layout: &[(usize, usize)]) -> Vec<Parameter> {
        layout.iter().map(|&(offset, bytes)| Parameter { offset, bytes }).collect()
    }

    #[test]
    fn what_is_small_and_in_order_is_packed() {
        assert_eq!(packed_bytes(&parameters(&[(0, 8), (8, 8), (16, 4)])), Some(20));
        assert_eq!(packed_bytes(&parameters(&[(0, 1), (8, 248)])), Some(256));
        assert_eq!(packed_bytes(&parameters(&[(0, 8), (8, 249)])), None, "too large");
        assert_eq!(packed_bytes(&parameters(&[(8, 8), (0, 8)])), None, "out of order");
        assert_eq!(packed_bytes(&parameters(&[(0, 8), (4, 8)])), None, "one in the other");
        assert_eq!(packed_bytes(&parameters(&[(usize::MAX, 8)])), None, "beyond all bounds");
        assert_eq!(packed_bytes(&[]), None, "nothing to pack");
    }

    #[test]
    #[allow(unsafe_code, reason = "reads what was written")]
    fn a_word_is_cut_by_what_comes_behind_it() {
        let mut packed = Packed::new();
        packed.word(0, u64::MAX);
        packed.word(4, 0x0807_0605_0403_0201);
        packed.bytes(6, &[9, 9]);
        let read = |at: usize| {
            let bytes = packed.0[at..at + 4].iter();
            // SAFETY: the first eight bytes were written.
            bytes.map(|byte| unsafe { byte.assume_init() }).collect::<Vec<_>>()
        };
        assert_eq!((read(0), read(4)), (vec![255; 4], vec![1, 2, 9, 9]));
    }
}
