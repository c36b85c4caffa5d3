//! Compares outputs with references. Outputs are poisoned beforehand, so that elements the kernel does not
//! write are detected.

use half::{bf16, f16};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Access, DType, DTypeClass, Error, HostArray, Result};

/// How far an output may deviate from its reference: `|actual - expected| <= atol + rtol * |expected|`.
///
/// Integers, booleans and opaque bytes must match exactly. `None` selects the default of the dtype
/// ([`Tolerance::bounds`]).
///
/// ```
/// # use runtime_core::DType;
/// use runtime_core::evaluate::Tolerance;
///
/// // Each element of the product of two matrices is a sum of 4,096 terms.
/// let product = Tolerance { reduction_length: Some(4096), ..Tolerance::default() };
/// let (rtol, _) = product.bounds(DType::F32);
/// assert!((rtol - 64.0 * 1e-5).abs() < 1e-12); // the square root of 4,096 is 64
/// let exact = Tolerance { rtol: Some(0.0), atol: Some(0.0), ..Tolerance::default() };
/// assert_eq!(exact.bounds(DType::F32), (0.0, 0.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Relative tolerance; not scaled.
    pub rtol: Option<f64>,
    /// Absolute tolerance; not scaled.
    pub atol: Option<f64>,
    /// Number of terms summed into one element, if the kernel is a reduction; widens the defaults.
    pub reduction_length: Option<u64>,
}

impl Tolerance {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [("rtol", self.rtol), ("atol", self.atol)] {
            if value.is_some_and(|value| value.is_nan() || value < 0.0) {
                return Err(Error::invalid(format!("tolerance.{name} must be a number of at least 0")));
            }
        }
        Ok(())
    }

    /// The `(rtol, atol)` in effect for a dtype.
    ///
    /// Defaults: f64 1e-7 and 1e-12, f32 1e-5 and 1e-8, f16 1e-3 and 1e-6, bf16 1e-2 and 1e-6, complex types
    /// like their parts, all others 0.
    ///
    /// The rounding errors of a sum of `n` terms are independent of each other, so the error grows like
    /// `sqrt(n)` relative to the sum of the terms' magnitudes (Higham and Mary 2019, "A new approach to
    /// probabilistic rounding error analysis"). With a reduction length, the default `rtol` is therefore
    /// multiplied by `sqrt(n)`. Multiplying by `n` would pass a kernel that omits a term. Where terms of
    /// opposite signs cancel, the result is much smaller than its terms and `rtol` has no effect; the default
    /// `atol` is therefore per term and multiplied by `n * sqrt(n)`.
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

/// The result of a validation.
///
/// ```
/// # use runtime_core::{Arg, Geometry, HostArray, ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let x = device.tensor([2], &[1.0f32, 2.0])?;
/// # let args = vec![Arg::read_write(&x).into(), Arg::scalar(3.0f32).into()];
/// use runtime_core::evaluate::{Evaluation, Validation};
///
/// let mut evaluation = Evaluation::new(&scale, Geometry::single(), args); // x = 3 x
/// evaluation.reference = vec![(0, HostArray::from_slice(&[2], &[3.0f32, 7.0])?)];
/// let Validation::Failed(mismatch) = device.validate(&mut evaluation)? else { panic!("3 * 2 is not 7") };
/// assert_eq!((mismatch.wrong, mismatch.index.as_slice()), (1, &[1][..]));
/// assert!(mismatch.to_string().contains("6.0 should be 7.0"));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Validation {
    /// Every element of every reference is within its tolerance.
    Passed(Agreement),
    /// An output is wrong; describes the first such output.
    Failed(Mismatch),
    /// Nothing was compared.
    Skipped {
        /// The reason.
        reason: String,
    },
}

impl Default for Validation {
    fn default() -> Self {
        Self::Skipped { reason: "nothing is known of it".to_owned() }
    }
}

impl Validation {
    /// Whether outputs were compared and all were correct.
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

/// How closely correct outputs agree with their references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Number of elements compared, over all outputs.
    pub elements: usize,
    /// The largest absolute error.
    #[serde(deserialize_with = "null_is_infinite")]
    pub max_absolute_error: f64,
    /// The largest error in units in the last place: how many numbers of the output's type lie between an
    /// element and what is expected. 0 for types that are compared exactly; `None` in older reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ulp: Option<u64>,
}

impl Agreement {
    /// That of these outputs and others together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            elements: self.elements + other.elements,
            max_absolute_error: self.max_absolute_error.max(other.max_absolute_error),
            max_ulp: self.max_ulp.max(other.max_ulp),
        }
    }
}

