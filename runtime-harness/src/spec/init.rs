//! Initial data of tensors: the same bytes on every machine.

use std::path::PathBuf;

use runtime_core::tensor::Interval;
use runtime_core::{DType, DTypeClass, HostArray, Number, Result};

/// The initial content of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// All elements 0.
    Zeros,
    /// All elements 1.
    Ones,
    /// The row-major index of each element, which wraps in an integer type that is too small.
    Arange,
    /// Pseudo-random values from a seed.
    Random {
        /// Seed of the generator.
        seed: u64,
        /// Half-open range of the values.
        range: Interval,
    },
    /// A `.npy` file.
    File(PathBuf),
    /// A tensor of a `.safetensors` file, by its name.
    Stored(PathBuf, String),
}

impl Init {
    /// The content of a tensor; zeros for files, which are loaded elsewhere.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn array(&self, dtype: DType, shape: &[usize]) -> Result<HostArray> {
        match self {
            Self::Ones if dtype.class() == DTypeClass::Bool => HostArray::full(dtype, shape, true),
            Self::Ones => HostArray::full(dtype, shape, Number::Integer(1)),
            Self::Arange => HostArray::arange(dtype, shape),
            Self::Random { seed, range } => HostArray::random_in(dtype, shape, *range, *seed),
            Self::Zeros | Self::File(_) | Self::Stored(..) => HostArray::new(dtype, shape),
        }
    }
}
