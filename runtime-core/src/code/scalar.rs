//! Rust types that can be passed as scalar arguments.

use crate::{DType, Element};

/// A Rust type that can be passed as a scalar argument.
pub trait Scalar: Copy {
    /// Its element type.
    const DTYPE: DType;

    /// Its bytes as a little-endian word.
    fn bits(self) -> u64;
}

impl<T: Element> Scalar for T {
    const DTYPE: DType = T::DTYPE;

    fn bits(self) -> u64 {
        let mut word = [0; 8];
        word[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&self));
        u64::from_le_bytes(word)
    }
}

impl Scalar for bool {
    const DTYPE: DType = DType::BOOL;

    fn bits(self) -> u64 {
        u64::from(self)
    }
}
