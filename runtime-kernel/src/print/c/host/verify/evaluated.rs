//! The expressions that each piece of a schedule evaluates: where they get a name, or where they are printed inline.

use std::collections::BTreeSet;

use naga::{Block, Expression, Function, Module, Statement};

use super::super::schedule::Schedule;
use super::super::schedule::steps::Step;
use crate::analysis::proof::FunctionContext;
use crate::ir::operands::{operands, used_by};
use crate::ir::variables::root;
use crate::ir::{Local, Value, blocks};

/// A schedule and the function that it schedules.
pub(super) struct Evaluated<'v, 'a> {
    pub(super) schedule: &'v Schedule,
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    pub(super) context: FunctionContext<'a>,
}

/// What a piece of a schedule evaluates.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Expressions evaluated there: definitions of names, and expressions printed in place.
    pub(super) evaluated: BTreeSet<Value>,
    /// Names that it reads.
    pub(super) named: BTreeSet<Value>,
    /// Names that it defines.
    pub(super) defined: BTreeSet<Value>,
    /// Variables that it reads or writes, in whole or in part.
    pub(super) variables: BTreeSet<Local>,
    /// Variables that it writes.
    pub(super) written: BTreeSet<Local>,
    pub(super) returns: bool,
    /// Whether it has a call or an atomic operation.
    pub(super) calls: bool,
}

impl<'v, 'a> Evaluated<'v, 'a> {
    pub(super) const fn new(schedule: &'v Schedule, context: FunctionContext<'a>) -> Self {
        Self { schedule, module: context.module, function: context.function, context }
    }

    pub(super) fn is_named(&self, value: Value) -> bool {
        self.schedule.named.get(value.index()).copied().unwrap_or(false)
    }

    /// What a region evaluates.
    pub(super) fn region(&self, index: usize) -> Uses {
        let mut uses = Uses::default();
        let region = &self.schedule.steps.regions[index];
        self.block(&region.body, &mut uses);
        region.uniform_values.iter().for_each(|&value| self.value(value, &mut uses));
        uses
    }

    /// What a statement evaluates, including statements inside it.
    pub(super) fn statement(&self, statement: &Statement) -> Uses {
        let mut uses = Uses::default();
        self.add(statement, &mut uses);
        uses
    }

    /// What a condition evaluates at its use.
    pub(super) fn condition(&self, condition: Value) -> Uses {
        let mut uses = Uses::default();
        self.value(condition, &mut uses);
        uses
    }

    /// What the definition of a name evaluates.
    pub(super) fn definition(&self, value: Value) -> Uses {
        let mut uses = Uses::default();
        self.define(value, &mut uses);
        uses
    }

    fn block(&self, block: &Block, uses: &mut Uses) {
        block.iter().for_each(|statement| self.add(statement, uses));
    }

    fn add(&self, statement: &Statement, uses: &mut Uses) {
        if let Statement::Emit(range) = statement {
            range.clone().filter(|&value| self.is_named(value)).for_each(|value| self.define(value, uses));
        }
        let (used, result) = used_by(statement);
        used.into_iter().for_each(|value| self.value(value, uses));
        blocks::inner(statement).for_each(|block| self.block(block, uses));
        uses.defined.extend(result);
        uses.returns |= matches!(statement, Statement::Return { .. });
        uses.calls |= matches!(statement, Statement::Atomic { .. } | Statement::Call { .. });
        match statement {
            Statement::Store { pointer, .. } | Statement::Atomic { pointer, .. } => {
                uses.written.extend(self.variable(*pointer));
            }
            Statement::Call { arguments, .. } => {
                let pointers = arguments.iter().filter(|&&argument| self.context.is_pointer(argument));
                uses.written.extend(pointers.filter_map(|&pointer| self.variable(pointer)));
            }
            _ => {}
        }
    }

    fn define(&self, value: Value, uses: &mut Uses) {
        uses.defined.insert(value);
        self.evaluate(value, uses);
    }

    fn value(&self, value: Value, uses: &mut Uses) {
        if self.is_named(value) {
            uses.named.insert(value);
        } else {
            self.evaluate(value, uses);
        }
    }

    fn evaluate(&self, value: Value, uses: &mut Uses) {
        if !uses.evaluated.insert(value) {
            return;
        }
        if let Expression::LocalVariable(variable) = self.function.expressions[value] {
            uses.variables.insert(variable);
        }
        // The length of an array comes from its type or the launch, not from its memory.
        if !matches!(self.function.expressions[value], Expression::ArrayLength(_)) {
            operands(&self.function.expressions[value]).for_each(|operand| self.value(operand, uses));
        }
    }

    /// The local variable that a pointer leads into.
    pub(super) fn variable(&self, pointer: Value) -> Option<Local> {
        root(self.function, pointer).local()
    }

    /// All steps of the schedule, including those inside rows, with what is around each.
    pub(super) fn all(&self) -> Vec<(&'v Step, Around)> {
        fn add<'s>(steps: &'s [Step], around: Around, found: &mut Vec<(&'s Step, Around)>) {
            for step in steps {
                found.push((step, around));
                let depth = around.depth + u32::from(!matches!(step, Step::Rows(_)));
                let looped = around.looped || matches!(step, Step::Loop { .. });
                step.inner().for_each(|inner| add(inner, Around { depth, looped }, found));
            }
        }
        let mut found = Vec::new();
        add(&self.schedule.steps.steps, Around::default(), &mut found);
        found
    }
}

/// The context of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) depth: u32,
    pub(super) looped: bool,
}
