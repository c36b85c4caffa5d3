//! Whether a cooperative matrix is known to be in range and aligned.

use naga::{BinaryOperator, CooperativeData, Expression};

use super::FunctionContext;
use super::range::{self, Element, Limit};
use crate::ir::Value;
use crate::ir::cooperative::{EXTENT, MAX_STRIDE, Rows};

/// Longer chains of operators are not analysed.
const MAX_DEPTH: u32 = 8;

/// Whether the check of `transform::bounds_checks` would always pass for a matrix in work-group memory.
pub(crate) fn is_in_range(context: FunctionContext<'_>, data: CooperativeData) -> bool {
    let Some(element) = Element::of(context.function, data.pointer) else { return false };
    let Some(Limit::Constant(length)) = range::length(context, element.base) else { return false };
    let Some(stride) = range::constant_of(context, data.stride) else { return false };
    let scope = context.bounds.scope(element.access);
    let (greatest, divisor) = match element.index {
        Some(index) => (range::upper(context, scope, index, 0), divisor(context, index, 0)),
        None => (Some(u64::from(element.known)), power_of_two(u64::from(element.known))),
    };
    let rows = Rows::of(context.pointee(data.pointer), context.module.to_ctx());
    let last = u64::from(EXTENT - 1) * stride + u64::from(rows.width) - 1;
    stride <= u64::from(MAX_STRIDE)
        && (stride | divisor) & u64::from(rows.alignment_mask) == 0
        && greatest.is_some_and(|greatest| greatest + last < u64::from(length))
}

/// A power of two by which an unsigned number can be divided, whether or not it wraps around.
fn divisor(context: FunctionContext<'_>, value: Value, depth: u32) -> u64 {
    if let Some(number) = range::constant_of(context, value) {
        return power_of_two(number);
    }
    if depth >= MAX_DEPTH {
        return 1;
    }
    let of = |value| divisor(context, value, depth + 1);
    match context.function.expressions[value] {
        Expression::Binary { op: BinaryOperator::Add | BinaryOperator::Subtract, left, right } => {
            of(left).min(of(right))
        }
        Expression::Binary { op: BinaryOperator::Multiply, left, right } => {
            of(left).saturating_mul(of(right)).min(LARGEST)
        }
        _ => 1,
    }
}

const LARGEST: u64 = 1 << 31;

/// The largest power of two that divides a number.
const fn power_of_two(number: u64) -> u64 {
    if number == 0 { LARGEST } else { 1 << number.trailing_zeros() }
}
