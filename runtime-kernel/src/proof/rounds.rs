//! How often a loop goes round.

use naga::{
    BinaryOperator, Block, Expression, Function, Handle, Literal, LocalVariable, Module, Scalar, Statement,
    TypeInner,
};

use crate::barriers::has_barrier;
use crate::inline::size;

/// Rounds of a loop that is written out.
const ROUNDS: u64 = 16;

/// Expressions of all of them.
const SIZE: u64 = 4000;

/// What a loop of the form `while condition { … }` begins with.
pub(crate) fn condition(body: &Block) -> Option<Handle<Expression>> {
    match body.iter().find(|statement| !matches!(statement, Statement::Emit(_)))? {
        Statement::If { condition, accept, reject }
            if accept.is_empty() && matches!(reject[..], [Statement::Break]) =>
        {
            Some(*condition)
        }
        _ => None,
    }
}

/// Whether a loop is of few rounds that are better written out: then what it reads from work-group memory is at fixed
/// distances from one address, its loads are under way together, and small arrays are registers.
pub(crate) fn is_short(
    (module, function): (&Module, &Function),
    condition: Option<Handle<Expression>>,
    [body, continuing]: [&Block; 2],
) -> bool {
    let expressions = &function.expressions;
    let constant = |value| number(module, &expressions[value]);
    let limit = condition.and_then(|condition| match expressions[condition] {
        Expression::Binary { op: BinaryOperator::Less, right, .. } => constant(right),
        _ => None,
    });
    let step = continuing.iter().find_map(|statement| match *statement {
        Statement::Store { value, .. } => match expressions[value] {
            Expression::Binary { op: BinaryOperator::Add, right, .. } => constant(right),
            _ => None,
        },
        _ => None,
    });
    let (Some(limit), Some(step @ 1..)) = (limit, step) else { return false };
    let rounds = limit.div_ceil(step);
    rounds <= ROUNDS && rounds * size(body) as u64 <= SIZE && !has_barrier(body)
}

/// How often a loop goes round at most, if it counts one variable from a number that is not negative; `start` is what that
/// has before the loop.
pub(crate) fn greatest(
    (module, function): (&Module, &Function),
    condition: Option<Handle<Expression>>,
    continuing: &Block,
    start: impl FnOnce(Handle<LocalVariable>) -> Option<Handle<Expression>>,
) -> Option<u64> {
    let expressions = &function.expressions;
    let variable = |value: Handle<Expression>| match expressions[value] {
        Expression::Load { pointer } => match expressions[pointer] {
            Expression::LocalVariable(variable) => Some(variable),
            _ => None,
        },
        _ => None,
    };
    let Expression::Binary { op: BinaryOperator::Less, left, right } = expressions[condition?] else {
        return None;
    };
    let counter = variable(left)?;
    let step = continuing.iter().find_map(|statement| match *statement {
        Statement::Store { pointer, value } if expressions[pointer] == Expression::LocalVariable(counter) => {
            match expressions[value] {
                Expression::Binary { op: BinaryOperator::Add, left, right }
                    if variable(left) == Some(counter) =>
                {
                    number(module, &expressions[right])
                }
                _ => None,
            }
        }
        _ => None,
    })?;
    let is_unsigned =
        module.types[function.local_variables[counter].ty].inner == TypeInner::Scalar(Scalar::U32);
    let counts = is_unsigned || number(module, &expressions[start(counter)?]).is_some();
    let limit = number(module, &expressions[right]).filter(|_| counts && step > 0)?;
    Some(limit.div_ceil(step))
}

/// Whether there is a loop in a block.
pub(crate) fn has_loop(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Loop { .. } => true,
        Statement::Block(inner) => has_loop(inner),
        Statement::If { accept, reject, .. } => has_loop(accept) || has_loop(reject),
        Statement::Switch { cases, .. } => cases.iter().any(|case| has_loop(&case.body)),
        _ => false,
    })
}

/// The value of a constant that is not negative.
fn number(module: &Module, expression: &Expression) -> Option<u64> {
    match *expression {
        Expression::Literal(Literal::U32(value)) => Some(value.into()),
        Expression::Literal(Literal::I32(value)) => u64::try_from(value).ok(),
        Expression::Constant(constant) => match module.global_expressions[module.constants[constant].init] {
            Expression::Constant(_) => None,
            ref init => number(module, init),
        },
        _ => None,
    }
}
