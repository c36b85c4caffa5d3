//! The operands of expressions and the operands and results of statements: listing and replacing them.

use naga::{AtomicFunction, Expression, Statement};
use runtime_core::{Error, Result};

use super::blocks;
use crate::ir::Value;

/// Replaces every operand of an expression by `value(operand)`.
///
/// # Errors
/// `Unsupported` for expressions that kernels do not use; those of `value`.
pub(crate) fn renew_operands(
    expression: &mut Expression,
    mut value: impl FnMut(Value) -> Result<Value>,
) -> Result<()> {
    let mut renewed = Ok(());
    let known = each_operand(expression, |operand| match value(*operand) {
        Ok(new) => *operand = new,
        Err(error) => renewed = Err(error),
    });
    match known {
        true => renewed,
        false => Err(Error::unsupported(format!("{expression:?} in a compute kernel is not supported"))),
    }
}

/// Replaces every expression that a statement without a block uses by `value(expression)`.
///
/// # Errors
/// Those of `value`.
pub(crate) fn renew_uses(
    statement: &mut Statement,
    mut value: impl FnMut(Value) -> Result<Value>,
) -> Result<()> {
    let mut renewed = Ok(());
    each_use(statement, |operand| match value(*operand) {
        Ok(new) => *operand = new,
        Err(error) => renewed = Err(error),
    });
    renewed
}

/// The values that a statement uses itself, in their order, and its result. Those of inner blocks are not among them.
pub(crate) fn used_by(statement: &Statement) -> (Vec<Value>, Option<Value>) {
    if let Some(condition) = blocks::control(statement) {
        return (vec![condition], None);
    }
    if blocks::inner(statement).next().is_some() {
        return (Vec::new(), None);
    }
    let (mut statement, mut found) = (statement.clone(), Vec::new());
    each_use(&mut statement, |value| found.push(*value));
    (found, result_of(&mut statement).copied())
}

/// Calls `visit` with every operand of an expression; `false` for kinds that compute kernels do not use.
pub(crate) fn each_operand(expression: &mut Expression, mut visit: impl FnMut(&mut Value)) -> bool {
    use naga::Expression as E;
    match expression {
        E::Literal(_)
        | E::Constant(_)
        | E::Override(_)
        | E::ZeroValue(_)
        | E::FunctionArgument(_)
        | E::GlobalVariable(_)
        | E::LocalVariable(_)
        | E::CallResult(_)
        | E::AtomicResult { .. }
        | E::WorkGroupUniformLoadResult { .. }
        | E::SubgroupBallotResult
        | E::SubgroupOperationResult { .. } => {}
        E::Compose { components, .. } => components.iter_mut().for_each(visit),
        E::Access { base, index } => {
            visit(base);
            visit(index);
        }
        E::AccessIndex { base: operand, .. }
        | E::Splat { value: operand, .. }
        | E::Swizzle { vector: operand, .. }
        | E::Load { pointer: operand }
        | E::Unary { expr: operand, .. }
        | E::Relational { argument: operand, .. }
        | E::As { expr: operand, .. }
        | E::ArrayLength(operand) => visit(operand),
        E::Binary { left, right, .. } => {
            visit(left);
            visit(right);
        }
        E::Select { condition, accept, reject } => [condition, accept, reject].into_iter().for_each(visit),
        E::Math { arg, arg1, arg2, arg3, .. } => {
            visit(arg);
            [arg1, arg2, arg3].into_iter().filter_map(Option::as_mut).for_each(visit);
        }
        E::CooperativeLoad { data, .. } => [&mut data.pointer, &mut data.stride].into_iter().for_each(visit),
        E::CooperativeMultiplyAdd { a, b, c } => [a, b, c].into_iter().for_each(visit),
        _ => return false,
    }
    true
}

