//! The expressions that each piece of a schedule evaluates: where they get a name, or where they are printed inline.

use std::collections::BTreeSet;

use naga::{
    AtomicFunction, Block, Expression, Function, GatherMode, Handle, LocalVariable, Module, Statement,
};

use super::super::schedule::Schedule;
use super::super::schedule::regions::{Condition, Step};
use crate::analysis::proof::FunctionContext;
use crate::ir::operands::operands;

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
    pub(super) evaluated: BTreeSet<Handle<Expression>>,
    /// Names that it reads.
    pub(super) named: BTreeSet<Handle<Expression>>,
    /// Names that it defines.
    pub(super) defined: BTreeSet<Handle<Expression>>,
    /// Variables that it reads or writes, in whole or in part.
    pub(super) variables: BTreeSet<Handle<LocalVariable>>,
    /// Variables that it writes.
    pub(super) written: BTreeSet<Handle<LocalVariable>>,
    pub(super) returns: bool,
    /// Whether it has a call or an atomic operation.
    pub(super) calls: bool,
}

impl<'v, 'a> Evaluated<'v, 'a> {
    pub(super) const fn new(schedule: &'v Schedule, context: FunctionContext<'a>) -> Self {
        Self { schedule, module: context.module, function: context.function, context }
    }

    pub(super) fn is_named(&self, value: Handle<Expression>) -> bool {
        self.schedule.named.get(value.index()).copied().unwrap_or(false)
    }

    /// What a region evaluates.
    pub(super) fn region(&self, index: usize) -> Uses {
        let mut uses = Uses::default();
        let region = &self.schedule.steps.regions[index];
        self.block(&region.body, &mut uses);
        region.agreed.iter().for_each(|&value| self.value(value, &mut uses));
        uses
    }

    /// What a statement evaluates, including statements inside it.
    pub(super) fn statement(&self, statement: &Statement) -> Uses {
        let mut uses = Uses::default();
        self.add(statement, &mut uses);
        uses
    }

    /// What a condition evaluates at its use.
    pub(super) fn condition(&self, condition: Handle<Expression>) -> Uses {
        let mut uses = Uses::default();
        self.value(condition, &mut uses);
        uses
    }

    /// What the definition of a name evaluates.
    pub(super) fn definition(&self, value: Handle<Expression>) -> Uses {
        let mut uses = Uses::default();
        self.define(value, &mut uses);
        uses
    }

    fn block(&self, block: &Block, uses: &mut Uses) {
        block.iter().for_each(|statement| self.add(statement, uses));
    }

    fn add(&self, statement: &Statement, uses: &mut Uses) {
        use Statement as S;
        match statement {
            S::Emit(range) => {
                range
                    .clone()
                    .filter(|&value| self.is_named(value))
                    .for_each(|value| self.define(value, uses));
            }
            S::Block(block) => self.block(block, uses),
            S::If { condition, accept, reject } => {
                self.value(*condition, uses);
                self.block(accept, uses);
                self.block(reject, uses);
            }
            S::Switch { selector, cases } => {
                self.value(*selector, uses);
                cases.iter().for_each(|case| self.block(&case.body, uses));
            }
            S::Loop { body, continuing, break_if } => {
                self.block(body, uses);
                self.block(continuing, uses);
                break_if.iter().for_each(|&value| self.value(value, uses));
            }
            S::Return { value } => {
                uses.returns = true;
                value.iter().for_each(|&value| self.value(value, uses));
            }
            S::Store { pointer, value } => {
                self.value(*pointer, uses);
                self.value(*value, uses);
                uses.written.extend(self.variable(*pointer));
            }
            S::Atomic { pointer, fun, value, result } => {
                self.value(*pointer, uses);
                self.value(*value, uses);
                if let AtomicFunction::Exchange { compare: Some(compare) } = fun {
                    self.value(*compare, uses);
                }
                uses.written.extend(self.variable(*pointer));
                uses.defined.extend(*result);
                uses.calls = true;
            }
            S::Call { arguments, result, .. } => {
                for &argument in arguments {
                    self.value(argument, uses);
                    if self.context.is_pointer(argument) {
                        uses.written.extend(self.variable(argument));
                    }
                }
                uses.defined.extend(*result);
                uses.calls = true;
            }
            S::WorkGroupUniformLoad { pointer, result } => {
                self.value(*pointer, uses);
                uses.defined.insert(*result);
            }
            other => self.subgroup(other, uses),
        }
    }

    fn subgroup(&self, statement: &Statement, uses: &mut Uses) {
        match statement {
            Statement::SubgroupBallot { result, predicate } => {
                predicate.iter().for_each(|&value| self.value(value, uses));
                uses.defined.insert(*result);
            }
            Statement::SubgroupCollectiveOperation { argument, result, .. } => {
                self.value(*argument, uses);
                uses.defined.insert(*result);
            }
            Statement::SubgroupGather { mode, argument, result } => {
                self.value(*argument, uses);
                if let GatherMode::Broadcast(index)
                | GatherMode::Shuffle(index)
                | GatherMode::ShuffleDown(index)
                | GatherMode::ShuffleUp(index)
                | GatherMode::ShuffleXor(index)
                | GatherMode::QuadBroadcast(index) = mode
                {
                    self.value(*index, uses);
                }
                uses.defined.insert(*result);
            }
            _ => {}
        }
    }

    fn define(&self, value: Handle<Expression>, uses: &mut Uses) {
        uses.defined.insert(value);
        self.evaluate(value, uses);
    }

    fn value(&self, value: Handle<Expression>, uses: &mut Uses) {
        if self.is_named(value) {
            uses.named.insert(value);
        } else {
            self.evaluate(value, uses);
        }
    }

    fn evaluate(&self, value: Handle<Expression>, uses: &mut Uses) {
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
    pub(super) fn variable(&self, mut pointer: Handle<Expression>) -> Option<Handle<LocalVariable>> {
        loop {
            match self.function.expressions[pointer] {
                Expression::LocalVariable(variable) => return Some(variable),
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => pointer = base,
                _ => return None,
            }
        }
    }

    /// Visits all steps, including those inside rows; `depth` counts the enclosing branches and loops, `looped` is
    /// set inside a loop.
    pub(super) fn each<'s>(
        &self,
        steps: &'s [Step],
        around: Around,
        visit: &mut impl FnMut(&'s Step, Around),
    ) {
        for step in steps {
            visit(step, around);
            let inner = Around { depth: around.depth + 1, ..around };
            match step {
                Step::Rows(rows) => self.each(&rows.steps, around, visit),
                Step::If { accept, reject, .. } => {
                    self.each(accept, inner, visit);
                    self.each(reject, inner, visit);
                }
                Step::Switch { cases, .. } => {
                    cases.iter().for_each(|(_, _, steps)| self.each(steps, inner, visit));
                }
                Step::Loop { body, continuing, .. } => {
                    let inner = Around { looped: true, ..inner };
                    self.each(body, inner, visit);
                    self.each(continuing, inner, visit);
                }
                _ => {}
            }
        }
    }

    /// All steps of the schedule.
    pub(super) fn all<'s>(&'s self, visit: &mut impl FnMut(&'s Step, Around)) {
        self.each(&self.schedule.steps.steps, Around::default(), visit);
    }
}

/// The context of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) depth: u32,
    pub(super) looped: bool,
}

/// The condition that selects a step's blocks.
pub(super) fn conditions(step: &Step) -> Option<Condition> {
    match step {
        Step::If { condition, .. } | Step::Switch { selector: condition, .. } => Some(*condition),
        Step::Loop { break_if, .. } => *break_if,
        _ => None,
    }
}
