//! Initial data of tensors: the same bytes on every machine.

use std::path::PathBuf;

use runtime_core::{DType, DTypeClass};

use super::scalar::{decode_float, encode_float, integer_bounds, low_64_bits};
use crate::random::next;

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

/// Half-open range of random values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// For a floating-point type, or both components of a complex type.
    Float(f64, f64),
    /// For an integer type or bool.
    Integer(i128, i128),
}

impl Interval {
    /// The default for a type: `[0, 1)`, `[-8, 8)`, `[0, 16)`, or both values of a bool.
    pub(crate) const fn of(dtype: DType) -> Self {
        match dtype.class() {
            DTypeClass::Int => Self::Integer(-8, 8),
            DTypeClass::UInt => Self::Integer(0, 16),
            DTypeClass::Bool => Self::Integer(0, 2),
            _ => Self::Float(0.0, 1.0),
        }
    }
}

impl Init {
    /// Fills `bytes` with elements of `dtype`. Files are loaded elsewhere.
    pub(crate) fn fill(&self, dtype: DType, bytes: &mut [u8]) {
        let (component, components) = component_of(dtype);
        match self {
            Self::Zeros => bytes.fill(0),
            Self::Ones => each(component, bytes, |at| constant(component, u64::from(at % components == 0))),
            Self::Arange => each(component, bytes, |at| match at % components {
                0 => constant(component, (at / components) as u64),
                _ => 0,
            }),
            Self::Random { seed, range } => {
                let mut state = *seed;
                each(component, bytes, |_| random(component, *range, next(&mut state)));
            }
            Self::File(_) | Self::Stored(..) => {}
        }
    }
}

fn each(dtype: DType, bytes: &mut [u8], mut element: impl FnMut(usize) -> u64) {
    let width = dtype.bytes();
    for (at, chunk) in bytes.chunks_exact_mut(width).enumerate() {
        chunk.copy_from_slice(&element(at).to_le_bytes()[..width]);
    }
}

#[expect(clippy::cast_precision_loss, reason = "rounding to the nearest value is documented")]
fn constant(dtype: DType, value: u64) -> u64 {
    match dtype.class() {
        DTypeClass::Float | DTypeClass::BFloat => encode_float(dtype, value as f64),
        DTypeClass::Bool => value & 1,
        _ => value,
    }
}

fn random(dtype: DType, range: Interval, word: u64) -> u64 {
    match range {
        Interval::Integer(low, high) => low_64_bits(low + scale(word, high - low)),
        Interval::Float(low, high) => {
            let bits = encode_float(dtype, low + (high - low) * unit_fraction(dtype, word));
            // Rounding to the type may reach the upper bound, which is excluded.
            if decode_float(dtype, bits) >= high { encode_float(dtype, low) } else { bits }
        }
    }
}

/// `word / 2^64 × span`, rounded down.
#[expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "0 < span ≤ 2^64, the result is below it"
)]
const fn scale(word: u64, span: i128) -> i128 {
    let (high, low) = ((span as u128) >> 64, (span as u128) & u64::MAX as u128);
    (((word as u128 * low) >> 64) + word as u128 * high) as i128
}

/// A number in `[0, 1)` that the type represents exactly, so that rounding never reaches 1.
#[expect(clippy::cast_precision_loss, reason = "at most 53 bits are left")]
fn unit_fraction(dtype: DType, word: u64) -> f64 {
    let digits = match dtype {
        DType::BF16 => 8,
        DType::F16 => 11,
        DType::F32 => 24,
        _ => 53,
    };
    (word >> (64 - digits)) as f64 / (1_u64 << digits) as f64
}

/// Checks that `dtype` can hold the values of `range`.
pub(crate) fn check_range(dtype: DType, range: Interval) -> Result<(), String> {
    match (range, integer_bounds(dtype)) {
        (Interval::Integer(low, high), _) if low >= high => Err(format!("[{low}, {high}) is empty")),
        (Interval::Float(low, high), _) if !low.is_finite() || !high.is_finite() => {
            Err("expected finite numbers of at most 1.8e308".to_owned())
        }
        (Interval::Float(low, high), _) if low >= high => Err(format!("[{low}, {high}) is empty")),
        (Interval::Float(low, high), _) => check_float_range(dtype, low, high),
        (Interval::Integer(low, high), Some((least, most))) if low < least || high > most + 1 => {
            Err(format!("[{low}, {high}) does not fit {dtype} ({least} to {most})"))
        }
        _ => Ok(()),
    }
}

