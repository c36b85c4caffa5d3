//! Walks over functions, nested blocks, barriers in them, and jumps out of them.

use naga::{Block, Expression, Function, Module, Span, Statement};

use crate::ir::Value;

/// All functions of a module, entry points last.
pub(crate) fn functions(module: &Module) -> impl Iterator<Item = &Function> {
    let functions = module.functions.iter().map(|(_, function)| function);
    functions.chain(module.entry_points.iter().map(|entry| &entry.function))
}

/// [`functions`], to be changed.
pub(crate) fn functions_mut(module: &mut Module) -> impl Iterator<Item = &mut Function> {
    let functions = module.functions.iter_mut().map(|(_, function)| function);
    functions.chain(module.entry_points.iter_mut().map(|entry| &mut entry.function))
}

/// The blocks inside a statement, in the order of the text.
pub(crate) fn inner(statement: &Statement) -> impl Iterator<Item = &Block> {
    let (two, cases) = match statement {
        Statement::Block(block) => ([Some(block), None], &[][..]),
        Statement::If { accept: first, reject: second, .. }
        | Statement::Loop { body: first, continuing: second, .. } => ([Some(first), Some(second)], &[][..]),
        Statement::Switch { cases, .. } => ([None; 2], &cases[..]),
        _ => ([None; 2], &[][..]),
    };
    two.into_iter().flatten().chain(cases.iter().map(|case| &case.body))
}

/// The blocks inside a statement, to change them.
pub(crate) fn inner_mut(statement: &mut Statement) -> impl Iterator<Item = &mut Block> {
    let (two, cases) = match statement {
        Statement::Block(block) => ([Some(block), None], &mut [][..]),
        Statement::If { accept: first, reject: second, .. }
        | Statement::Loop { body: first, continuing: second, .. } => {
            ([Some(first), Some(second)], &mut [][..])
        }
        Statement::Switch { cases, .. } => ([None, None], &mut cases[..]),
        _ => ([None, None], &mut [][..]),
    };
    two.into_iter().flatten().chain(cases.iter_mut().map(|case| &mut case.body))
}

/// The value by which a statement selects one of its blocks, or leaves them.
pub(crate) const fn control(statement: &Statement) -> Option<Value> {
    match *statement {
        Statement::If { condition, .. } => Some(condition),
        Statement::Switch { selector, .. } => Some(selector),
        Statement::Loop { break_if, .. } => break_if,
        _ => None,
    }
}

/// Visits all statements of a block, outer ones first.
pub(crate) fn each<'b>(block: &'b Block, visit: &mut impl FnMut(&'b Statement)) {
    any(block, &mut |statement| {
        visit(statement);
        false
    });
}

/// Whether any statement of a block, at any depth, satisfies a predicate.
pub(crate) fn any<'b>(block: &'b Block, is: &mut impl FnMut(&'b Statement) -> bool) -> bool {
    block.iter().any(|statement| within(statement, is))
}

/// Whether a statement, or any inside it, satisfies a predicate.
pub(crate) fn within<'b>(statement: &'b Statement, is: &mut impl FnMut(&'b Statement) -> bool) -> bool {
    is(statement) || inner(statement).any(|block| any(block, is))
}

/// Rebuilds a block and those within: `write` appends what takes the place of each statement, whose inner blocks are rebuilt
/// already.
pub(crate) fn rewrite(block: &mut Block, write: &mut impl FnMut(Statement, Span, &mut Block)) {
    let mut new = Block::with_capacity(block.len());
    for (mut statement, span) in std::mem::take(block).span_into_iter() {
        inner_mut(&mut statement).for_each(|inner| rewrite(inner, write));
        write(statement, span, &mut new);
    }
    *block = new;
}

/// Whether a statement is a barrier.
pub(crate) const fn is_barrier(statement: &Statement) -> bool {
    matches!(statement, Statement::ControlBarrier(_) | Statement::WorkGroupUniformLoad { .. })
}

/// Whether all invocations must take part in a statement: a barrier, or an operation on cooperative matrices.
pub(crate) fn is_collective(function: &Function, statement: &Statement) -> bool {
    match statement {
        Statement::Emit(range) => range.clone().any(|value| {
            matches!(
                function.expressions[value],
                Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. }
            )
        }),
        Statement::CooperativeStore { .. } => true,
        other => is_barrier(other),
    }
}

/// Whether a statement exchanges values within a subgroup.
pub(crate) const fn is_of_subgroup(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::SubgroupBallot { .. }
            | Statement::SubgroupGather { .. }
            | Statement::SubgroupCollectiveOperation { .. }
    )
}

