//! A launch over the buffers inside another backend's buffers.

#![allow(unsafe_code, reason = "makes views of structures that it owns")]

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use smallvec::SmallVec;

use super::{Buffer, Launch};
use crate::{Result, abi, end_of};

/// Arguments that need no allocation.
const INLINE: usize = 8;

/// A launch whose tensors are in the buffers that a backend's own buffers contain. For a backend that builds on another one.
pub struct RetypedLaunch<'a, C> {
    raw: abi::Launch,
    tensors: SmallVec<[abi::TensorArg; INLINE]>,
    args: SmallVec<[abi::Arg; INLINE]>,
    buffers: PhantomData<&'a C>,
}

impl<'a, C: Buffer> RetypedLaunch<'a, C> {
    /// Replaces the buffer of each tensor by what `inner` finds in it. The addresses of tensors stay: both buffers have the same
    /// `kernel_address`.
    ///
    /// # Errors
    /// The first error of `inner`.
    pub fn new<B: Buffer>(launch: &Launch<'a, B>, inner: impl Fn(&'a B) -> Result<&'a C>) -> Result<Self> {
        let mut tensors = SmallVec::new();
        for tensor in launch.args().filter_map(super::ArgRef::tensor) {
            let buffer = ptr::from_ref(inner(tensor.buffer())?).cast_mut().cast();
            let struct_size = end_of!(abi::TensorArg, strides);
            tensors.push(abi::TensorArg { struct_size, buffer, ..*tensor.raw() });
        }
        Ok(Self {
            raw: abi::Launch { struct_size: end_of!(abi::Launch, arg_count), ..*launch.raw() },
            tensors,
            args: SmallVec::from_slice(launch.raw_args()),
            buffers: PhantomData,
        })
    }

    /// The launch.
    pub fn launch(&mut self) -> Launch<'_, C> {
        let mut tensors = self.tensors.iter();
        for arg in self.args.iter_mut().filter(|arg| is_tensor(arg)) {
            arg.value.tensor = tensors.next().map_or(ptr::null(), ptr::from_ref);
        }
        self.raw.args = self.args.as_ptr();
        // SAFETY: the arguments are those of a valid launch, their tensors are this structure's, which is borrowed, and the buffers
        // in them are live `C`s.
        unsafe { Launch::new(&self.raw) }
    }
}

impl<C> fmt::Debug for RetypedLaunch<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetypedLaunch").field("raw", &self.raw).finish_non_exhaustive()
    }
}

fn is_tensor(arg: &abi::Arg) -> bool {
    // SAFETY: the kind determines the active member.
    arg.kind == abi::ARG_TENSOR && unsafe { !arg.value.tensor.is_null() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::ArgRef;
    use crate::{DType, Error};

    #[derive(Debug)]
    struct Inner(u64);

    #[derive(Debug)]
    struct Outer(Option<Inner>);

    impl Buffer for Inner {
        fn kernel_address(&self) -> u64 {
            self.0
        }
    }

    impl Buffer for Outer {
        fn kernel_address(&self) -> u64 {
            self.0.as_ref().map_or(0, |inner| inner.0)
        }
    }

    fn tensor(buffer: &Outer, shape: &[i64; 1]) -> abi::TensorArg {
        abi::TensorArg {
            struct_size: end_of!(abi::TensorArg, strides),
            ndim: 1,
            buffer: ptr::from_ref(buffer).cast_mut().cast(),
            address: 100,
            byte_offset: 8,
            span_bytes: 4,
            dtype: DType::F32.0,
            shape: shape.as_ptr(),
            strides: [1i64].as_ptr(),
        }
    }

    fn with_launch(outer: &[Outer; 2], check: impl FnOnce(&Launch<'_, Outer>)) {
        let shape = [3];
        let tensors = [tensor(&outer[0], &shape), tensor(&outer[1], &shape)];
        let arg = |kind, value| abi::Arg { kind, access: 1, dtype_code: 0, dtype_bits: 32, bytes: 4, value };
        let args = [
            arg(abi::ARG_TENSOR, abi::ArgValue { tensor: &raw const tensors[0] }),
            arg(abi::ARG_SCALAR, abi::ArgValue { scalar: 7 }),
            arg(abi::ARG_TENSOR, abi::ArgValue { tensor: &raw const tensors[1] }),
        ];
        let raw = abi::Launch {
            struct_size: end_of!(abi::Launch, arg_count),
            flags: 0,
            groups: [2, 1, 1],
            group_size: [16, 1, 1],
            cluster: [1; 3],
            grain: 0,
            range: [0; 2],
            args: args.as_ptr(),
            arg_count: args.len(),
        };
        // SAFETY: everything is valid for the call.
        check(&unsafe { Launch::new(&raw) });
    }

    fn inner(outer: &Outer) -> Result<&Inner> {
        outer.0.as_ref().ok_or_else(|| Error::invalid("no inner buffer"))
    }

    #[test]
    fn tensors_are_in_the_inner_buffers_and_the_rest_is_the_same_even_after_a_move() {
        with_launch(&[Outer(Some(Inner(11))), Outer(Some(Inner(22)))], |launch| {
            let mut moved = Box::new(RetypedLaunch::new(launch, inner).unwrap());
            let retyped = moved.launch();
            let args: Vec<_> = retyped.args().collect();
            let addresses: Vec<_> =
                args.iter().filter_map(|arg| arg.tensor()).map(|tensor| tensor.buffer().0).collect();
            assert_eq!(addresses, [11, 22]);
            assert!(matches!(args[1], ArgRef::Scalar { bits: 7, .. }));
            let first = args[0].tensor().unwrap();
            assert_eq!((first.address(), first.byte_offset(), first.shape()), (100, 8, &[3i64][..]));
            assert_eq!((retyped.groups(), retyped.group_size()), ([2, 1, 1], [16, 1, 1]));
        });
    }

    #[test]
    fn a_buffer_without_an_inner_one_is_an_error() {
        with_launch(&[Outer(Some(Inner(11))), Outer(None)], |launch| {
            assert!(RetypedLaunch::new(launch, inner).unwrap_err().message().contains("no inner buffer"));
        });
    }
}
