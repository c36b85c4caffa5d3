//! The types of arguments, which select an overload.

use std::fmt;

use smallvec::SmallVec;

use crate::code::arg::ArgValue;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, DType, Error, Result};

/// The type of an argument: what distinguishes one overload of a kernel from another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgType {
    /// A tensor.
    Tensor {
        /// Its element type.
        dtype: DType,
        /// Its number of dimensions.
        rank: usize,
        /// Whether it is row-major without gaps, or passed as [`Arg::strided`].
        contiguous: bool,
        /// Its memory space; empty for the device's default space.
        space: String,
    },
    /// A scalar.
    Scalar(DType),
    /// A structure, or bytes by value.
    Bytes,
    /// Dynamic work-group memory.
    Local,
}

impl ArgType {
    /// A contiguous tensor in the device's default memory space.
    #[must_use]
    pub const fn tensor(dtype: DType, rank: usize) -> Self {
        Self::Tensor { dtype, rank, contiguous: true, space: String::new() }
    }

    /// The type of an argument.
    pub(super) fn of(arg: &Arg<'_>) -> Self {
        match arg.value {
            ArgValue::Tensor(tensor, _, strided) => Self::Tensor {
                dtype: tensor.dtype(),
                rank: tensor.shape().len(),
                contiguous: tensor.is_contiguous() || strided,
                space: tensor.space().to_owned(),
            },
            ArgValue::Scalar(dtype, _) => Self::Scalar(dtype),
            ArgValue::Bytes(_) | ArgValue::Record(_) => Self::Bytes,
            ArgValue::Local(_) => Self::Local,
        }
    }

    /// The element type of a tensor or scalar.
    pub(super) const fn dtype(&self) -> Option<DType> {
        match self {
            Self::Tensor { dtype, .. } | Self::Scalar(dtype) => Some(*dtype),
            Self::Bytes | Self::Local => None,
        }
    }

    /// The number that [`word`] gives an argument of this type.
    ///
    /// # Errors
    /// `InvalidArgument` for a memory space that the device does not have.
    pub(super) fn word(&self, device: &OpenDevice) -> Result<u64> {
        Ok(match self {
            Self::Tensor { dtype, rank, contiguous, space } => {
                let spaces = &device.info.spaces;
                let found = spaces.iter().position(|known| space.is_empty() || known.name == *space);
                let space = found.ok_or_else(|| {
                    let known: Vec<_> = spaces.iter().map(|space| space.name.as_str()).collect();
                    Error::invalid(format!(
                        "no memory space \"{space}\"; {}",
                        crate::did_you_mean(space, &known)
                    ))
                })?;
                tensor_word(*dtype, *rank, *contiguous, space)
            }
            Self::Scalar(dtype) => scalar_word(*dtype),
            Self::Bytes => BYTES,
            Self::Local => LOCAL,
        })
    }
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor { dtype, rank, contiguous, space } => {
                let gaps = if *contiguous { "" } else { " strided" };
                write!(f, "{dtype}[{rank}]{gaps}")?;
                if space.is_empty() { Ok(()) } else { write!(f, " in {space}") }
            }
            Self::Scalar(dtype) => write!(f, "{dtype}"),
            Self::Bytes => f.write_str("bytes"),
            Self::Local => f.write_str("local"),
        }
    }
}

/// What identifies an overload: the device, the variant of the kernel, and a number for the type of each argument.
pub(super) type Words = SmallVec<[u64; 18]>;

const TENSOR: u64 = 1 << 62;
const SCALAR: u64 = 2 << 62;
const BYTES: u64 = 3 << 62;
const LOCAL: u64 = BYTES | 1;

/// The number of an argument's type: equal for equal types on the same device.
#[inline]
pub(super) fn word(arg: &Arg<'_>) -> u64 {
    match arg.value {
        ArgValue::Tensor(tensor, _, strided) => {
            let dense = tensor.is_contiguous() || strided;
            tensor_word(tensor.dtype(), tensor.shape().len(), dense, tensor.space_index())
        }
        ArgValue::Scalar(dtype, _) => scalar_word(dtype),
        ArgValue::Bytes(_) | ArgValue::Record(_) => BYTES,
        ArgValue::Local(_) => LOCAL,
    }
}

#[inline]
fn tensor_word(dtype: DType, rank: usize, contiguous: bool, space: usize) -> u64 {
    // A kernel does not depend on a rank that is beyond all others.
    let (rank, space) = (rank.min(0xfff) as u64, space.min(0xfff) as u64);
    TENSOR | u64::from(contiguous) << 60 | space << 48 | rank << 32 | dtype_word(dtype)
}

#[inline]
fn scalar_word(dtype: DType) -> u64 {
    SCALAR | dtype_word(dtype)
}

#[inline]
fn dtype_word(dtype: DType) -> u64 {
    let (code, bits, lanes) = dtype.dlpack();
    u64::from(code) << 24 | u64::from(bits) << 16 | u64::from(lanes)
}
