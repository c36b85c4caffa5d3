//! Loops with constant bounds: each iteration of each invocation becomes an activation of its own.

use naga::{Block, Expression, Literal, Module, Statement};

use super::activation::{Activations, Name, Scope};
use super::column::{Column, Kind};
use crate::analysis::proof::trip_count::{loop_head, loop_step};
use crate::ir::blocks::{self, Skip, is_barrier};
use crate::ir::variables::{assigned, loaded};
use crate::ir::{Local, Value};

/// Maximum number of activations of a loop.
const MAX_ACTIVATIONS: usize = 1 << 13;

/// A loop in its block.
#[derive(Clone, Copy)]
pub(super) struct Loop<'a> {
    /// The statements before it in its block.
    pub(super) before: &'a [Statement],
    pub(super) body: &'a Block,
    pub(super) continuing: &'a Block,
    pub(super) break_if: Option<Value>,
}

impl Loop<'_> {
    /// The activations of all iterations, if the trip count follows from a counter with constant bounds and
    /// nothing else ends the loop; `Some(None)` if there are none. `next` is the number of the next activation.
    pub(super) fn iterations(
        self,
        scope: &mut Scope<'_>,
        active: &Activations,
        next: &mut u32,
    ) -> Option<Option<Activations>> {
        let (exit, condition) = loop_head(self.body)?;
        let (counter, step) = loop_step(scope.function, self.continuing, &mut Vec::new())?;
        let ends = matches!(self.continuing.last(), Some(Statement::Store { .. } | Statement::Block(_)));
        if self.break_if.is_some() || !ends || !self.only_the_counter_ends_it(scope, exit, counter) {
            return None;
        }
        let start = self.start(scope, counter)?;
        self.note_loads(scope, counter);
        let name = Name::Local(scope.depth, counter);
        let mut current = match start {
            Start::Stored(value) => scope.value(active, value)?,
            Start::Initial(value) => Column::Same(value),
        };
        let (mut iterations, mut count, mut iteration) = (Vec::new(), 0, active.clone());
        loop {
            iteration.know(name, current);
            match scope.value(&iteration, condition)? {
                Column::Same(Literal::Bool(true)) => {}
                Column::Same(Literal::Bool(false)) => break,
                Column::Each(Kind::Bool, truths) => match iteration.keep(&truths, true) {
                    Some(those) => iteration = those,
                    None => break,
                },
                _ => return None,
            }
            count += iteration.len();
            if count > MAX_ACTIVATIONS || !scope.spend(iteration.len()) {
                return None;
            }
            current = scope.value(&iteration, step)?;
            iterations.push(iteration.clone());
            iteration.forget_last();
        }
        if iterations.is_empty() { Some(None) } else { Activations::joined(&iterations, next).map(Some) }
    }

    /// Whether the body has no barrier and no jump out of it, and does not assign the counter.
    fn only_the_counter_ends_it(self, scope: &Scope<'_>, exit: usize, counter: Local) -> bool {
        let mut changes = false;
        assigned(scope.function, self.body, &mut |variable| changes |= variable == counter);
        let jumps = |statement: &Statement| Skip::of(statement) != Skip::No;
        let returns = |statement: &Statement| matches!(statement, Statement::Return { .. } | Statement::Kill);
        !changes
            && !self.body.iter().enumerate().any(|(place, statement)| place != exit && jumps(statement))
            && !blocks::any(self.body, &mut |statement| returns(statement))
            && !waits(scope.module, self.body)
    }

    /// The initial value of the counter.
    fn start(self, scope: &Scope<'_>, counter: Local) -> Option<Start> {
        let last = self.before.iter().rfind(|statement| !matches!(statement, Statement::Emit(_)));
        if let Some(&Statement::Store { pointer, value }) = last
            && scope.function.expressions[pointer] == Expression::LocalVariable(counter)
        {
            return Some(Start::Stored(value));
        }
        // Nothing but the loop assigns it, and the loop is reached once: otherwise it would not start from there
        // again.
        let mut stores = 0;
        assigned(scope.function, &scope.function.body, &mut |variable| {
            stores += u32::from(variable == counter);
        });
        let is_outermost = scope.function.body.iter().any(|statement| self.is_within(statement));
        (stores == 1 && is_outermost).then(|| scope.initial(counter)).flatten().map(Start::Initial)
    }

    /// Whether it is the statement, or one inside a plain block.
    fn is_within(self, statement: &Statement) -> bool {
        match statement {
            Statement::Loop { body, .. } => std::ptr::eq(body, self.body),
            Statement::Block(inner) => inner.iter().any(|statement| self.is_within(statement)),
            _ => false,
        }
    }

    /// A value of the counter loaded outside the loop is not its value in an iteration.
    fn note_loads(self, scope: &mut Scope<'_>, counter: Local) {
        let function = scope.function;
        for block in [self.body, self.continuing] {
            blocks::each(block, &mut |statement| {
                if let Statement::Emit(range) = statement {
                    let own = range.clone().filter(|&handle| loaded(function, handle) == Some(counter));
                    scope.loads.extend(own);
                }
            });
        }
    }
}

/// The start of a counter.
#[derive(Clone, Copy)]
enum Start {
    Stored(Value),
    Initial(Literal),
}

/// Whether a block has a barrier, or calls a function that has one.
pub(super) fn waits(module: &Module, block: &Block) -> bool {
    blocks::any(block, &mut |statement| match statement {
        Statement::Call { function, .. } => waits(module, &module.functions[*function].body),
        other => is_barrier(other),
    })
}
