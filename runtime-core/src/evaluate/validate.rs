//! Is the result right? Comparison of an output with its reference, and the poison that shows what was not written.

use half::{bf16, f16};

use crate::{DType, DTypeClass, Error, HostArray, Result};

/// How far an output may be from its reference: `|actual - expected| <= atol + rtol * |expected|`.
///
/// Integers, booleans and opaque bytes are exact. What is `None` is chosen by dtype ([`Tolerance::bounds`]).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Tolerance {
    /// Relative part, taken as it is.
    pub rtol: Option<f64>,
    /// Absolute part, taken as it is.
    pub atol: Option<f64>,
    /// How many terms are summed into one element, if the kernel reduces: widens the defaults.
    pub reduction_length: Option<u64>,
}

impl Tolerance {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [("rtol", self.rtol), ("atol", self.atol)] {
            if value.is_some_and(|value| value.is_nan() || value < 0.0) {
                return Err(Error::invalid(format!("tolerance.{name} is not a number of at least 0")));
            }
        }
        Ok(())
    }

    /// The `(rtol, atol)` that hold for a dtype.
    ///
    /// Defaults: f64 1e-7 and 1e-12, f32 1e-5 and 1e-8, f16 1e-3 and 1e-6, bf16 1e-2 and 1e-6, complex like its
    /// parts, all else 0.
    ///
    /// The rounding errors of a sum of `n` terms are independent of each other, so they grow like `sqrt(n)` relative
    /// to the sum of the terms' magnitudes (Higham and Mary 2019, "A new approach to probabilistic rounding error
    /// analysis"). With a reduction length the default `rtol` is therefore multiplied by `sqrt(n)`. Not by `n`: that
    /// would pass a kernel that forgets a term. Where terms of both signs cancel, the result is much smaller than
    /// its terms and `rtol` sees nothing; so the default `atol` counts per term, and is multiplied by `n * sqrt(n)`.
    #[must_use]
    pub fn bounds(&self, dtype: DType) -> (f64, f64) {
        let (rtol, atol) = match dtype {
            DType::F64 | DType::COMPLEX128 => (1e-7, 1e-12),
            DType::F32 | DType::COMPLEX64 => (1e-5, 1e-8),
            DType::F16 => (1e-3, 1e-6),
            DType::BF16 => (1e-2, 1e-6),
            _ => return (0.0, 0.0),
        };
        let terms = self.reduction_length.unwrap_or(1).max(1) as f64;
        (self.rtol.unwrap_or(rtol * terms.sqrt()), self.atol.unwrap_or(atol * terms * terms.sqrt()))
    }
}

/// What the validation found.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(tag = "status", rename_all = "snake_case"))]
pub enum Validation {
    /// Every element of every reference is within its tolerance.
    Passed(Agreement),
    /// An output is wrong: the first one that is.
    Failed(Mismatch),
    /// Nothing was compared.
    Skipped {
        /// Why not.
        reason: String,
    },
}

impl Validation {
    /// Whether outputs were compared and all were right.
    #[must_use]
    pub const fn is_passed(&self) -> bool {
        matches!(self, Self::Passed(_))
    }

    /// Whether an output was wrong.
    #[must_use]
    pub const fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// How well right outputs agree with their references.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Agreement {
    /// Elements compared, of all outputs.
    pub elements: usize,
    /// The largest absolute error.
    pub max_absolute_error: f64,
}

/// How an output differs from its reference.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Mismatch {
    /// Index of the argument.
    pub arg: usize,
    /// Where the worst element is: the one that exceeds its tolerance by the largest factor.
    pub index: Vec<usize>,
    /// The element that the kernel made, in words: the JSON form has no NaN and loses large integers.
    pub actual: String,
    /// The element that it should have made.
    pub expected: String,
    /// Absolute error of that element; infinite if one of the two is not a finite number.
    pub absolute_error: f64,
    /// Absolute error over the magnitude of the expected element; infinite for an expected zero.
    pub relative_error: f64,
    /// How many elements are beyond their tolerance.
    pub wrong: usize,
    /// How many elements there are.
    pub elements: usize,
    /// How many of the wrong ones still hold the poison: the kernel never wrote them.
    pub unwritten: usize,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { arg, index, actual, expected, absolute_error, relative_error, wrong, elements, unwritten } =
            self;
        write!(f, "argument {arg}: {wrong} of {elements} elements are wrong")?;
        if *unwritten > 0 {
            write!(f, " ({unwritten} were never written)")?;
        }
        write!(
            f,
            ", worst at {index:?}: {actual} should be {expected} (absolute error {absolute_error:.3e}, "
        )?;
        write!(f, "relative {relative_error:.3e})")
    }
}

