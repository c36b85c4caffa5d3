//! Arrays whose elements follow from a rule, in a type that is chosen at run time: the same bytes on every machine.

use super::host_array::HostArray;
use super::number::{Number, decode_float, encode_float, integer_bounds, low_64_bits};
use crate::{DType, DTypeClass, Error, Result};

/// Half-open range of random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// For a floating-point type, or both parts of a complex type.
    Float(f64, f64),
    /// For an integer type or `bool`.
    Integer(i128, i128),
}

impl Interval {
    /// The default of a type: `[0, 1)` for floating-point and complex types, `[-8, 8)` for signed and `[0, 16)` for unsigned integers,
    /// both values of a `bool`.
    #[must_use]
    pub const fn of(dtype: DType) -> Self {
        match dtype.class() {
            DTypeClass::Int => Self::Integer(-8, 8),
            DTypeClass::UInt => Self::Integer(0, 16),
            DTypeClass::Bool => Self::Integer(0, 2),
            _ => Self::Float(0.0, 1.0),
        }
    }

    /// Checks that numbers of a type can lie in it.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty interval, one that the type cannot hold or that is so narrow that all its numbers are equal, and one
    /// of the other kind of numbers; for an opaque type.
    pub fn check(self, dtype: DType) -> Result<()> {
        let invalid = |message: String| Err(Error::invalid(message));
        let is_bool = dtype.class() == DTypeClass::Bool;
        let bounds = if is_bool { Some((0, 1)) } else { integer_bounds(dtype) };
        match (self, bounds) {
            _ if dtype.class() == DTypeClass::Opaque => invalid(format!("{dtype} has no random numbers")),
            (Self::Integer(low, high), _) if low >= high => invalid(format!("[{low}, {high}) is empty")),
            (Self::Float(low, high), _) if !low.is_finite() || !high.is_finite() => {
                invalid("expected finite numbers of at most 1.8e308".to_owned())
            }
            (Self::Float(low, high), _) if low >= high => invalid(format!("[{low}, {high}) is empty")),
            (Self::Integer(low, high), Some((least, most))) if low < least || high > most + 1 => {
                invalid(match is_bool {
                    true => "bool has the numbers 0 and 1".to_owned(),
                    false => format!("[{low}, {high}) does not fit {dtype} ({least} to {most})"),
                })
            }
            (Self::Integer(..), Some(_)) => Ok(()),
            (Self::Float(low, high), None) => check_float_range(dtype, low, high),
            (Self::Integer(..), None) => invalid(format!("{dtype} requires floating-point numbers")),
            (Self::Float(..), Some(_)) => invalid(format!("{dtype} requires integers")),
        }
    }
}

impl HostArray {
    /// Creates an array whose elements are all the same number; complex ones have an imaginary part of 0.
    ///
    /// # Errors
    /// As [`HostArray::new`] and [`Number::bits`].
    pub fn full(dtype: DType, shape: &[usize], value: impl Into<Number>) -> Result<Self> {
        let (part, parts) = part_of(dtype);
        let bits = value.into().bits(part)?;
        Self::generate(dtype, shape, |at| if at % parts == 0 { bits } else { 0 })
    }

    /// Creates an array of the row-major indices 0, 1, 2, …, which wrap around in integer types that are too small; `false`, `true`,
    /// `false`, … for `bool`.
    ///
    /// # Errors
    /// As [`HostArray::new`]; `InvalidArgument` for an opaque type.
    pub fn arange(dtype: DType, shape: &[usize]) -> Result<Self> {
        if dtype.class() == DTypeClass::Opaque {
            return Err(Error::invalid(format!("{dtype} has no indices")).in_operation("arange"));
        }
        let (part, parts) = part_of(dtype);
        Self::generate(dtype, shape, |at| match at % parts {
            0 => index_bits(part, (at / parts) as u64),
            _ => 0,
        })
    }

    /// Creates an array of pseudo-random numbers in the [default interval](Interval::of) of the type: `SplitMix64` from `seed`, one word
    /// per element in row-major order (Steele, Lea and Flood, 2014).
    ///
    /// # Errors
    /// As [`random_in`](Self::random_in).
    pub fn random(dtype: DType, shape: &[usize], seed: u64) -> Result<Self> {
        Self::random_in(dtype, shape, Interval::of(dtype), seed)
    }

