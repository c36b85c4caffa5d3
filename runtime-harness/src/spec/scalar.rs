//! Numbers of a spec, and their encoding in an element type.

use std::fmt;

use half::{bf16, f16};
use runtime_core::{DType, DTypeClass, OptionValue};
use serde::{Deserialize, Serialize};

/// A number of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "serde_json::Value", try_from = "serde_json::Value")]
pub enum Number {
    /// Written without a decimal point or an exponent.
    Integer(i128),
    /// Written with a decimal point or an exponent.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
}

impl Number {
    /// The nearest floating-point value; `None` for a boolean.
    #[expect(clippy::cast_precision_loss, reason = "the nearest value is intended")]
    pub(crate) const fn as_f64(self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Bool(_) => None,
        }
    }

    /// The value in expressions, where `true` is 1.
    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Bool(value) => f64::from(u8::from(value)),
            number => number.as_f64().unwrap_or(f64::NAN),
        }
    }

    /// The number as a specialisation constant; `None` for an integer that is too large.
    pub(crate) fn constant(self) -> Option<OptionValue> {
        match self {
            Self::Integer(value) => i64::try_from(value).ok().map(OptionValue::Integer),
            Self::Float(value) => Some(OptionValue::Number(value)),
            Self::Bool(value) => Some(OptionValue::Flag(value)),
        }
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

/// The minimum and maximum of an integer type.
pub(crate) const fn integer_bounds(dtype: DType) -> Option<(i128, i128)> {
    let bits = dtype.bytes() * 8;
    match dtype.class() {
        DTypeClass::Int => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        DTypeClass::UInt => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

/// Encodes `number` as a `dtype` in the low bits of a word.
pub(crate) fn encode(dtype: DType, number: Number) -> Result<u64, String> {
    if let Some((least, most)) = integer_bounds(dtype) {
        return match number {
            Number::Integer(value) if (least..=most).contains(&value) => Ok(low_64_bits(value)),
            Number::Integer(value) => Err(format!("{value} does not fit {dtype} ({least} to {most})")),
            _ => Err(format!("{dtype} requires an integer")),
        };
    }
    match (dtype.class(), number) {
        (DTypeClass::Bool, Number::Bool(value)) => Ok(u64::from(value)),
        (DTypeClass::Bool, _) => Err("bool requires true or false".to_owned()),
        (DTypeClass::Float | DTypeClass::BFloat, _) => {
            let value = number.as_f64().ok_or_else(|| format!("{dtype} requires a number"))?;
            let bits = encode_float(dtype, value);
            match value.is_finite() && !decode_float(dtype, bits).is_finite() {
                true => Err(format!("{value} does not fit {dtype}")),
                false => Ok(bits),
            }
        }
        _ => Err(format!("{dtype} cannot be written as a number; pass it as `bytes`")),
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
        DType::F16 => u64::from(f16::from_f64(value).to_bits()),
        DType::BF16 => u64::from(bf16::from_f64(value).to_bits()),
        DType::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
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
    fn numbers_are_encoded() {
        assert_eq!(encode(DType::I8, Number::Integer(-1)).unwrap() & 0xff, 0xff);
        assert_eq!(encode(DType::U64, Number::Integer(i128::from(u64::MAX))).unwrap(), u64::MAX);
        assert_eq!(encode(DType::F32, Number::Integer(2)).unwrap(), u64::from(2.0_f32.to_bits()));
        assert_eq!(encode(DType::F16, Number::Float(1.5)).unwrap(), u64::from(f16::from_f32(1.5).to_bits()));
        assert_eq!(encode(DType::BOOL, Number::Bool(true)).unwrap(), 1);
        assert!(encode(DType::F64, Number::Float(f64::INFINITY)).is_ok());
    }

    #[test]
    fn invalid_numbers_are_rejected_with_the_reason() {
        assert_eq!(encode(DType::I8, Number::Integer(128)).unwrap_err(), "128 does not fit i8 (-128 to 127)");
        assert_eq!(encode(DType::I32, Number::Float(1.0)).unwrap_err(), "i32 requires an integer");
        assert_eq!(encode(DType::F16, Number::Float(1e6)).unwrap_err(), "1000000 does not fit f16");
        assert_eq!(encode(DType::BOOL, Number::Integer(1)).unwrap_err(), "bool requires true or false");
        assert!(encode(DType::COMPLEX64, Number::Float(1.0)).unwrap_err().contains("`bytes`"));
    }
}
