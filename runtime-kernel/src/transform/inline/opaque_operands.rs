//! Hides constant operands that naga would reject.

use naga::{BinaryOperator as Op, Block, Expression, Literal, ScalarKind};
use runtime_core::Result;

use super::body::{Frame, Rebuild, push_emit};
use crate::ir::Value;

impl Rebuild<'_> {
    /// Hides a divisor of zero, or a shift by more than the width, which the program computes and inlining made
    /// constant: naga rejects such constants. Returns the operand and its value as known elsewhere.
    pub(super) fn make_opaque(
        &mut self,
        frame: &mut Frame<'_>,
        old: Value,
        out: &mut Block,
    ) -> Result<Option<(Value, Value)>> {
        let Expression::Binary { op, right, .. } = frame.source.expressions[old] else { return Ok(None) };
        let refused = match op {
            Op::Divide | Op::Modulo => |value: u64| value == 0,
            Op::ShiftLeft | Op::ShiftRight => |value: u64| value >= 32,
            _ => return Ok(None),
        };
        let kind = frame.info[right].ty.inner_with(&self.module.types).scalar_kind();
        let seen = self.value(frame, right)?;
        let Some(kind @ (ScalarKind::Sint | ScalarKind::Uint)) = kind else { return Ok(None) };
        if !self.has_constant(seen, refused) {
            return Ok(None);
        }
        let opaque = self.append(Expression::As { expr: seen, kind, convert: None });
        push_emit(out, opaque, frame.source.expressions.get_span(old));
        frame.map[right.index()] = Some(opaque);
        Ok(Some((right, seen)))
    }

    /// Whether an integer expression, or a component of it, is a constant that satisfies a predicate.
    fn has_constant(&self, new: Value, sort: fn(u64) -> bool) -> bool {
        match self.out.expressions[new] {
            Expression::ZeroValue(_) => sort(0),
            Expression::Splat { value, .. } => self.has_constant(value, sort),
            Expression::Compose { ref components, .. } => {
                components.iter().any(|&component| self.has_constant(component, sort))
            }
            _ => match self.literal(new) {
                Some(Literal::U32(value)) => sort(value.into()),
                Some(Literal::I32(value)) => sort(i64::from(value).cast_unsigned()),
                Some(Literal::U64(value)) => sort(value),
                Some(Literal::I64(value)) => sort(value.cast_unsigned()),
                _ => false,
            },
        }
    }
}