/// How an output differs from its reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Index of the argument.
    #[serde(rename = "argument")]
    pub arg: usize,
    /// Its name, if the caller has set it: kernels do not name their arguments.
    pub name: Option<String>,
    /// The calls that came before, if the outputs were right at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_calls: Option<u64>,
    /// Total number of elements.
    pub elements: usize,
    /// Number of elements that exceed their tolerance.
    pub wrong: usize,
    /// Number of wrong elements that still hold the poison, i.e. that the kernel never wrote.
    pub unwritten: usize,
    /// Index of the worst element: the one that exceeds its tolerance by the largest factor.
    #[serde(rename = "worst_index")]
    pub index: Vec<usize>,
    /// The actual element, as text: JSON has no NaN and loses the precision of large integers.
    pub actual: String,
    /// The expected element.
    pub expected: String,
    /// Absolute error of that element; infinite if either is not finite.
    #[serde(deserialize_with = "null_is_infinite")]
    pub absolute_error: f64,
    /// Absolute error divided by the magnitude of the expected element; infinite if that is zero.
    #[serde(deserialize_with = "null_is_infinite")]
    pub relative_error: f64,
}

/// JSON has no infinity; `null` stands for it.
fn null_is_infinite<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            arg,
            index,
            actual,
            expected,
            absolute_error,
            relative_error,
            wrong,
            elements,
            unwritten,
            after_calls,
            ..
        } = self;
        if let Some(calls) = after_calls {
            write!(f, "right at first, wrong after {calls} calls: ")?;
        }
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

/// The value of an element, in a form that can be subtracted.
#[derive(Clone, Copy, Debug)]
enum ElementValue {
    Integer(i128),
    /// Real and imaginary part.
    Float(f64, f64),
}

/// The error of an element. `excess` is the error divided by the tolerance; above 1, the element is wrong.
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
            // Unsigned, boolean and opaque: the bytes as a little-endian number, at most 15 of them.
            _ => Self::Integer(
                bytes.iter().rev().take(15).fold(0, |value, &byte| value << 8 | i128::from(byte)),
            ),
        }
    }

    /// The error of `self` against `expected`, whose bytes differ. NaN equals NaN: a NaN in the reference expects one.
    fn error(self, expected: Self, (rtol, atol): (f64, f64)) -> ElementError {
        let error = |absolute_error: f64, magnitude: f64| {
            let tolerance = atol + rtol * magnitude;
            let excess = if absolute_error == 0.0 { 0.0 } else { absolute_error / tolerance };
            ElementError { excess, absolute_error }
        };
        match (self, expected) {
            // Elements that are compared exactly, and differ: perhaps only in a byte that the number lacks.
            (Self::Integer(a), Self::Integer(b)) => {
                ElementError { excess: f64::INFINITY, absolute_error: a.abs_diff(b) as f64 }
            }
            (Self::Float(ar, ai), Self::Float(br, bi)) => {
                let (re, im) = (part_error(ar, br), part_error(ai, bi));
                if re.is_infinite() || im.is_infinite() {
                    return ElementError { excess: f64::INFINITY, absolute_error: f64::INFINITY };
                }
                let magnitude = br.hypot(bi);
                error(re.hypot(im), if magnitude.is_finite() { magnitude } else { 0.0 })
            }
            // Unreachable: both have the same dtype.
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
            // Printed as f64, an f32 would show digits beyond its precision.
            Self::Float(re, _) if dtype == DType::F64 => format!("{re:?}"),
            #[expect(clippy::cast_possible_truncation, reason = "the value came from at most an f32")]
            Self::Float(re, _) => format!("{:?}", re as f32),
        }
    }
}

/// Infinite if the parts cannot be compared as numbers; zero if they are the same infinity or both NaN.
fn part_error(actual: f64, expected: f64) -> f64 {
    let same = actual == expected || (actual.is_nan() && expected.is_nan());
    match (actual - expected).abs() {
        _ if same => 0.0,
        error if error.is_nan() => f64::INFINITY,
        error => error,
    }
}

/// The error of an element in units in the last place: the distance of its bits, in the order of the numbers
/// that they mean. That of a complex number is the larger one of its parts.
fn ulp_distance(dtype: DType, actual: &[u8], expected: &[u8]) -> u64 {
    let part = dtype.complex_part().unwrap_or(dtype);
    let of_part = |(actual, expected): (&[u8], &[u8])| {
        let (a, b) = (ElementValue::read(part, actual), ElementValue::read(part, expected));
        match (a, b) {
            (ElementValue::Float(a, _), ElementValue::Float(b, _)) if part_error(a, b) > 0.0 => {
                place_in_order(actual).abs_diff(place_in_order(expected))
            }
            _ => 0,
        }
    };
    let size = part.bytes();
    actual.chunks_exact(size).zip(expected.chunks_exact(size)).map(of_part).max().unwrap_or(0)
}