/// One element in a form that differences can be taken of.
#[derive(Clone, Copy, Debug)]
enum ElementValue {
    Integer(i128),
    /// Real and imaginary part.
    Float(f64, f64),
}

/// Error of an element and by which factor it exceeds its tolerance; above 1 it is wrong.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct ElementError {
    excess: f64,
    absolute_error: f64,
}

impl ElementValue {
    fn read(dtype: DType, bytes: &[u8]) -> Self {
        let real = |value: f64| Self::Float(value, 0.0);
        match dtype {
            DType::F32 => real(read_pod::<f32>(bytes).into()),
            DType::F64 => real(read_pod(bytes)),
            DType::F16 => real(read_pod::<f16>(bytes).to_f64()),
            DType::BF16 => real(read_pod::<bf16>(bytes).to_f64()),
            DType::COMPLEX64 => {
                Self::Float(read_pod::<f32>(&bytes[..4]).into(), read_pod::<f32>(&bytes[4..]).into())
            }
            DType::COMPLEX128 => Self::Float(read_pod(&bytes[..8]), read_pod(&bytes[8..])),
            DType::I8 => Self::Integer(read_pod::<i8>(bytes).into()),
            DType::I16 => Self::Integer(read_pod::<i16>(bytes).into()),
            DType::I32 => Self::Integer(read_pod::<i32>(bytes).into()),
            DType::I64 => Self::Integer(read_pod::<i64>(bytes).into()),
            // Unsigned, boolean and opaque: the little-endian number that the bytes are, up to 15 of them.
            _ => Self::Integer(
                bytes.iter().rev().take(15).fold(0, |value, &byte| value << 8 | i128::from(byte)),
            ),
        }
    }

    /// How far `self` is from `expected`. Not-a-number equals itself: a reference that has one wants one.
    fn error(self, expected: Self, (rtol, atol): (f64, f64)) -> ElementError {
        let error = |absolute_error: f64, magnitude: f64| {
            let tolerance = atol + rtol * magnitude;
            let excess = if absolute_error == 0.0 { 0.0 } else { absolute_error / tolerance };
            ElementError { excess, absolute_error }
        };
        match (self, expected) {
            (Self::Integer(a), Self::Integer(b)) => error(a.abs_diff(b) as f64, b.unsigned_abs() as f64),
            (Self::Float(ar, ai), Self::Float(br, bi)) => {
                let (re, im) = (part_error(ar, br), part_error(ai, bi));
                if re.is_infinite() || im.is_infinite() {
                    return ElementError { excess: f64::INFINITY, absolute_error: f64::INFINITY };
                }
                let magnitude = br.hypot(bi);
                error(re.hypot(im), if magnitude.is_finite() { magnitude } else { 0.0 })
            }
            // Both come from one dtype.
            _ => ElementError { excess: f64::INFINITY, absolute_error: f64::INFINITY },
        }
    }

    fn magnitude(self) -> f64 {
        match self {
            Self::Integer(value) => value.unsigned_abs() as f64,
            Self::Float(re, im) => re.hypot(im),
        }
    }

    fn text(self, dtype: DType) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Float(re, im) if dtype.class() == DTypeClass::Complex => format!("{re:?}{im:+?}i"),
            // f64 shows an f32's digits beyond its precision.
            Self::Float(re, _) if dtype == DType::F64 => format!("{re:?}"),
            #[expect(clippy::cast_possible_truncation, reason = "the value came from at most an f32")]
            Self::Float(re, _) => format!("{:?}", re as f32),
        }
    }
}

