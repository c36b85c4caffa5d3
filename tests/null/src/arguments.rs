//! Launch arguments, as a submission keeps them, and element access to their tensors.

use std::sync::Arc;

use runtime_core::backend::{ArgRef, Launch, TensorArg};
use runtime_core::{DType, Element, Error, ErrorKind, Result};
use smallvec::SmallVec;

use crate::memory::{Memory, NullBuffer};

/// An argument list and the number of work-items. Allocates nothing for 16 arguments of 4 dimensions.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) list: SmallVec<[Argument; 16]>,
    pub(crate) items: u64,
}

#[derive(Debug)]
pub(crate) enum Argument {
    Tensor(Tensor),
    Scalar(DType, u64),
    /// By-value bytes and work-group memory, which no builtin uses.
    Other,
}

/// The location and layout of a tensor.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) memory: Arc<Memory>,
    pub(crate) byte_offset: u64,
    pub(crate) dtype: DType,
    pub(crate) shape: SmallVec<[i64; 4]>,
    pub(crate) strides: SmallVec<[i64; 4]>,
}

impl Arguments {
    pub(crate) fn of_launch(launch: &Launch<'_, NullBuffer>) -> Result<Self> {
        let product = |extents: [u32; 3]| extents.iter().map(|&n| u64::from(n)).product::<u64>();
        let list = launch.args().map(|arg| match arg {
            ArgRef::Tensor(tensor) => Ok(Argument::Tensor(Tensor::new(&tensor))),
            ArgRef::Scalar { dtype, bits } => Ok(Argument::Scalar(dtype, bits)),
            ArgRef::Bytes(_) | ArgRef::Record { .. } | ArgRef::Local(_) => Ok(Argument::Other),
            other => Err(Error::unsupported(format!("argument {other:?} is not supported"))),
        });
        Ok(Self {
            list: list.collect::<Result<_>>()?,
            items: product(launch.groups()) * product(launch.group_size()),
        })
    }

    pub(crate) fn tensor(&self, index: usize) -> Result<&Tensor> {
        match self.list.get(index) {
            Some(Argument::Tensor(tensor)) => Ok(tensor),
            _ => Err(failed(format!("argument {index} is not a tensor"))),
        }
    }

    pub(crate) fn scalar<T: Element>(&self, index: usize) -> Result<T> {
        match self.list.get(index) {
            Some(Argument::Scalar(dtype, bits)) if *dtype == T::DTYPE => {
                Ok(bytemuck::pod_read_unaligned(&bits.to_le_bytes()[..size_of::<T>()]))
            }
            _ => Err(failed(format!("argument {index} is not a scalar of type {}", T::DTYPE))),
        }
    }
}

impl Tensor {
    fn new(tensor: &TensorArg<'_, NullBuffer>) -> Self {
        Self {
            memory: Arc::clone(&tensor.buffer().memory),
            byte_offset: tensor.byte_offset(),
            dtype: tensor.dtype(),
            shape: SmallVec::from_slice(tensor.shape()),
            strides: SmallVec::from_slice(tensor.strides()),
        }
    }

    /// A tensor in row-major order that fills its memory.
    pub(crate) fn contiguous(memory: Arc<Memory>, dtype: DType, shape: &[i64]) -> Self {
        let mut strides = SmallVec::from_elem(1, shape.len());
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Self { memory, byte_offset: 0, dtype, shape: SmallVec::from_slice(shape), strides }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.shape.iter().map(|&extent| extent.cast_unsigned()).product()
    }

    /// Byte offset of element `index` in row-major order.
    pub(crate) fn at(&self, index: u64) -> u64 {
        let (mut rest, mut offset) = (index, 0);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).rev() {
            let extent = extent.cast_unsigned();
            offset += (rest % extent).cast_signed() * stride;
            rest /= extent;
        }
        self.byte_offset.wrapping_add_signed(offset * self.dtype.bytes().cast_signed() as i64)
    }

    pub(crate) fn load<T: Element>(&self, index: u64) -> Result<T> {
        self.check::<T>()?;
        self.memory.load(self.at(index))
    }

    pub(crate) fn store<T: Element>(&self, index: u64, value: T) -> Result<()> {
        self.check::<T>()?;
        self.memory.store(self.at(index), value)
    }

    fn check<T: Element>(&self) -> Result<()> {
        if self.dtype == T::DTYPE {
            return Ok(());
        }
        Err(failed(format!("a tensor has elements of {}; the kernel expects {}", self.dtype, T::DTYPE)))
    }
}

/// A failure reported by a kernel.
pub(crate) fn failed(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Failed, message)
}