    /// The same in another interval.
    ///
    /// # Errors
    /// As [`HostArray::new`] and [`Interval::check`].
    pub fn random_in(dtype: DType, shape: &[usize], interval: Interval, seed: u64) -> Result<Self> {
        interval.check(dtype).map_err(|error| error.in_operation("random"))?;
        let (part, mut state) = (part_of(dtype).0, seed);
        Self::generate(dtype, shape, |_| random_bits(part, interval, random_word(&mut state)))
    }

    /// Calls `part` for each part of each element, with its position.
    fn generate(dtype: DType, shape: &[usize], mut part: impl FnMut(usize) -> u64) -> Result<Self> {
        let mut array = Self::new(dtype, shape)?;
        let width = part_of(dtype).0.bytes();
        for (at, bytes) in array.bytes_mut().chunks_exact_mut(width).enumerate() {
            bytes.copy_from_slice(&part(at).to_le_bytes()[..width]);
        }
        Ok(array)
    }

    /// The same elements in another type. Floating-point numbers are rounded to the nearest, and lose their fraction for an integer type;
    /// what is out of range becomes the nearest integer, NaN becomes 0. Zero is `false`, everything else `true`.
    ///
    /// ```
    /// use runtime_core::{DType, HostArray};
    ///
    /// let array = HostArray::from_slice(&[3], &[1.5f32, -2.5, 1e9])?;
    /// assert_eq!(array.cast(DType::I16)?.as_slice::<i16>()?, [1, -2, i16::MAX]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`HostArray::new`]; `InvalidArgument` for complex and opaque types, except to the type that it has.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        let is_number = |dtype: DType| Number::of_bits(dtype, 0).is_some();
        if let Some(other) = [self.dtype(), dtype].into_iter().find(|dtype| !is_number(*dtype)) {
            let message = format!("{} does not become {dtype}: {other} is no type of numbers", self.dtype());
            return Err(Error::invalid(message).in_operation("cast"));
        }
        let from = self.dtype().bytes();
        Self::generate(dtype, self.shape(), |at| {
            let mut word = [0; 8];
            word[..from].copy_from_slice(&self.bytes()[at * from..][..from]);
            Number::of_bits(self.dtype(), u64::from_le_bytes(word)).map_or(0, |number| nearest(number, dtype))
        })
    }
}

/// The bits of the nearest number of a type.
#[expect(clippy::cast_possible_truncation, reason = "conversion to the nearest integer is intended")]
fn nearest(number: Number, dtype: DType) -> u64 {
    match (dtype.class(), integer_bounds(dtype), number) {
        (DTypeClass::Bool, _, Number::Integer(value)) => u64::from(value != 0),
        (DTypeClass::Bool, _, Number::Float(value)) => u64::from(value != 0.0),
        (_, _, Number::Bool(value)) if dtype.class() == DTypeClass::Bool => u64::from(value),
        (_, _, Number::Bool(value)) => nearest(Number::Integer(value.into()), dtype),
        (_, Some((least, most)), Number::Integer(value)) => low_64_bits(value.clamp(least, most)),
        (_, Some((least, most)), Number::Float(value)) => low_64_bits((value as i128).clamp(least, most)),
        (_, None, number) => encode_float(dtype, number.to_round(dtype).unwrap_or(f64::NAN)),
    }
}

