//! Numbers whose element type is chosen at run time.

use std::cmp::Ordering;
use std::fmt;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DType, DTypeClass, Error, Result};

/// A number that becomes an element of a type that is chosen at run time.
///
/// ```
/// use runtime_core::{Arg, DType, Number};
///
/// for dtype in [DType::F32, DType::F16, DType::F64] {
///     let half = Arg::number(dtype, 0.5)?;
///     assert_eq!(half.dtype(), Some(dtype));
/// }
/// assert_eq!(Number::from(3).bits(DType::U8)?, 3);
/// assert!(Number::from(300).bits(DType::U8).is_err(), "it does not fit");
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub enum Number {
    /// For integer and floating-point types.
    Integer(i128),
    /// For floating-point types.
    Float(f64),
    /// For `bool`.
    Bool(bool),
}

impl Number {
    /// The bytes of the number as an element, as a little-endian word: floating-point types get the nearest value.
    ///
    /// # Errors
    /// `InvalidArgument` if the type cannot hold it: an integer that is out of range, a finite number that would be infinite, a fraction
    /// for an integer type, a number for `bool` or `bool` for a number; complex and opaque types.
    pub fn bits(self, dtype: DType) -> Result<u64> {
        if let Some((least, most)) = integer_bounds(dtype) {
            return match self {
                Self::Integer(value) if (least..=most).contains(&value) => Ok(low_64_bits(value)),
                Self::Integer(value) => {
                    Err(Error::invalid(format!("{value} does not fit {dtype} ({least} to {most})")))
                }
                _ => Err(Error::invalid(format!("{dtype} requires an integer"))),
            };
        }
        match (dtype.class(), self) {
            (DTypeClass::Bool, Self::Bool(value)) => Ok(u64::from(value)),
            (DTypeClass::Bool, _) => Err(Error::invalid("bool requires true or false")),
            (DTypeClass::Float | DTypeClass::BFloat, _) => {
                let requires = || Error::invalid(format!("{dtype} requires a number"));
                let value = self.to_round(dtype).ok_or_else(requires)?;
                let bits = encode_float(dtype, value);
                match value.is_finite() && !decode_float(dtype, bits).is_finite() {
                    true => Err(Error::invalid(format!("{self} does not fit {dtype}"))),
                    false => Ok(bits),
                }
            }
            _ => Err(Error::invalid(format!("{dtype} cannot be written as a number; pass it as `bytes`"))),
        }
    }

    /// The nearest floating-point value; `None` for a boolean.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest value is intended")]
    pub const fn as_f64(self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Bool(_) => None,
        }
    }

    /// The number as a double whose rounding to `dtype` is that of the number. An integer of more than 53 bits is rounded to odd, since
    /// a number that is rounded to the nearest twice may end beside it (Boldo and Melquiond, 2008).
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rounded integer, without its sign"
    )]
    pub(crate) fn to_round(self, dtype: DType) -> Option<f64> {
        let nearest = self.as_f64()?;
        let Self::Integer(value) = self else { return Some(nearest) };
        if dtype == DType::F64 || nearest.to_bits() & 1 == 1 {
            return Some(nearest);
        }
        let size = nearest.abs();
        let odd = match value.unsigned_abs().cmp(&(size as u128)) {
            Ordering::Less => size.next_down(),
            Ordering::Equal => size,
            Ordering::Greater => size.next_up(),
        };
        Some(odd.copysign(nearest))
    }

    /// The number that an element is, given as the word that [`bits`](Self::bits) returns; `None` for complex and opaque types.
    #[must_use]
    pub fn of_bits(dtype: DType, bits: u64) -> Option<Self> {
        let unused = u64::BITS - 8 * u32::try_from(dtype.bytes()).ok().filter(|bytes| *bytes <= 8)?;
        match dtype.class() {
            DTypeClass::Int => Some(Self::Integer((bits.cast_signed() << unused >> unused).into())),
            DTypeClass::UInt => Some(Self::Integer((bits << unused >> unused).into())),
            DTypeClass::Bool => Some(Self::Bool(bits & 0xff != 0)),
            DTypeClass::Float | DTypeClass::BFloat => Some(Self::Float(decode_float(dtype, bits))),
            _ => None,
        }
    }
}

macro_rules! numbers {
    ($($variant:ident of $($ty:ty)*;)*) => {$($(
        impl From<$ty> for Number {
            fn from(value: $ty) -> Self {
                Self::$variant(value.into())
            }
        }
    )*)*};
}

numbers! {
    Integer of i8 i16 i32 i64 i128 u8 u16 u32 u64;
    Float of f32 f64 f16 bf16;
    Bool of bool;
}

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(formatter),
            Self::Float(value) => value.fmt(formatter),
            Self::Bool(value) => value.fmt(formatter),
        }
    }
}

impl From<Number> for Value {
    /// What JSON has no numbers for becomes text: large integers, infinities, NaN.
    fn from(number: Number) -> Self {
        match number {
            Number::Bool(value) => value.into(),
            Number::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                _ => value.to_string().into(),
            },
            Number::Float(value) => {
                serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Self::Number)
            }
        }
    }
}