/// Whether a block has a barrier of its own; calls do not count.
pub(crate) fn has_barrier(block: &Block) -> bool {
    any(block, &mut is_barrier)
}

/// Whether a block inside a statement has a barrier.
pub(crate) fn contains_barrier(statement: &Statement) -> bool {
    inner(statement).any(has_barrier)
}

/// Whether a statement may return from the function.
pub(crate) fn has_return(statement: &Statement) -> bool {
    within(statement, &mut |statement| matches!(statement, Statement::Return { .. }))
}

/// Whether control never reaches the end of a block.
pub(crate) fn leaves(block: &Block) -> bool {
    match block.last() {
        Some(Statement::Return { .. } | Statement::Break | Statement::Continue | Statement::Kill) => true,
        Some(Statement::Block(inner)) => leaves(inner),
        Some(Statement::If { accept, reject, .. }) => leaves(accept) && leaves(reject),
        _ => false,
    }
}

/// Notes the functions that a body calls, directly or not, in a list by function.
pub(crate) fn note_all_calls(module: &Module, body: &Block) -> Vec<bool> {
    let mut called = vec![false; module.functions.len()];
    note_calls(body, &mut called);
    note_inner_calls(module, &mut called);
    called
}

/// Adds the functions that the called functions call. A function precedes its callers.
pub(crate) fn note_inner_calls(module: &Module, called: &mut [bool]) {
    for (handle, function) in module.functions.iter().rev() {
        if called[handle.index()] {
            note_calls(&function.body, called);
        }
    }
}

/// How far the jumps out of a statement lead, other than returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Skip {
    #[default]
    No,
    /// Past the innermost switch or loop.
    Break,
    /// To the end of the iteration.
    Continue,
}

impl Skip {
    /// The jumps out of a statement.
    pub(crate) fn of(statement: &Statement) -> Self {
        match statement {
            Statement::Break => Self::Break,
            Statement::Continue => Self::Continue,
            Statement::Loop { .. } => Self::No,
            Statement::Switch { .. } => match Self::of_inner(statement) {
                Self::Continue => Self::Continue,
                _ => Self::No,
            },
            other => Self::of_inner(other),
        }
    }

    /// The jumps out of all statements of a block.
    pub(crate) fn of_block(block: &Block) -> Self {
        block.iter().map(Self::of).max().unwrap_or_default()
    }

    fn of_inner(statement: &Statement) -> Self {
        inner(statement).map(Self::of_block).max().unwrap_or_default()
    }
}

/// Marks the functions that a body calls.
pub(crate) fn note_calls(body: &Block, called: &mut [bool]) {
    each(body, &mut |statement| {
        if let Statement::Call { function, .. } = statement {
            called[function.index()] = true;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(statements: Vec<Statement>) -> Block {
        Block::from_vec(statements)
    }

    fn looped(body: Vec<Statement>) -> Statement {
        Statement::Loop { body: block(body), continuing: block(vec![Statement::Kill]), break_if: None }
    }

    fn switch(body: Vec<Statement>) -> Statement {
        let case = |body| naga::SwitchCase { value: naga::SwitchValue::Default, body, fall_through: false };
        let selector = naga::Arena::new().append(Expression::SubgroupBallotResult, Span::UNDEFINED);
        Statement::Switch { selector, cases: vec![case(Block::new()), case(block(body))] }
    }

    #[test]
    fn walks_visit_all_statements_in_order() {
        let all = block(vec![looped(vec![switch(vec![Statement::Break])]), Statement::Continue]);
        let mut names = Vec::new();
        each(&all, &mut |statement| {
            names.extend(format!("{statement:?}").split_whitespace().next().map(str::to_owned));
        });
        assert_eq!(names, ["Loop", "Switch", "Break", "Kill", "Continue"]);
        assert!(any(&all, &mut |statement| matches!(statement, Statement::Kill)));
        assert!(!any(&all, &mut |statement| matches!(statement, Statement::Return { .. })));
    }

    #[test]
    fn jumps_leave_their_own_loop_or_switch() {
        assert_eq!(Skip::of(&switch(vec![Statement::Break])), Skip::No);
        assert_eq!(Skip::of(&switch(vec![Statement::Break, Statement::Continue])), Skip::Continue);
        assert_eq!(Skip::of(&Statement::Block(block(vec![Statement::Break, Statement::Kill]))), Skip::Break);
        assert_eq!(Skip::of(&looped(vec![Statement::Break, Statement::Continue])), Skip::No);
    }
}