/// `SplitMix64` (Steele, Lea and Flood, 2014).
pub const fn random_word(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[expect(clippy::cast_precision_loss, reason = "rounding to the nearest value is documented")]
fn index_bits(dtype: DType, index: u64) -> u64 {
    match dtype.class() {
        DTypeClass::Float | DTypeClass::BFloat => encode_float(dtype, index as f64),
        DTypeClass::Bool => index & 1,
        _ => index,
    }
}

fn random_bits(dtype: DType, interval: Interval, word: u64) -> u64 {
    match interval {
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

/// Checks that both bounds are finite and distinct in the type.
fn check_float_range(dtype: DType, low: f64, high: f64) -> Result<()> {
    let part = part_of(dtype).0;
    let rounded = |value: f64| decode_float(part, encode_float(part, value));
    let message = match [low, high].into_iter().find(|end| !rounded(*end).is_finite()) {
        Some(end) => format!("{end:e} does not fit {dtype}, whose largest number is {:e}", largest(part)),
        None if !(high - low).is_finite() => format!("[{low:e}, {high:e}) is wider than 1.8e308"),
        None if rounded(low) >= rounded(high) => {
            format!("{low:?} and {high:?} are the same number in {dtype}; widen the range")
        }
        None => return Ok(()),
    };
    Err(Error::invalid(message))
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

/// The type and the number of an element's parts.
fn part_of(dtype: DType) -> (DType, usize) {
    dtype.complex_part().map_or((dtype, 1), |part| (part, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements<T: crate::Element>(array: &HostArray) -> Vec<T> {
        array.as_slice().unwrap().to_vec()
    }

    #[test]
    fn constants_are_encoded_in_the_type() {
        assert_eq!(elements::<f32>(&HostArray::full(DType::F32, &[2], 1).unwrap()), [1.0; 2]);
        assert_eq!(elements::<i16>(&HostArray::arange(DType::I16, &[3]).unwrap()), [0, 1, 2]);
        assert_eq!(elements::<u8>(&HostArray::arange(DType::U8, &[300]).unwrap())[299], 43, "299 mod 256");
        assert_eq!(HostArray::arange(DType::BOOL, &[3]).unwrap().bytes(), [0, 1, 0]);
        assert_eq!(HostArray::full(DType::BOOL, &[2], true).unwrap().bytes(), [1, 1]);
        let complex = HostArray::arange(DType::COMPLEX64, &[4]).unwrap();
        assert_eq!(elements::<num_complex::Complex<f32>>(&complex)[3], num_complex::Complex::new(3.0, 0.0));
        let complex = HostArray::full(DType::COMPLEX128, &[], 0.5).unwrap();
        assert_eq!(elements::<num_complex::Complex<f64>>(&complex), [num_complex::Complex::new(0.5, 0.0)]);
        assert_eq!(HostArray::full(DType::F32, &[2, 0], 1).unwrap().len(), 0);
        for wrong in [HostArray::full(DType::I8, &[1], 0.5), HostArray::arange(DType::FP8_E5M2, &[1])] {
            assert_eq!(wrong.unwrap_err().kind(), crate::ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn random_numbers_never_change() {
        let random = |seed| HostArray::random(DType::F32, &[10, 10], seed).unwrap();
        assert_eq!(random(7).bytes(), random(7).bytes());
        assert_ne!(random(7).bytes(), random(8).bytes());
        let mut state = 1_234_567;
        assert_eq!(
            [random_word(&mut state), random_word(&mut state)],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn random_numbers_stay_in_their_interval() {
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            for word in [0, 1, u64::MAX] {
                let value = decode_float(dtype, random_bits(dtype, Interval::of(dtype), word));
                assert!((0.0..1.0).contains(&value), "{dtype}: {value}");
            }
        }
        let high = random_bits(DType::F32, Interval::Float(1000.0, 1001.0), u64::MAX);
        assert!(decode_float(DType::F32, high) < 1001.0, "{high}");
        assert_eq!(random_bits(DType::I8, Interval::Integer(-8, 8), 0) & 0xff, 0xf8);
        assert_eq!(random_bits(DType::I8, Interval::Integer(-8, 8), u64::MAX), 7);
        assert_eq!(random_bits(DType::U64, Interval::Integer(0, 1 << 64), u64::MAX), u64::MAX);
    }

    #[test]
    fn every_type_has_its_default_interval() {
        for dtype in DType::all() {
            let random = HostArray::random(dtype, &[3], 1);
            assert_eq!(random.is_ok(), dtype.class() != DTypeClass::Opaque, "{dtype}");
            let opaque = Interval::of(dtype).check(dtype);
            assert_eq!(opaque.is_ok(), dtype.class() != DTypeClass::Opaque, "{dtype}");
        }
    }

    #[test]
    fn intervals_are_checked() {
        let message = |dtype, interval: Interval| interval.check(dtype).unwrap_err().message().to_owned();
        assert!(Interval::Integer(-128, 128).check(DType::I8).is_ok());
        assert!(message(DType::I8, Interval::Integer(0, 129)).contains("does not fit"));
        assert!(message(DType::I8, Interval::Float(0.0, 1.0)).contains("requires integers"));
        assert!(message(DType::BOOL, Interval::Integer(0, 3)).contains("0 and 1"));
        assert!(message(DType::F32, Interval::Integer(0, 1)).contains("floating-point"));
        assert!(message(DType::F32, Interval::Float(1.0, 1.0)).contains("empty"));
    }

    #[test]
    fn an_interval_that_the_type_cannot_hold_is_rejected() {
        let message =
            |dtype, low, high| Interval::Float(low, high).check(dtype).unwrap_err().message().to_owned();
        let types = [
            (DType::F16, 65504.0),
            (DType::BF16, 3.3e38),
            (DType::F32, f64::from(f32::MAX)),
            (DType::COMPLEX64, f64::from(f32::MAX)),
        ];
        for (dtype, most) in types {
            assert!(Interval::Float(0.0, most).check(dtype).is_ok(), "{dtype}");
            assert!(message(dtype, 0.0, most * 2.0).contains("does not fit"), "{dtype}");
            assert!(message(dtype, -most * 2.0, 0.0).contains("does not fit"), "{dtype}");
            // All values would be equal, which hides most errors in a kernel.
            assert!(message(dtype, 0.0, 1e-60).contains("the same number"), "{dtype}");
            assert!(message(dtype, 1.0, 1.000_000_01).contains("the same number"), "{dtype}");
        }
        assert!(message(DType::F64, -1.7e308, 1.7e308).contains("wider than 1.8e308"));
        assert!(Interval::Float(0.0, f64::MAX).check(DType::F64).is_ok());
        assert!(message(DType::F64, 0.0, f64::INFINITY).contains("finite numbers of at most 1.8e308"));
    }

    #[test]
    fn casts_round_and_saturate() {
        let floats = HostArray::from_slice(&[5], &[1.5f32, -2.5, 1e9, f32::NAN, f32::NEG_INFINITY]).unwrap();
        assert_eq!(elements::<i16>(&floats.cast(DType::I16).unwrap()), [1, -2, i16::MAX, 0, i16::MIN]);
        assert_eq!(elements::<u8>(&floats.cast(DType::U8).unwrap()), [1, 0, 255, 0, 0]);
        assert_eq!(floats.cast(DType::BOOL).unwrap().bytes(), [1; 5]);
        let f16 = floats.cast(DType::F16).unwrap();
        assert_eq!(elements::<half::f16>(&f16)[2], half::f16::INFINITY, "the nearest that there is");
        let integers = HostArray::from_slice(&[3], &[i64::MIN, -1, i64::MAX]).unwrap();
        assert_eq!(elements::<u64>(&integers.cast(DType::U64).unwrap()), [0, 0, i64::MAX.unsigned_abs()]);
        assert_eq!(elements::<i8>(&integers.cast(DType::I8).unwrap()), [-128, -1, 127]);
        assert_eq!(elements::<f32>(&integers.cast(DType::F32).unwrap())[1], -1.0);
        // A double rounds both to a number halfway between two, and so away from what is nearest.
        let beside =
            HostArray::from_slice(&[2], &[(1i64 << 54) + (1 << 30) + 1, -(1 << 54) - (1 << 46) - 1]).unwrap();
        assert_eq!(elements::<f32>(&beside.cast(DType::F32).unwrap())[0], 2f32.powi(54) + 2f32.powi(31));
        let bf16 = elements::<half::bf16>(&beside.cast(DType::BF16).unwrap())[1];
        assert_eq!(bf16.to_f64(), -(2f64.powi(54) + 2f64.powi(47)));
        let flags = HostArray::arange(DType::BOOL, &[2]).unwrap();
        assert_eq!(elements::<f64>(&flags.cast(DType::F64).unwrap()), [0.0, 1.0]);
        assert_eq!(flags.cast(DType::BOOL).unwrap().bytes(), [0, 1]);
        let complex = HostArray::arange(DType::COMPLEX64, &[2]).unwrap();
        assert!(complex.cast(DType::COMPLEX64).is_ok());
        for (array, dtype) in [(&complex, DType::F32), (&flags, DType::COMPLEX64), (&flags, DType::FP8_E4M3)]
        {
            let error = array.cast(dtype).unwrap_err();
            assert!(error.message().contains("is no type of numbers"), "{error}");
        }
    }
}
