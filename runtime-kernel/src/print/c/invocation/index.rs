//! Index arithmetic in signed integers, where it is known not to wrap.
//!
//! An unsigned sum may wrap, so a compiler must recompute `tile[p * 64u + x + 16u]` for every `p`. A signed one may
//! not: the address is then that of `x`, with `p` and the constant as the instruction's offset.

use naga::{BinaryOperator, Expression, Literal, Scalar, TypeInner};
use runtime_core::Result;

use super::environment::Environment;
use super::statement::Printer;
use crate::analysis::proof::bounds::Scope;
use crate::analysis::proof::range;
use crate::ir::Value;
use crate::print::c::form::level;

impl<E: Environment> Printer<'_, '_, E> {
    /// The index of an access.
    pub(crate) fn index_text(&mut self, access: Value, index: Value) -> Result<String> {
        let scope = self.context.bounds.scope(access);
        // Loops over invocations have their own indices.
        if !self.writer.has_loops && self.is_small_sum(scope, index) {
            self.writer.scalar(Scalar::I32)?;
            return self.signed(scope, index, level::ANY);
        }
        self.operand(index, level::ANY)
    }

    /// Whether a value is a sum or product that is printed in place, and no part of it wraps.
    fn is_small_sum(&self, scope: Scope, value: Value) -> bool {
        let Expression::Binary { op, left, right } = self.context.function.expressions[value] else {
            return false;
        };
        let upper =
            |part| range::upper(self.context, scope, part, 0).filter(|&most| i32::try_from(most).is_ok());
        let (Some(left), Some(right)) = (upper(left), upper(right)) else { return false };
        let is_small = match op {
            // If both parts are this small an unsigned sum cannot wrap, so its bound is that of the exact sum.
            BinaryOperator::Add => upper(value).is_some(),
            // A product may have wrapped to a value within its bound.
            BinaryOperator::Multiply => {
                left.checked_mul(right).is_some_and(|most| i32::try_from(most).is_ok())
            }
            _ => false,
        };
        is_small
            && !self.plan.is_named(value)
            && self.environment.known(value).is_none()
            && *self.context.inner(value) == TypeInner::Scalar(Scalar::U32)
    }

    fn signed(&mut self, scope: Scope, value: Value, at_least: u8) -> Result<String> {
        match self.context.function.expressions[value] {
            Expression::Literal(Literal::U32(number)) => Ok(number.to_string()),
            Expression::Binary { op, left, right } if self.is_small_sum(scope, value) => {
                let (sign, own) = match op {
                    BinaryOperator::Add => ("+", level::ADD),
                    _ => ("*", level::MULTIPLY),
                };
                let (left, right) = (self.signed(scope, left, own)?, self.signed(scope, right, own + 1)?);
                let text = format!("{left} {sign} {right}");
                Ok(if own < at_least { format!("({text})") } else { text })
            }
            _ => Ok(format!("(i32){}", self.operand(value, level::UNARY)?)),
        }
    }
}