/// Checks that both bounds are finite and distinct in the type.
fn check_float_range(dtype: DType, low: f64, high: f64) -> Result<(), String> {
    let component = component_of(dtype).0;
    let rounded = |value: f64| decode_float(component, encode_float(component, value));
    match [low, high].into_iter().find(|end| !rounded(*end).is_finite()) {
        Some(end) => {
            Err(format!("{end:e} does not fit {dtype}, whose largest number is {:e}", largest(component)))
        }
        None if !(high - low).is_finite() => Err(format!("[{low:e}, {high:e}) is wider than 1.8e308")),
        None if rounded(low) >= rounded(high) => {
            Err(format!("{low:?} and {high:?} are the same number in {dtype}; widen the range"))
        }
        None => Ok(()),
    }
}

/// The largest finite number of a floating-point type.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => half::f16::MAX.to_f64(),
        DType::BF16 => half::bf16::MAX.to_f64(),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// The type and the number of an element's components.
fn component_of(dtype: DType) -> (DType, usize) {
    dtype.complex_part().map_or((dtype, 1), |component| (component, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled<const N: usize>(init: &Init, dtype: DType, count: usize) -> Vec<[u8; N]> {
        let mut bytes = vec![0xee; count * N];
        init.fill(dtype, &mut bytes);
        bytes.as_chunks().0.to_vec()
    }

    fn random_of(dtype: DType, seed: u64) -> Init {
        Init::Random { seed, range: Interval::of(dtype) }
    }

    #[test]
    fn constants_are_encoded_in_the_type() {
        assert_eq!(filled(&Init::Ones, DType::F32, 1), [1.0_f32.to_le_bytes()]);
        assert_eq!(filled(&Init::Arange, DType::I16, 3)[2], 2_i16.to_le_bytes());
        assert_eq!(filled(&Init::Arange, DType::U8, 300)[299], [43], "299 mod 256");
        let complex: Vec<[u8; 4]> = filled(&Init::Arange, DType::COMPLEX64, 8);
        assert_eq!(complex[6..8], [3.0_f32.to_le_bytes(), 0.0_f32.to_le_bytes()]);
        assert_eq!(filled(&Init::Zeros, DType::I8, 1), [[0]]);
    }

    #[test]
    fn random_values_never_change() {
        let first: Vec<[u8; 4]> = filled(&random_of(DType::F32, 7), DType::F32, 100);
        assert_eq!(first, filled(&random_of(DType::F32, 7), DType::F32, 100));
        assert_ne!(first, filled(&random_of(DType::F32, 8), DType::F32, 100));
    }

    #[test]
    fn random_stays_in_its_range() {
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            for word in [0, 1, u64::MAX] {
                let value = decode_float(dtype, random(dtype, Interval::of(dtype), word));
                assert!((0.0..1.0).contains(&value), "{dtype}: {value}");
            }
        }
        let high = decode_float(DType::F32, random(DType::F32, Interval::Float(1000.0, 1001.0), u64::MAX));
        assert!(high < 1001.0, "{high}");
        assert_eq!(random(DType::I8, Interval::Integer(-8, 8), 0) & 0xff, 0xf8);
        assert_eq!(random(DType::I8, Interval::Integer(-8, 8), u64::MAX), 7);
        assert_eq!(random(DType::U64, Interval::Integer(0, 1 << 64), u64::MAX), u64::MAX);
    }

    #[test]
    fn ranges_are_checked() {
        assert!(check_range(DType::I8, Interval::Integer(-128, 128)).is_ok());
        assert!(check_range(DType::I8, Interval::Integer(0, 129)).unwrap_err().contains("does not fit"));
        assert!(check_range(DType::F32, Interval::Float(1.0, 1.0)).unwrap_err().contains("empty"));
    }

    #[test]
    fn a_range_that_the_type_cannot_hold_is_rejected() {
        let message = |dtype, low, high| check_range(dtype, Interval::Float(low, high)).unwrap_err();
        let types = [
            (DType::F16, 65504.0),
            (DType::BF16, 3.3e38),
            (DType::F32, f64::from(f32::MAX)),
            (DType::COMPLEX64, f64::from(f32::MAX)),
        ];
        for (dtype, most) in types {
            assert_eq!(check_range(dtype, Interval::Float(0.0, most)), Ok(()), "{dtype}");
            assert!(message(dtype, 0.0, most * 2.0).contains("does not fit"), "{dtype}");
            assert!(message(dtype, -most * 2.0, 0.0).contains("does not fit"), "{dtype}");
            // All values would be equal, which hides most errors in a kernel.
            assert!(message(dtype, 0.0, 1e-60).contains("the same number"), "{dtype}");
            assert!(message(dtype, 1.0, 1.000_000_01).contains("the same number"), "{dtype}");
        }
        assert!(message(DType::F64, -1.7e308, 1.7e308).contains("wider than 1.8e308"));
        assert_eq!(check_range(DType::F64, Interval::Float(0.0, f64::MAX)), Ok(()));
        assert!(message(DType::F64, 0.0, f64::INFINITY).contains("finite numbers of at most 1.8e308"));
    }
}