impl TryFrom<Value> for Number {
    type Error = String;

    fn try_from(value: Value) -> std::result::Result<Self, String> {
        let number = match &value {
            Value::Bool(flag) => Some(Self::Bool(*flag)),
            Value::Number(number) if number.is_f64() => number.as_f64().map(Self::Float),
            Value::Number(number) => number.as_i128().map(Self::Integer),
            Value::String(text) => {
                text.parse().map(Self::Integer).or_else(|_| text.parse().map(Self::Float)).ok()
            }
            _ => None,
        };
        number.ok_or_else(|| format!("expected a number, true or false, got {value}"))
    }
}

/// The minimum and maximum of an integer type.
pub(crate) const fn integer_bounds(dtype: DType) -> Option<(i128, i128)> {
    let bits = dtype.bytes() * 8;
    match dtype.class() {
        DTypeClass::Int => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        DTypeClass::UInt => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

/// The low 64 bits in two's complement.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "two's complement is intended")]
pub(crate) const fn low_64_bits(value: i128) -> u64 {
    value as u64
}

/// Encodes the nearest value of a floating-point type.
#[expect(clippy::cast_possible_truncation, reason = "rounding to the type is the purpose")]
pub(crate) fn encode_float(dtype: DType, value: f64) -> u64 {
    match dtype {
        DType::F16 => u64::from(f16::from_f64(with_sticky_bit(value)).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(with_sticky_bit(value)).to_bits()),
        DType::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// A number of 21 bits that the types of 16 bits round as `value`: `half` (2.7) ignores the low 32 bits, or rounds to `f32` first, and so
/// takes a number beside a midpoint for the midpoint.
fn with_sticky_bit(value: f64) -> f64 {
    let bits = value.to_bits();
    let high = bits >> 32 << 32;
    f64::from_bits(if bits == high { bits } else { high | 1 << 32 })
}

/// Decodes a floating-point type.
#[expect(clippy::cast_possible_truncation, reason = "the bits of a type are the low ones")]
pub(crate) fn decode_float(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_and_decoded() {
        let encoded = |number: Number, dtype, bits: u64| {
            assert_eq!(number.bits(dtype).unwrap() & (u64::MAX >> (64 - 8 * dtype.bytes())), bits, "{dtype}");
            assert_eq!(
                Number::of_bits(dtype, bits).unwrap().bits(dtype).unwrap(),
                number.bits(dtype).unwrap()
            );
        };
        encoded((-1).into(), DType::I8, 0xff);
        encoded(u64::MAX.into(), DType::U64, u64::MAX);
        encoded(i64::MIN.into(), DType::I64, 1 << 63);
        encoded(2.into(), DType::F32, 2.0_f32.to_bits().into());
        encoded(1.5.into(), DType::F16, f16::from_f32(1.5).to_bits().into());
        encoded(1.5.into(), DType::BF16, bf16::from_f32(1.5).to_bits().into());
        for beside in [2f64.powi(-40), -2f64.powi(-40), 2f64.powi(-52), 0.0] {
            let up = u64::from(beside > 0.0);
            let bits =
                |dtype, digits: i32| Number::from(1.0 + 2f64.powi(-digits) + beside).bits(dtype).unwrap();
            assert_eq!(bits(DType::F16, 11), 0x3c00 + up, "{beside}");
            assert_eq!(bits(DType::BF16, 8), 0x3f80 + up, "{beside}");
        }
        encoded(i128::MIN.into(), DType::F32, (-2f32.powi(127)).to_bits().into());
        encoded(i128::MAX.into(), DType::F32, 2f32.powi(127).to_bits().into());
        encoded(f64::INFINITY.into(), DType::F64, f64::INFINITY.to_bits());
        encoded(true.into(), DType::BOOL, 1);
    }

    #[test]
    fn numbers_that_do_not_fit_are_rejected_with_the_reason() {
        let message = |number: Number, dtype| number.bits(dtype).unwrap_err().message().to_owned();
        assert_eq!(message(128.into(), DType::I8), "128 does not fit i8 (-128 to 127)");
        assert_eq!(message((-1).into(), DType::U64), format!("-1 does not fit u64 (0 to {})", u64::MAX));
        assert_eq!(message(1.0.into(), DType::I32), "i32 requires an integer");
        assert_eq!(message(1e6.into(), DType::F16), "1000000 does not fit f16");
        assert_eq!(message(1.into(), DType::BOOL), "bool requires true or false");
        assert_eq!(message(true.into(), DType::F32), "f32 requires a number");
        assert!(message(1.0.into(), DType::COMPLEX64).contains("`bytes`"));
    }

    #[test]
    fn numbers_survive_json() {
        for number in
            [Number::Integer(i128::MAX), Number::Integer(-3), Number::Float(0.5), Number::Bool(true)]
        {
            let text = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number, "{text}");
        }
        assert_eq!(serde_json::from_str::<Number>("\"inf\"").unwrap(), Number::Float(f64::INFINITY));
        assert!(serde_json::from_str::<Number>("[]").is_err());
    }
}