/// Infinite where the parts cannot be compared as numbers, zero where they are the same infinity or both NaN.
fn part_error(actual: f64, expected: f64) -> f64 {
    let same = actual == expected || (actual.is_nan() && expected.is_nan());
    match (actual - expected).abs() {
        _ if same => 0.0,
        error if error.is_nan() => f64::INFINITY,
        error => error,
    }
}

fn read_pod<T: bytemuck::Pod>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(bytes)
}

/// Compares output `arg`, which held `poison` before, with its reference of the same dtype and shape.
pub(crate) fn compare(
    arg: usize,
    actual: &HostArray,
    expected: &HostArray,
    poison: Option<u8>,
    tolerance: &Tolerance,
) -> Result<Agreement, Box<Mismatch>> {
    let (dtype, size) = (expected.dtype(), expected.dtype().bytes());
    let bounds = tolerance.bounds(dtype);
    let mut agreement = Agreement { elements: expected.element_count(), max_absolute_error: 0.0 };
    let mut worst: Option<(usize, ElementError)> = None;
    let (mut wrong, mut unwritten) = (0, 0);
    let pairs = actual.bytes().chunks_exact(size).zip(expected.bytes().chunks_exact(size));
    for (position, (a, b)) in pairs.enumerate() {
        // Most elements of most outputs are the same bytes or very close.
        if a == b {
            continue;
        }
        let error = ElementValue::read(dtype, a).error(ElementValue::read(dtype, b), bounds);
        agreement.max_absolute_error = agreement.max_absolute_error.max(error.absolute_error);
        if error.excess > 1.0 {
            wrong += 1;
            unwritten += usize::from(poison.is_some_and(|poison| a.iter().all(|&byte| byte == poison)));
            if worst.is_none_or(|(_, least)| error > least) {
                worst = Some((position, error));
            }
        }
    }
    let Some((position, error)) = worst else { return Ok(agreement) };
    let element = |array: &HostArray| ElementValue::read(dtype, &array.bytes()[position * size..][..size]);
    let expected_element = element(expected);
    let relative_error = error.absolute_error / expected_element.magnitude();
    Err(Box::new(Mismatch {
        arg,
        index: unravel(position, expected.shape()),
        actual: element(actual).text(dtype),
        expected: expected_element.text(dtype),
        absolute_error: error.absolute_error,
        relative_error: if relative_error.is_nan() { f64::INFINITY } else { relative_error },
        wrong,
        elements: agreement.elements,
        unwritten,
    }))
}

/// A byte with which an output is filled before the kernel runs, so that what the kernel does not write is wrong.
///
/// 0xFF makes a NaN of every float. Where the reference itself has an element that the poison would pass for (a NaN,
/// or -1 in an integer), it is another byte; only an 8-bit reference with all 256 values leaves none, and gets 0xFF.
pub(crate) fn poison(expected: &HostArray, tolerance: &Tolerance) -> u8 {
    let (dtype, size) = (expected.dtype(), expected.dtype().bytes());
    let bounds = tolerance.bounds(dtype);
    let shows = |byte: &u8| {
        let element = [*byte; 16];
        let filled = ElementValue::read(dtype, &element[..size]);
        expected
            .bytes()
            .chunks_exact(size)
            .all(|bytes| filled.error(ElementValue::read(dtype, bytes), bounds).excess > 1.0)
    };
    (0..=u8::MAX).rev().find(shows).unwrap_or(u8::MAX)
}

fn unravel(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (at, extent) in index.iter_mut().zip(shape).rev() {
        *at = position % extent;
        position /= extent;
    }
    index
}

impl Tolerance {
    /// Compares output `arg` with its reference of the same dtype and shape, for a caller that ran the kernel itself.
    /// `poison` is what the output was filled with, if it was.
    #[must_use]
    pub fn compare(
        &self,
        arg: usize,
        actual: &HostArray,
        expected: &HostArray,
        poison: Option<u8>,
    ) -> Validation {
        match compare(arg, actual, expected, poison, self) {
            Ok(agreement) => Validation::Passed(agreement),
            Err(mismatch) => Validation::Failed(*mismatch),
        }
    }

    /// A byte to fill an output with before the kernel runs: no element of `expected` is within its tolerance of it,
    /// wherever that can be.
    #[must_use]
    pub fn poison(&self, expected: &HostArray) -> u8 {
        poison(expected, self)
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
