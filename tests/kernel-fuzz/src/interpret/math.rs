//! Built-in functions.

use naga::{MathFunction as Fun, Scalar, ScalarKind};
use runtime_kernel::naga;

use super::Invalid;
use super::scalar::{float, float_bits, integer, truncate};

/// Evaluates one component of a built-in function.
///
/// # Errors
/// The function is not supported, or its result is not exact.
pub(super) fn component(fun: Fun, scalar: Scalar, at: &[u64]) -> Result<u64, Invalid> {
    if scalar.kind == ScalarKind::Float { of_float(fun, scalar, at) } else { of_integer(fun, scalar, at) }
}

fn of_float(fun: Fun, scalar: Scalar, at: &[u64]) -> Result<u64, Invalid> {
    let x = |index: usize| float(scalar, at[index]);
    let value = match fun {
        Fun::Abs => x(0).abs(),
        Fun::Min => x(0).min(x(1)),
        Fun::Max => x(0).max(x(1)),
        Fun::Clamp if x(1) <= x(2) => x(0).max(x(1)).min(x(2)),
        Fun::Saturate => x(0).clamp(0.0, 1.0),
        Fun::Ceil => x(0).ceil(),
        Fun::Floor => x(0).floor(),
        Fun::Trunc => x(0).trunc(),
        Fun::Round => x(0).round_ties_even(),
        Fun::Sign if x(0) == 0.0 => 0.0,
        Fun::Sign => x(0).signum(),
        Fun::Step => f64::from(x(0) <= x(1)),
        Fun::Fma => x(0) * x(1) + x(2),
        Fun::Mix => x(0) * (1.0 - x(2)) + x(1) * x(2),
        Fun::SmoothStep if x(0) < x(1) => {
            let t = ((x(2) - x(0)) / (x(1) - x(0))).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }
        Fun::Ldexp => x(0) * f64::from(at[1] as i32).exp2(),
        Fun::QuantizeToF16 => half::f16::from_f64(x(0)).to_f64(),
        Fun::Clamp => return Err(Invalid::Inexact),
        _ => return Err(Invalid::unknown(&format!("{fun:?} of floats"))),
    };
    float_bits(scalar, value)
}

/// Evaluates a built-in function of whole vectors.
///
/// # Errors
/// Its result is not exact.
pub(super) fn of_vectors(
    fun: Fun,
    scalar: Scalar,
    (x, y, z): (&[u64], &[u64], &[u64]),
    out: &mut [u64],
) -> Result<(), Invalid> {
    let floats = |words: &[u64]| words.iter().map(|word| float(scalar, *word)).collect::<Vec<_>>();
    let (x, y, z) = (floats(x), floats(y), floats(z));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let along = dot(&y, &x);
    for (index, out) in out.iter_mut().enumerate() {
        let value = match fun {
            Fun::Reflect => x[index] - 2.0 * along * y[index],
            Fun::Refract => {
                let kept = 1.0 - z[0] * z[0] * (1.0 - along * along);
                let bent = z[0] * x[index] - (z[0] * along + kept.max(0.0).sqrt()) * y[index];
                if kept < 0.0 { 0.0 } else { bent }
            }
            _ if dot(&y, &z) < 0.0 => x[index],
            _ => -x[index],
        };
        *out = float_bits(scalar, value)?;
    }
    Ok(())
}

/// The two members of the result of `modf` or `frexp`.
///
/// # Errors
/// A result is not exact.
pub(super) fn parts(fun: Fun, scalar: Scalar, word: u64) -> Result<[u64; 2], Invalid> {
    let value = float(scalar, word);
    if fun == Fun::Modf {
        return Ok([float_bits(scalar, value.fract())?, float_bits(scalar, value.trunc())?]);
    }
    let exponent = if value == 0.0 { 0 } else { value.abs().log2().floor() as i32 + 1 };
    Ok([float_bits(scalar, value * f64::from(-exponent).exp2())?, u64::from(exponent as u32)])
}

fn of_integer(fun: Fun, scalar: Scalar, at: &[u64]) -> Result<u64, Invalid> {
    let x = |index: usize| integer(scalar, at[index]);
    let width = u32::from(scalar.width) * 8;
    let none = truncate(scalar, u64::MAX);
    let bits = at[0];
    let value = match fun {
        Fun::Abs => x(0).unsigned_abs() as u64,
        Fun::Min => x(0).min(x(1)) as u64,
        Fun::Max => x(0).max(x(1)) as u64,
        // §clamp: for integers it is min(max(e, low), high), even if low > high.
        Fun::Clamp => x(0).max(x(1)).min(x(2)) as u64,
        Fun::Sign => x(0).signum() as u64,
        Fun::CountTrailingZeros => u64::from(bits.trailing_zeros().min(width)),
        Fun::CountLeadingZeros => u64::from(bits.leading_zeros() - (64 - width)),
        Fun::CountOneBits => u64::from(bits.count_ones()),
        Fun::ReverseBits => bits.reverse_bits() >> (64 - width),
        Fun::FirstTrailingBit if bits == 0 => none,
        Fun::FirstTrailingBit => u64::from(bits.trailing_zeros()),
        Fun::FirstLeadingBit => {
            let bits = if x(0) < 0 { truncate(scalar, !bits) } else { bits };
            if bits == 0 { none } else { 63 - u64::from(bits.leading_zeros()) }
        }
        Fun::ExtractBits => {
            let (offset, count) = field(at[1], at[2], width);
            let field = if count == 0 { 0 } else { (bits >> offset) & mask(count) };
            let negative = scalar.kind == ScalarKind::Sint && count > 0 && field >> (count - 1) & 1 == 1;
            if negative { field | !mask(count) } else { field }
        }
        Fun::InsertBits => {
            let (offset, count) = field(at[2], at[3], width);
            let kept = if count == 0 { 0 } else { mask(count) << offset };
            (bits & !kept) | (if count == 0 { 0 } else { at[1] << offset } & kept)
        }
        _ => return Err(Invalid::unknown(&format!("{fun:?} of integers"))),
    };
    Ok(truncate(scalar, value))
}

/// Offset and count of a bit field, limited to the width.
fn field(offset: u64, count: u64, width: u32) -> (u32, u32) {
    let offset = (offset as u32).min(width);
    (offset, (count as u32).min(width - offset))
}

fn mask(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
