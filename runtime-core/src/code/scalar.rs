//! Rust types that can be passed as scalar arguments.

use half::{bf16, f16};

use crate::{DType, Element};

/// A Rust type that can be passed as a scalar argument. A complex number is none: it is two, one for each part.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no launch argument",
    label = "expected a tensor (`&x`), a number, a `&Record` or an `Arg`",
    note = "integers need the width that the kernel takes: write `n as u32` or `n as i64` for a `usize`"
)]
pub trait Scalar: Copy {
    /// Its element type.
    const DTYPE: DType;

    /// Its bytes as a little-endian word.
    fn bits(self) -> u64;
}

macro_rules! scalars {
    ($($ty:ty)*) => {$(
        impl Scalar for $ty {
            const DTYPE: DType = <$ty as Element>::DTYPE;

            fn bits(self) -> u64 {
                let mut word = [0; 8];
                word[..size_of::<Self>()].copy_from_slice(bytemuck::bytes_of(&self));
                u64::from_le_bytes(word)
            }
        }
    )*};
}

scalars! { i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 }

impl Scalar for bool {
    const DTYPE: DType = DType::BOOL;

    fn bits(self) -> u64 {
        u64::from(self)
    }
}