/// The place of a floating-point number among all of its type. Their bits are a sign and a magnitude.
fn place_in_order(bytes: &[u8]) -> i64 {
    let bits = bytes.iter().rev().fold(0, |bits: u64, byte| bits << 8 | u64::from(*byte));
    let sign = 1 << (8 * bytes.len() - 1);
    let magnitude = (bits & (sign - 1)).cast_signed();
    if bits & sign == 0 { magnitude } else { -magnitude }
}

fn read_pod<T: bytemuck::Pod>(bytes: &[u8]) -> T {
    bytemuck::pod_read_unaligned(bytes)
}

/// So many elements are compared at once, as long as they are equal.
const PIECE: usize = 1024;

/// The largest errors of elements, absolute and in units in the last place, if all are within their tolerance and finite. `None` does
/// not say that one is wrong.
fn close_errors(dtype: DType, pair: (&[u8], &[u8]), bounds: (f64, f64)) -> Option<(f64, u64)> {
    if pair.0 == pair.1 {
        return Some((0.0, 0));
    }
    match dtype {
        DType::F32 => close_floats(pair, bounds, |bytes: &[u8; 4]| read_pod::<f32>(bytes).into()),
        DType::F64 => close_floats(pair, bounds, |bytes: &[u8; 8]| read_pod(bytes)),
        DType::F16 => close_floats(pair, bounds, |bytes: &[u8; 2]| read_pod::<f16>(bytes).to_f64()),
        DType::BF16 => close_floats(pair, bounds, |bytes: &[u8; 2]| read_pod::<bf16>(bytes).to_f64()),
        _ => None,
    }
}

/// As [`close_errors`], in a loop that compilers make fast: without branches, for elements of a known size.
fn close_floats<const SIZE: usize>(
    (actual, expected): (&[u8], &[u8]),
    (rtol, atol): (f64, f64),
    read: impl Fn(&[u8; SIZE]) -> f64,
) -> Option<(f64, u64)> {
    let (mut are_close, mut absolute, mut ulp) = (true, 0.0_f64, 0);
    for (a, b) in actual.as_chunks().0.iter().zip(expected.as_chunks().0) {
        let (error, magnitude) = ((read(a) - read(b)).abs(), read(b).abs());
        are_close &= error <= atol + rtol * magnitude && error < f64::INFINITY;
        absolute = absolute.max(error);
        ulp = ulp.max(place_in_order(a).abs_diff(place_in_order(b)));
    }
    are_close.then_some((absolute, ulp))
}

