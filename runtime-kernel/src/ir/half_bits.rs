//! Conversions between a word and two `f16` through `f32`. Casts of the bits are faster, and keep the bits of NaNs.

use naga::{Expression, Function, MathFunction, ScalarKind};

use crate::ir::Value;

/// A conversion, with the value in between and the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HalfBits {
    pub(crate) direction: Direction,
    pub(crate) between: Value,
    pub(crate) operand: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `vec2<f16>(unpack2x16float(word))`.
    FromWord,
    /// `pack2x16float(vec2<f32>(pair))`; the pair may be of another type than `f16`.
    ToWord,
}

impl HalfBits {
    /// The conversion whose result is `expression`.
    pub(crate) fn of(function: &Function, expression: Value) -> Option<Self> {
        let (direction, between) = match function.expressions[expression] {
            Expression::As { expr, kind: ScalarKind::Float, convert: Some(2) } => (Direction::FromWord, expr),
            Expression::Math { fun: MathFunction::Pack2x16float, arg, .. } => (Direction::ToWord, arg),
            _ => return None,
        };
        let operand = match (direction, &function.expressions[between]) {
            (Direction::FromWord, Expression::Math { fun: MathFunction::Unpack2x16float, arg, .. }) => *arg,
            (Direction::ToWord, Expression::As { expr, kind: ScalarKind::Float, convert: Some(4) }) => *expr,
            _ => return None,
        };
        Some(Self { direction, between, operand })
    }
}
