//! An upper bound of a call's result, for functions that only compute it from their arguments: `fn place(i: u32)
//! -> u32 { return i + i / 32; }`.

use naga::{Expression, Function, Handle, Literal, Module, Scalar, Statement, TypeInner};

use super::constant::literal;
use super::operation::of_binary;
use crate::ir::Value;

/// Longer chains of operators are not analysed.
const MAX_DEPTH: u32 = 8;

/// The greatest result, in u32 arithmetic, of a call whose arguments are at most `arguments`.
pub(super) fn greatest(
    module: &Module,
    function: Handle<Function>,
    arguments: &[Option<u64>],
) -> Option<u64> {
    let function = &module.functions[function];
    let Some(Statement::Return { value: Some(value) }) = function.body.last() else { return None };
    let before = function.body.iter().rev().skip(1);
    let is_alone = before.into_iter().all(|statement| matches!(statement, Statement::Emit(_)));
    if is_alone { upper(module, function, *value, arguments, MAX_DEPTH) } else { None }
}

fn upper(
    module: &Module,
    function: &Function,
    value: Value,
    arguments: &[Option<u64>],
    depth: u32,
) -> Option<u64> {
    let depth = depth.checked_sub(1)?;
    match function.expressions[value] {
        Expression::Literal(_) | Expression::Constant(_) => number(module, function, value),
        Expression::FunctionArgument(index) => {
            let ty = function.arguments[index as usize].ty;
            let is_unsigned = module.types[ty].inner == TypeInner::Scalar(Scalar::U32);
            arguments.get(index as usize).copied().flatten().filter(|_| is_unsigned)
        }
        Expression::Binary { op, left, right } => {
            let constant = number(module, function, right);
            let upper = |side| upper(module, function, side, arguments, depth);
            // If a side is unknown, the operation may not be one on u32.
            let (left, right) = (upper(left)?, upper(right)?);
            of_binary(&TypeInner::Scalar(Scalar::U32), op, (Some(left), Some(right)), constant)
        }
        _ => None,
    }
}

fn number(module: &Module, function: &Function, value: Value) -> Option<u64> {
    match literal(module, &function.expressions, value) {
        Some(Literal::U32(value)) => Some(value.into()),
        _ => None,
    }
}
