//! WGSL scalars as bits and as text.

use half::f16;
use runtime_core::DType;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A `u32` of 0 or 1 in memory, because `bool` is not host-shareable.
    Bool,
    /// 8 bits, signed; only in memory, as the next three.
    I8,
    /// 8 bits, unsigned.
    U8,
    /// 16 bits, signed.
    I16,
    /// 16 bits, unsigned.
    U16,
    /// 32 bits, signed.
    I32,
    /// 32 bits, unsigned.
    U32,
    /// 64 bits, signed.
    I64,
    /// 64 bits, unsigned.
    U64,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

const NAMES: [(&str, Kind); 12] = [
    ("bool", Kind::Bool),
    ("i8", Kind::I8),
    ("u8", Kind::U8),
    ("i16", Kind::I16),
    ("u16", Kind::U16),
    ("i32", Kind::I32),
    ("u32", Kind::U32),
    ("i64", Kind::I64),
    ("u64", Kind::U64),
    ("f16", Kind::F16),
    ("f32", Kind::F32),
    ("f64", Kind::F64),
];

impl Kind {
    /// Parses the name of a type.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// The name in WGSL.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The size in memory.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::Bool | Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The element type of tensors.
    #[must_use]
    pub const fn dtype(self) -> DType {
        match self {
            Self::Bool | Self::U32 => DType::U32,
            Self::I8 => DType::I8,
            Self::U8 => DType::U8,
            Self::I16 => DType::I16,
            Self::U16 => DType::U16,
            Self::I32 => DType::I32,
            Self::I64 => DType::I64,
            Self::U64 => DType::U64,
            Self::F16 => DType::F16,
            Self::F32 => DType::F32,
            Self::F64 => DType::F64,
        }
    }

    /// The optional feature that it requires, if any.
    #[must_use]
    pub const fn need(self) -> Option<&'static str> {
        match self {
            Self::F16 => Some("f16"),
            Self::F64 => Some("f64"),
            Self::I64 | Self::U64 => Some("i64"),
            _ => None,
        }
    }

    /// Whether it is a floating point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    /// The bits of a float nearest to `real`.
    #[must_use]
    pub fn nearest(self, real: f64) -> u64 {
        match self {
            Self::F16 => u64::from(f16::from_f64(real).to_bits()),
            Self::F32 => u64::from((real as f32).to_bits()),
            _ => real.to_bits(),
        }
    }

    /// The value of a float from its bits.
    #[must_use]
    pub fn real(self, bits: u64) -> f64 {
        match self {
            Self::F16 => f64::from(f16::from_bits(bits as u16)),
            Self::F32 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        }
    }

    /// Parses a value: a decimal or hexadecimal number, `min`, `max`, `true`, `inf`, `nan`, `bits:0x…`.
    #[must_use]
    pub fn read(self, text: &str) -> Option<u64> {
        if let Some(bits) = text.strip_prefix("bits:0x") {
            return u64::from_str_radix(bits, 16).ok();
        }
        match self {
            Self::Bool => Some(u64::from(text.parse::<bool>().ok()?)),
            Self::I8 => Some(u64::from(integer(text, i8::MIN.into(), i8::MAX.into())? as u8)),
            Self::U8 => Some(integer(text, 0, u8::MAX.into())? as u64),
            Self::I16 => Some(u64::from(integer(text, i16::MIN.into(), i16::MAX.into())? as u16)),
            Self::U16 => Some(integer(text, 0, u16::MAX.into())? as u64),
            Self::I32 => Some(u64::from(integer(text, i32::MIN.into(), i32::MAX.into())? as u32)),
            Self::U32 => Some(integer(text, 0, u32::MAX.into())? as u64),
            Self::I64 => Some(integer(text, i64::MIN.into(), i64::MAX.into())? as u64),
            Self::U64 => Some(integer(text, 0, u64::MAX.into())? as u64),
            Self::F16 | Self::F32 | Self::F64 => Some(self.nearest(self.read_real(text)?)),
        }
    }

    /// Parses a float without rounding it to the type: the exact value that a tolerance refers to.
    #[must_use]
    pub fn read_real(self, text: &str) -> Option<f64> {
        let largest = match self {
            Self::F16 => f64::from(f16::MAX),
            Self::F32 => f64::from(f32::MAX),
            _ => f64::MAX,
        };
        match text {
            "max" => Some(largest),
            "min" => Some(-largest),
            _ if text.starts_with("bits:") => Some(self.real(self.read(text)?)),
            _ => match text.split_once("^") {
                Some((base, power)) => Some(base.parse::<f64>().ok()?.powi(power.parse().ok()?)),
                None => text.parse().ok(),
            },
        }
    }

    /// Formats a value.
    #[must_use]
    pub fn show(self, bits: u64) -> String {
        match self {
            Self::Bool if bits <= 1 => (bits == 1).to_string(),
            Self::I8 => (bits as u8 as i8).to_string(),
            Self::I16 => (bits as u16 as i16).to_string(),
            Self::I32 => (bits as u32 as i32).to_string(),
            Self::I64 => (bits as i64).to_string(),
            Self::F16 | Self::F32 => format!("{} (0x{bits:x})", self.real(bits) as f32),
            Self::F64 => format!("{} (0x{bits:x})", self.real(bits)),
            Self::Bool | Self::U8 | Self::U16 | Self::U32 | Self::U64 => bits.to_string(),
        }
    }

    /// Loads the value at the start of `bytes`.
    #[must_use]
    pub fn load(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        word[..self.bytes()].copy_from_slice(&bytes[..self.bytes()]);
        u64::from_le_bytes(word)
    }
}

fn integer(text: &str, min: i128, max: i128) -> Option<i128> {
    let value = match text {
        "min" => min,
        "max" => max,
        _ => match text.strip_prefix("0x") {
            Some(digits) => {
                let bits = i128::from_str_radix(digits, 16).ok()?;
                // The bit pattern of a negative number.
                if bits > max { bits - (max - min + 1) } else { bits }
            }
            None => text.parse().ok()?,
        },
    };
    (min..=max).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        assert_eq!(Kind::I32.read("-1"), Some(0xffff_ffff));
        assert_eq!(Kind::I32.read("0x80000000"), Kind::I32.read("min"));
        assert_eq!(Kind::I32.read("2147483648"), None);
        assert_eq!(Kind::U64.read("max"), Some(u64::MAX));
        assert_eq!(Kind::F32.read("1.5"), Some(0x3fc0_0000));
        assert_eq!(Kind::F32.read("2^-149"), Some(1));
        assert_eq!(Kind::F16.read("max"), Some(0x7bff));
        assert_eq!(Kind::Bool.read("true"), Some(1));
        assert_eq!(Kind::F32.read("bits:0x7fc00000"), Some(0x7fc0_0000));
    }

    #[test]
    fn bits_are_shown_as_values() {
        assert_eq!(Kind::I32.show(0xffff_fffe), "-2");
        assert_eq!(Kind::F32.show(0x3fc0_0000), "1.5 (0x3fc00000)");
        assert_eq!(Kind::F16.load(&[0, 0x3c, 9]), 0x3c00);
    }
}