/// Compares output `arg`, which was filled with `poison` beforehand, with its reference of the same dtype and
/// shape.
fn compare(
    arg: usize,
    actual: &HostArray,
    expected: &HostArray,
    poison: Option<u8>,
    tolerance: &Tolerance,
) -> Result<Agreement, Box<Mismatch>> {
    let (dtype, size) = (expected.dtype(), expected.dtype().bytes());
    let bounds = tolerance.bounds(dtype);
    let mut agreement = Agreement { elements: expected.len(), max_absolute_error: 0.0, max_ulp: Some(0) };
    let mut worst: Option<(usize, ElementError)> = None;
    let (mut wrong, mut unwritten) = (0, 0);
    let pieces = actual.bytes().chunks(PIECE * size).zip(expected.bytes().chunks(PIECE * size)).enumerate();
    for (piece, (a, b)) in pieces {
        // Fast path: most elements are right.
        if let Some((max_absolute_error, ulp)) = close_errors(dtype, (a, b), bounds) {
            agreement = agreement.and(Agreement { elements: 0, max_absolute_error, max_ulp: Some(ulp) });
            continue;
        }
        let elements = (piece * PIECE..).zip(a.chunks_exact(size).zip(b.chunks_exact(size)));
        for (position, (a, b)) in elements.filter(|(_, (a, b))| a != b) {
            let error = ElementValue::read(dtype, a).error(ElementValue::read(dtype, b), bounds);
            agreement.max_absolute_error = agreement.max_absolute_error.max(error.absolute_error);
            agreement.max_ulp = agreement.max_ulp.max(Some(ulp_distance(dtype, a, b)));
            if error.excess > 1.0 {
                wrong += 1;
                unwritten += usize::from(poison.is_some_and(|poison| a.iter().all(|&byte| byte == poison)));
                if worst.is_none_or(|(_, least)| error > least) {
                    worst = Some((position, error));
                }
            }
        }
    }
    let Some((position, error)) = worst else { return Ok(agreement) };
    let element = |array: &HostArray| ElementValue::read(dtype, &array.bytes()[position * size..][..size]);
    let expected_element = element(expected);
    let relative_error = error.absolute_error / expected_element.magnitude();
    Err(Box::new(Mismatch {
        arg,
        name: None,
        after_calls: None,
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

/// A byte to fill an output with before the kernel runs, so that elements the kernel does not write count as
/// wrong: the one that would be right for the fewest elements, of several the largest.
///
/// 0xFF makes every float a NaN. Only if each byte would be right somewhere, as for an 8-bit reference with
/// all 256 values, may elements pass that were not written; never all of them.
fn poison(expected: &HostArray, tolerance: &Tolerance) -> u8 {
    let (dtype, size) = (expected.dtype(), expected.dtype().bytes());
    let bounds = tolerance.bounds(dtype);
    let elements = || expected.bytes().chunks_exact(size);
    // For types that are compared exactly, one pass finds them all.
    let exact = (!has_tolerance(dtype)).then(|| {
        let mut counts = [0; 256];
        let uniform = elements().filter(|bytes| bytes.iter().all(|byte| *byte == bytes[0]));
        uniform.for_each(|bytes| counts[usize::from(bytes[0])] += 1);
        counts
    });
    let right_for = |byte: u8| match &exact {
        Some(counts) => counts[usize::from(byte)],
        None => {
            let filled = ElementValue::read(dtype, &[byte; 16][..size]);
            let is_right =
                |bytes: &&[u8]| filled.error(ElementValue::read(dtype, bytes), bounds).excess <= 1.0;
            elements().filter(is_right).count()
        }
    };
    let mut least = (usize::MAX, u8::MAX);
    for byte in (0..=u8::MAX).rev() {
        let count = right_for(byte);
        if count < least.0 {
            least = (count, byte);
        }
        if count == 0 {
            break;
        }
    }
    least.1
}

/// Whether elements are numbers that may differ from what is expected. All others, such as vectors, are compared as bytes.
const fn has_tolerance(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::COMPLEX64 | DType::COMPLEX128)
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
    /// Compares output `arg` with its reference, for callers that run the kernel themselves; otherwise use
    /// [`validate`](crate::CommonRuntime#method.validate), which also detects elements that were never written.
    ///
    /// # Errors
    /// `InvalidArgument` if dtype or shape differ.
    pub fn compare(&self, arg: usize, actual: &HostArray, expected: &HostArray) -> Result<Validation> {
        self.compare_poisoned(arg, actual, expected, None)
    }

    /// The byte to fill output `arg` with before the kernel runs, so that elements that are not written are wrong.
    #[must_use]
    pub fn poison(&self, expected: &[(usize, HostArray)], arg: usize) -> u8 {
        let expected = expected.iter().find(|(index, _)| *index == arg);
        expected.map_or(u8::MAX, |(_, expected)| poison(expected, self))
    }

    /// Compares all outputs with their references, for callers that run the kernel themselves. `read` returns the contents of an
    /// argument and how the kernel uses it; `None` skips it. Those that are only written must have been filled with
    /// [`poison`](Self::poison) beforehand: wrong elements that still hold it are reported as never written.
    ///
    /// # Errors
    /// Those of `read`; `InvalidArgument` if dtype or shape differ.
    pub fn compare_outputs(
        &self,
        expected: &[(usize, HostArray)],
        mut read: impl FnMut(usize) -> Result<Option<(HostArray, Access)>>,
    ) -> Result<Validation> {
        let mut all = Agreement::default();
        for (arg, expected) in expected {
            let Some((actual, access)) = read(*arg)? else { continue };
            match self.compare(*arg, &actual, expected)? {
                Validation::Passed(agreement) => all = all.and(agreement),
                // The poison tells which of the wrong elements were never written.
                Validation::Failed(_) if access == Access::Write => {
                    return self.compare_poisoned(*arg, &actual, expected, Some(poison(expected, self)));
                }
                other => return Ok(other),
            }
        }
        Ok(Validation::Passed(all))
    }

    fn compare_poisoned(
        &self,
        arg: usize,
        actual: &HostArray,
        expected: &HostArray,
        poison: Option<u8>,
    ) -> Result<Validation> {
        if (actual.dtype(), actual.shape()) != (expected.dtype(), expected.shape()) {
            return Err(Error::invalid(format!(
                "argument {arg} is {} {:?}, but its reference is {} {:?}",
                actual.dtype(),
                actual.shape(),
                expected.dtype(),
                expected.shape()
            )));
        }
        Ok(match compare(arg, actual, expected, poison, self) {
            Ok(agreement) => Validation::Passed(agreement),
            Err(mismatch) => Validation::Failed(*mismatch),
        })
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