/// Calls `visit` with every expression that a statement without a block uses, except its results.
pub(crate) fn each_use(statement: &mut Statement, mut visit: impl FnMut(&mut Value)) {
    match statement {
        Statement::If { condition: value, .. }
        | Statement::Switch { selector: value, .. }
        | Statement::Loop { break_if: Some(value), .. } => visit(value),
        Statement::Store { pointer, value } => {
            visit(pointer);
            visit(value);
        }
        Statement::Atomic { pointer, fun, value, .. } => {
            visit(pointer);
            visit(value);
            if let AtomicFunction::Exchange { compare: Some(compare) } = fun {
                visit(compare);
            }
        }
        Statement::WorkGroupUniformLoad { pointer, .. } => visit(pointer),
        Statement::Call { arguments, .. } => arguments.iter_mut().for_each(visit),
        Statement::Return { value } => value.iter_mut().for_each(visit),
        Statement::SubgroupBallot { predicate, .. } => predicate.iter_mut().for_each(visit),
        Statement::SubgroupGather { argument, mode, .. } => {
            visit(argument);
            if let naga::GatherMode::Broadcast(index)
            | naga::GatherMode::Shuffle(index)
            | naga::GatherMode::ShuffleDown(index)
            | naga::GatherMode::ShuffleUp(index)
            | naga::GatherMode::ShuffleXor(index)
            | naga::GatherMode::QuadBroadcast(index) = mode
            {
                visit(index);
            }
        }
        Statement::SubgroupCollectiveOperation { argument, .. } => visit(argument),
        Statement::CooperativeStore { target, data } => {
            [target, &mut data.pointer, &mut data.stride].into_iter().for_each(visit);
        }
        _ => {}
    }
}

/// The expression whose value a statement provides.
pub(crate) fn result_of(statement: &mut Statement) -> Option<&mut Value> {
    match statement {
        Statement::Atomic { result, .. } | Statement::Call { result, .. } => result.as_mut(),
        Statement::WorkGroupUniformLoad { result, .. }
        | Statement::SubgroupBallot { result, .. }
        | Statement::SubgroupGather { result, .. }
        | Statement::SubgroupCollectiveOperation { result, .. } => Some(result),
        _ => None,
    }
}

/// Whether the value of an expression is provided by a statement.
pub(crate) const fn is_result(expression: &Expression) -> bool {
    matches!(
        expression,
        Expression::CallResult(_)
            | Expression::AtomicResult { .. }
            | Expression::WorkGroupUniformLoadResult { .. }
            | Expression::SubgroupBallotResult
            | Expression::SubgroupOperationResult { .. }
    )
}

/// The operands of an expression.
pub(crate) fn operands(expression: &Expression) -> Operands<'_> {
    use naga::Expression as E;
    let few = match *expression {
        E::Compose { ref components, .. } => return Operands { few: [None; 4], next: 4, many: components },
        E::Access { base: a, index: b } | E::Binary { left: a, right: b, .. } => {
            [Some(a), Some(b), None, None]
        }
        E::AccessIndex { base: operand, .. }
        | E::Splat { value: operand, .. }
        | E::Swizzle { vector: operand, .. }
        | E::Load { pointer: operand }
        | E::Unary { expr: operand, .. }
        | E::As { expr: operand, .. }
        | E::Derivative { expr: operand, .. }
        | E::Relational { argument: operand, .. }
        | E::ArrayLength(operand) => [Some(operand), None, None, None],
        E::Select { condition, accept, reject } => [Some(condition), Some(accept), Some(reject), None],
        E::Math { arg, arg1, arg2, arg3, .. } => [Some(arg), arg1, arg2, arg3],
        E::CooperativeLoad { ref data, .. } => [Some(data.pointer), Some(data.stride), None, None],
        E::CooperativeMultiplyAdd { a, b, c } => [Some(a), Some(b), Some(c), None],
        _ => [None; 4],
    };
    Operands { few, next: 0, many: &[] }
}

/// An iterator over the operands of an expression.
pub(crate) struct Operands<'e> {
    few: [Option<Value>; 4],
    next: usize,
    many: &'e [Value],
}

impl Iterator for Operands<'_> {
    type Item = Value;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(&operand) = self.few.get(self.next) {
            self.next += 1;
            return operand;
        }
        let (&first, rest) = self.many.split_first()?;
        self.many = rest;
        Some(first)
    }
}
