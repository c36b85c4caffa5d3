//! Restores `a && b` and `a || b`, which naga's front end lowers to branches that assign a variable.

use naga::{Block, Expression, FastHashSet, Statement, UnaryOperator};

use crate::analysis::proof::FunctionContext;
use crate::ir::variables::{loaded, lone_assignment, truth};
use crate::ir::{Local, Value, blocks};

/// A variable that holds the value of a logical operator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logical {
    pub(crate) variable: Local,
    pub(crate) and: bool,
    pub(crate) left: Value,
    pub(crate) left_negated: bool,
    pub(crate) right: Value,
}

impl Logical {
    /// The logical operator that a branch computes, if its right side needs no statement.
    pub(crate) fn of(
        context: FunctionContext<'_>,
        is_named: &dyn Fn(Value) -> bool,
        condition: Value,
        [accept, reject]: [&Block; 2],
    ) -> Option<Self> {
        let function = context.function;
        let assignment = |block: &Block| {
            let start = unnamed_emits(is_named, block, 0)?;
            lone_assignment(function, block).filter(|_| start + 1 == block.len())
        };
        let ((variable, accepted), (other, rejected)) = (assignment(accept)?, assignment(reject)?);
        let (and, left_negated, right) = match (truth(function, accepted), truth(function, rejected)) {
            (_, Some(false)) => (true, false, accepted),
            (_, Some(true)) => (false, true, accepted),
            (Some(true), _) => (false, false, rejected),
            (Some(false), _) => (true, true, rejected),
            _ => return None,
        };
        let (left, left_negated) = match function.expressions[condition] {
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } if !is_named(condition) => {
                (expr, !left_negated)
            }
            _ => (condition, left_negated),
        };
        (variable == other).then_some(Self { variable, and, left, left_negated, right })
    }
}

/// The first statement from `start` on other than `Emit`, if no `Emit` before it defines a named value.
pub(crate) fn unnamed_emits(is_named: &dyn Fn(Value) -> bool, block: &Block, start: usize) -> Option<usize> {
    let mut number = start;
    while let Some(Statement::Emit(range)) = block.get(number) {
        if range.clone().any(is_named) {
            return None;
        }
        number += 1;
    }
    Some(number)
}

/// Unnamed variables that only pass a logical operator's value to the next statement.
pub(crate) fn flags(context: FunctionContext<'_>, is_named: &dyn Fn(Value) -> bool) -> FastHashSet<Local> {
    let mut loads = vec![0; context.function.local_variables.len()];
    for (handle, _) in context.function.expressions.iter() {
        if let Some(variable) = loaded(context.function, handle) {
            loads[variable.index()] += 1;
        }
    }
    let mut found = FastHashSet::default();
    search(context, is_named, &context.function.body, &loads, &mut found);
    found
}

fn search(
    context: FunctionContext<'_>,
    is_named: &dyn Fn(Value) -> bool,
    block: &Block,
    loads: &[u32],
    found: &mut FastHashSet<Local>,
) {
    for (index, statement) in block.iter().enumerate() {
        if let Statement::If { condition, accept, reject } = statement
            && let Some(Logical { variable, .. }) =
                Logical::of(context, is_named, *condition, [accept, reject])
            && context.function.local_variables[variable].name.is_none()
            && loads[variable.index()] == 1
            && is_read_by(context, block.get(index + 1), variable)
        {
            found.insert(variable);
        }
        blocks::inner(statement).for_each(|block| search(context, is_named, block, loads, found));
    }
}

/// Whether the next statement reads the variable.
fn is_read_by(context: FunctionContext<'_>, next: Option<&Statement>, variable: Local) -> bool {
    match next {
        Some(Statement::Emit(range)) => {
            range.clone().any(|expression| loaded(context.function, expression) == Some(variable))
        }
        _ => false,
    }
}
