//! Element types, as DLPack defines them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, abi};

/// An element type: DLPack's `(code, bits, lanes)`.
///
/// ```
/// # use runtime_core::DType;
/// let dtype: DType = "bf16".parse()?; // as in a configuration file
/// assert_eq!(dtype, DType::BF16);
/// assert_eq!((dtype.bytes(), dtype.is_float(), dtype.dlpack()), (2, true, (4, 16, 1)));
/// assert!("float".parse::<DType>().unwrap_err().message().contains("f32")); // lists the names
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
#[repr(transparent)]
pub struct DType(pub(crate) abi::DType);

/// The class of an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DTypeClass {
    /// Signed integers.
    Int,
    /// Unsigned integers.
    UInt,
    /// IEEE floating point.
    Float,
    /// Brain floating point.
    BFloat,
    /// Complex numbers.
    Complex,
    /// Booleans of one byte.
    Bool,
    /// Any other type (fp8), copied as opaque bytes.
    Opaque,
}

const NAMED: [(&str, DType); 18] = [
    ("i8", DType::I8),
    ("i16", DType::I16),
    ("i32", DType::I32),
    ("i64", DType::I64),
    ("u8", DType::U8),
    ("u16", DType::U16),
    ("u32", DType::U32),
    ("u64", DType::U64),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("f32", DType::F32),
    ("f64", DType::F64),
    ("bool", DType::BOOL),
    ("complex64", DType::COMPLEX64),
    ("complex128", DType::COMPLEX128),
    ("fp8_e4m3", DType::FP8_E4M3),
    ("fp8_e4m3fn", DType::FP8_E4M3FN),
    ("fp8_e5m2", DType::FP8_E5M2),
];

#[expect(missing_docs, reason = "the names are self-explanatory")]
impl DType {
    pub const I8: Self = Self::scalar(0, 8);
    pub const I16: Self = Self::scalar(0, 16);
    pub const I32: Self = Self::scalar(0, 32);
    pub const I64: Self = Self::scalar(0, 64);
    pub const U8: Self = Self::scalar(1, 8);
    pub const U16: Self = Self::scalar(1, 16);
    pub const U32: Self = Self::scalar(1, 32);
    pub const U64: Self = Self::scalar(1, 64);
    pub const F16: Self = Self::scalar(2, 16);
    pub const F32: Self = Self::scalar(2, 32);
    pub const F64: Self = Self::scalar(2, 64);
    pub const BF16: Self = Self::scalar(4, 16);
    pub const COMPLEX64: Self = Self::scalar(5, 64);
    pub const COMPLEX128: Self = Self::scalar(5, 128);
    pub const BOOL: Self = Self::scalar(6, 8);
    pub const FP8_E4M3: Self = Self::scalar(8, 8);
    pub const FP8_E4M3FN: Self = Self::scalar(10, 8);
    pub const FP8_E5M2: Self = Self::scalar(12, 8);
}

impl DType {
    const fn scalar(code: u8, bits: u8) -> Self {
        Self(abi::DType { code, bits, lanes: 1 })
    }

    /// All named types, in a fixed order.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMED.iter().map(|(_, dtype)| *dtype)
    }

    /// The type with DLPack's `code`, `bits` and `lanes`.
    #[must_use]
    pub const fn from_dlpack(code: u8, bits: u8, lanes: u16) -> Self {
        Self(abi::DType { code, bits, lanes })
    }

    /// DLPack's `(code, bits, lanes)`.
    #[must_use]
    pub const fn dlpack(self) -> (u8, u8, u16) {
        (self.0.code, self.0.bits, self.0.lanes)
    }

    /// Size of an element in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        (self.0.bits as usize * self.0.lanes as usize).div_ceil(8)
    }

    /// Alignment of an element: its size, or the size of a part for complex numbers and of a lane for
    /// vectors.
    #[must_use]
    pub(crate) const fn alignment_bytes(self) -> usize {
        match self.class() {
            DTypeClass::Complex => self.bytes() / 2,
            _ => self.bytes() / self.0.lanes as usize,
        }
    }

    /// The class of the type.
    #[must_use]
    pub const fn class(self) -> DTypeClass {
        match self.0.code {
            0 => DTypeClass::Int,
            1 => DTypeClass::UInt,
            2 => DTypeClass::Float,
            4 => DTypeClass::BFloat,
            5 => DTypeClass::Complex,
            6 => DTypeClass::Bool,
            _ => DTypeClass::Opaque,
        }
    }

    /// The type of the real and the imaginary part of a complex type; two of them are the number in memory.
    #[must_use]
    pub const fn complex_part(self) -> Option<Self> {
        match self {
            Self::COMPLEX64 => Some(Self::F32),
            Self::COMPLEX128 => Some(Self::F64),
            _ => None,
        }
    }

    /// Whether the type is a real floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self.class(), DTypeClass::Float | DTypeClass::BFloat)
    }
}

/// An element type in JSON: its name, or what DLPack calls it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    Parts(u8, u8, u16),
}

impl From<DType> for Written {
    fn from(dtype: DType) -> Self {
        let (code, bits, lanes) = dtype.dlpack();
        let is_named = DType::all().any(|named| named == dtype);
        if is_named { Self::Name(dtype.to_string()) } else { Self::Parts(code, bits, lanes) }
    }
}

impl TryFrom<Written> for DType {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::Name(name) => name.parse(),
            Written::Parts(_, 0, _) | Written::Parts(_, _, 0) => {
                Err(Error::invalid("an element has bits and lanes"))
            }
            Written::Parts(code, bits, lanes) => Ok(Self::from_dlpack(code, bits, lanes)),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(_, dtype)| dtype == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "dtype({}, {}, {})", self.0.code, self.0.bits, self.0.lanes),
        }
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        NAMED.iter().find(|(name, _)| *name == text).map(|(_, dtype)| *dtype).ok_or_else(|| {
            let names: Vec<_> = NAMED.iter().map(|(name, _)| *name).collect();
            Error::invalid(format!("unknown dtype \"{text}\"; one of {}", names.join(", ")))
        })
    }
}

/// A Rust type that can be a tensor element.
///
/// ```
/// # use runtime_core::{Element, Result, Runtime, Tensor};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// fn sum<T: Element + std::iter::Sum>(tensor: &Tensor) -> Result<T> {
///     Ok(tensor.to_vec::<T>()?.into_iter().sum()) // an error if the tensor holds another type than `T::DTYPE`
/// }
/// let x = device.tensor([3], &[1i64, 2, 3])?;
/// assert_eq!(sum::<i64>(&x)?, 6);
/// assert!(sum::<f32>(&x).is_err());
/// # Ok::<(), runtime_core::Error>(())
/// ```
pub trait Element: bytemuck::Pod + Send + Sync {
    /// The corresponding [`DType`].
    const DTYPE: DType;
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),* $(,)?) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    half::f16 => F16, half::bf16 => BF16, f32 => F32, f64 => F64,
    num_complex::Complex<f32> => COMPLEX64, num_complex::Complex<f64> => COMPLEX128,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for dtype in DType::all() {
            assert_eq!(dtype.to_string().parse::<DType>().unwrap(), dtype);
        }
        assert!("f33".parse::<DType>().unwrap_err().message().contains("bf16"));
    }

    #[test]
    fn sizes_follow_from_bits_and_lanes() {
        assert_eq!(DType::COMPLEX128.bytes(), 16);
        assert_eq!(DType::BOOL.bytes(), 1);
        assert_eq!(DType::from_dlpack(2, 32, 4).bytes(), 16);
    }
}
