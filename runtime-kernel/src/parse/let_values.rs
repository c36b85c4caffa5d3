//! Keeps naga's validator from judging values that are not constants as if they were (gfx-rs/wgpu 4385 and 9274 are about the constants
//! themselves): those of `let`, and vectors of which only a part is constant. `let i = 3u; x[i]`, `let z = 0; 7 / z`,
//! `let s = 33u; 1u << s` and `v / vec2(0, x)` are computed when the kernel runs, where each of them has a meaning.

use naga::{BinaryOperator as Op, Expression, Function, Module, ScalarKind, TypeInner};

use crate::ir::Value;
use crate::ir::blocks::functions_mut;
use crate::ir::operands::operands;
use crate::ir::rebuild::{Change, Rebuild};

/// Hides the indices, divisors and shift amounts that naga takes for constants; `false` if there are none. For modules that
/// the validator has refused: what is hidden cannot be proven in range either.
pub(super) fn hide(module: &mut Module) -> bool {
    let kinds = Kinds::of(module);
    let mut changed = false;
    for function in functions_mut(module) {
        let hidden = Hidden::of(function, &kinds);
        if hidden.kinds.iter().any(Option::is_some)
            && let Ok(new) = Rebuild::function(function, &hidden)
        {
            *function = new;
            changed = true;
        }
    }
    changed
}

/// The integer types of a module's types and constants.
struct Kinds {
    types: Vec<Option<ScalarKind>>,
    constants: Vec<Option<ScalarKind>>,
}

impl Kinds {
    fn of(module: &Module) -> Self {
        let kind = |inner: &TypeInner| {
            inner.scalar_kind().filter(|kind| matches!(kind, ScalarKind::Sint | ScalarKind::Uint))
        };
        let types: Vec<_> = module.types.iter().map(|(_, ty)| kind(&ty.inner)).collect();
        let constants = module.constants.iter().map(|(_, constant)| types[constant.ty.index()]).collect();
        Self { types, constants }
    }
}

/// The operands of a function to hide.
struct Hidden {
    /// By expression with such an operand: the operand's type.
    kinds: Vec<Option<ScalarKind>>,
}

impl Hidden {
    fn of(function: &Function, kinds: &Kinds) -> Self {
        // By expression: whether WGSL has it computed at run time, and its type if naga looks into it.
        let mut known: Vec<(bool, Option<ScalarKind>)> = Vec::with_capacity(function.expressions.len());
        let mut hidden = Vec::with_capacity(function.expressions.len());
        for (value, expression) in function.expressions.iter() {
            let operand = hidden_operand(expression).map(|operand| known[operand.index()]);
            hidden.push(operand.and_then(|(runs, kind)| kind.filter(|_| runs)));
            let kind = match expression {
                Expression::Literal(literal) => literal_kind(*literal),
                Expression::ZeroValue(ty) | Expression::Compose { ty, .. } => kinds.types[ty.index()],
                Expression::Constant(constant) => kinds.constants[constant.index()],
                Expression::Splat { value, .. } => known[value.index()].1,
                _ => None,
            };
            let is_composed = matches!(expression, Expression::Compose { .. });
            let mut parts = operands(expression).map(|part| known[part.index()]);
            let runs = parts.any(|(runs, kind)| runs || (is_composed && kind.is_none()));
            known.push((runs || function.named_expressions.contains_key(&value), kind));
        }
        Self { kinds: hidden }
    }
}

/// The operand of an expression whose value naga judges.
const fn hidden_operand(expression: &Expression) -> Option<Value> {
    match *expression {
        Expression::Access { index, .. } => Some(index),
        Expression::Binary {
            op: Op::Divide | Op::Modulo | Op::ShiftLeft | Op::ShiftRight, right, ..
        } => Some(right),
        _ => None,
    }
}

fn literal_kind(literal: naga::Literal) -> Option<ScalarKind> {
    Some(literal.scalar().kind).filter(|kind| matches!(kind, ScalarKind::Sint | ScalarKind::Uint))
}

impl Change for Hidden {
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value> {
        let kind = self.kinds[old.index()]?;
        let expression = new.source.expressions[old].clone();
        // A bit cast to its own type changes nothing, and is none of the constants that naga looks for.
        let mut hide = |operand| {
            let expr = new.value(operand);
            new.append(Expression::As { expr, kind, convert: None })
        };
        let expression = match expression {
            Expression::Access { base, index } => {
                let index = hide(index);
                Expression::Access { base: new.value(base), index }
            }
            Expression::Binary { op, left, right } => {
                let right = hide(right);
                Expression::Binary { op, left: new.value(left), right }
            }
            _ => return None,
        };
        Some(new.append(expression))
    }
}
