//! Scalars as bit patterns, and WGSL's operators on them.
//!
//! Inexact float results are errors: if every result is exact, all devices agree to the bit.

use half::f16;
use naga::{BinaryOperator as Op, Scalar, ScalarKind};
use runtime_kernel::naga;

use super::Invalid;

/// Truncates `value` to the width of a scalar.
#[must_use]
pub(super) fn truncate(scalar: Scalar, value: u64) -> u64 {
    if scalar.kind == ScalarKind::Bool {
        return u64::from(value != 0);
    }
    if scalar.width >= 8 { value } else { value & ((1 << (u32::from(scalar.width) * 8)) - 1) }
}

/// The value of an integer or bool.
#[must_use]
pub(super) fn integer(scalar: Scalar, bits: u64) -> i128 {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Sint, 4) => i128::from(bits as i32),
        (ScalarKind::Sint, _) => i128::from(bits as i64),
        _ => i128::from(bits),
    }
}

/// The value of a float.
#[must_use]
pub(super) fn float(scalar: Scalar, bits: u64) -> f64 {
    match scalar.width {
        2 => f16::from_bits(bits as u16).to_f64(),
        4 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The bits of a float.
///
/// # Errors
/// The scalar cannot hold the value exactly.
pub(super) fn float_bits(scalar: Scalar, value: f64) -> Result<u64, Invalid> {
    let bits = match scalar.width {
        2 => u64::from(f16::from_f64(value).to_bits()),
        4 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    };
    let kept = float(scalar, bits);
    // Either sign of zero is allowed.
    if value.is_finite() && kept == value { Ok(bits) } else { Err(Invalid::Inexact) }
}

/// `left op right` of two scalars of the same type; shift amounts are `u32`.
///
/// # Errors
/// A float result is not exact.
pub(super) fn binary(op: Op, scalar: Scalar, left: u64, right: u64) -> Result<u64, Invalid> {
    match scalar.kind {
        ScalarKind::Float => binary_float(op, scalar, left, right),
        ScalarKind::Bool => Ok(match op {
            Op::Equal => u64::from(left == right),
            Op::NotEqual => u64::from(left != right),
            Op::And | Op::LogicalAnd => left & right,
            Op::InclusiveOr | Op::LogicalOr => left | right,
            _ => return Err(Invalid::unknown("an operator of bool")),
        }),
        _ => binary_integer(op, scalar, left, right),
    }
}

fn compare<T: PartialOrd>(op: Op, left: &T, right: &T) -> Option<bool> {
    Some(match op {
        Op::Equal => left == right,
        Op::NotEqual => left != right,
        Op::Less => left < right,
        Op::LessEqual => left <= right,
        Op::Greater => left > right,
        Op::GreaterEqual => left >= right,
        _ => return None,
    })
}

fn binary_float(op: Op, scalar: Scalar, left: u64, right: u64) -> Result<u64, Invalid> {
    let (left, right) = (float(scalar, left), float(scalar, right));
    if let Some(holds) = compare(op, &left, &right) {
        return Ok(u64::from(holds));
    }
    let value = match op {
        Op::Add => left + right,
        Op::Subtract => left - right,
        Op::Multiply => left * right,
        Op::Divide if right != 0.0 => left / right,
        _ => return Err(Invalid::Inexact),
    };
    float_bits(scalar, value)
}

fn binary_integer(op: Op, scalar: Scalar, left: u64, right: u64) -> Result<u64, Invalid> {
    let (x, y) = (integer(scalar, left), integer(scalar, right));
    if let Some(holds) = compare(op, &x, &y) {
        return Ok(u64::from(holds));
    }
    let width = u64::from(scalar.width) * 8;
    let lowest = if scalar.kind == ScalarKind::Sint { -(1i128 << (width - 1)) } else { i128::MIN };
    let value = match op {
        Op::Add => x + y,
        Op::Subtract => x - y,
        Op::Multiply => x.wrapping_mul(y),
        // §arithmetic-expr: division by zero returns the dividend; the remainder is then 0.
        Op::Divide if y == 0 || (y == -1 && x == lowest) => x,
        Op::Divide => x / y,
        Op::Modulo if y == 0 || (y == -1 && x == lowest) => 0,
        Op::Modulo => x % y,
        Op::And => x & y,
        Op::InclusiveOr => x | y,
        Op::ExclusiveOr => x ^ y,
        // §bit-expr: the amount is taken modulo the width.
        Op::ShiftLeft => x << (right % width),
        Op::ShiftRight => x >> (right % width),
        _ => return Err(Invalid::unknown("an operator of integers")),
    };
    Ok(truncate(scalar, value as u64))
}

/// Converts a value to another scalar type, or (with `bits`) reinterprets its bits.
///
/// # Errors
/// The result is not exact, or out of range.
pub(super) fn convert(from: Scalar, to: Scalar, value: u64, bits: bool) -> Result<u64, Invalid> {
    if bits {
        return Ok(value);
    }
    match (from.kind, to.kind) {
        (ScalarKind::Float, ScalarKind::Float) => float_bits(to, float(from, value)),
        (ScalarKind::Float, ScalarKind::Bool) => Ok(u64::from(float(from, value) != 0.0)),
        (ScalarKind::Float, _) => {
            let whole = float(from, value).trunc();
            let kept = truncate(to, whole as i128 as u64);
            if integer(to, kept) as f64 == whole { Ok(kept) } else { Err(Invalid::Inexact) }
        }
        (_, ScalarKind::Float) => {
            let value = integer(from, value);
            if value as f64 as i128 == value { float_bits(to, value as f64) } else { Err(Invalid::Inexact) }
        }
        _ => Ok(truncate(to, integer(from, value) as u64)),
    }
}
