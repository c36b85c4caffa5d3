//! Splits the body of an entry point into code that runs once per work-group and code that runs per invocation.
//!
//! A barrier ends a region. So does uniform control flow that is moved outside the loops over the invocations, which happens
//! if it contains a barrier, and where it makes those loops simple enough to vectorise.

use std::collections::BTreeSet;

use naga::{Block, Expression, Function, Range, Span, Statement};
use runtime_core::Result;

use super::row_schedule::rows;
use super::steps::{Condition, Numbered, Region, Step, Steps};
use super::uniform_code::UniformCode;
use super::uses::{Needs, Uses};
use crate::ir::Value;
use crate::ir::blocks::{self, Skip, contains_barrier};
use crate::ir::operands::{operands, used_by};
use crate::ir::variables::Root;
use crate::program::Program;

/// Splits the body of a function.
///
/// # Errors
/// `Unsupported` for a `continue` of some invocations that more than one region follows.
pub(crate) fn split_into_regions(
    program: &Program,
    function: &Function,
    uniform_code: &UniformCode<'_>,
    uses: &Uses<'_>,
) -> Result<Steps> {
    let mut builder = RegionBuilder {
        program,
        uniform_code,
        uses,
        regions: Vec::new(),
        pending: Region::default(),
        pending_jumps: false,
        pending_needs: (Needs::default(), 0),
        ahead: BTreeSet::new(),
        number: 0,
        loops: 0,
        skip: Skip::No,
    };
    let mut steps = Vec::new();
    builder.block(&function.body, &mut steps)?;
    builder.flush(&mut steps);
    Ok(Steps { steps: rows(steps), regions: builder.regions, ahead: builder.ahead })
}

struct RegionBuilder<'c> {
    program: &'c Program,
    uniform_code: &'c UniformCode<'c>,
    uses: &'c Uses<'c>,
    regions: Vec<Region>,
    pending: Region,
    /// Whether an invocation may jump out of the pending region, or return.
    pending_jumps: bool,
    /// What the first statements of the pending region use, and how many these are.
    pending_needs: (Needs, usize),
    ahead: BTreeSet<Value>,
    /// Number of the next statement.
    number: u32,
    /// Number of enclosing uniform loops.
    loops: u32,
    /// How far some invocations have jumped ahead in earlier regions.
    skip: Skip,
}

impl RegionBuilder<'_> {
    /// Ends the pending region.
    fn flush(&mut self, steps: &mut Vec<Step>) {
        if self.pending.body.is_empty() && self.pending.uniform_values.is_empty() {
            return;
        }
        let mut region = std::mem::take(&mut self.pending);
        self.pending_jumps = false;
        self.pending_needs = (Needs::default(), 0);
        region.repeats = self.loops > 0;
        self.skip = self.skip.max(region.skips);
        steps.push(Step::Lanes(self.regions.len()));
        self.regions.push(region);
    }

    /// Whether the pending region reads a variable.
    fn pending_reads(&mut self, place: Root) -> bool {
        let Root::Local(variable) = place else { return false };
        let (needs, known) = &mut self.pending_needs;
        self.pending.body[*known..].iter().for_each(|statement| self.uses.statement(statement, needs));
        *known = self.pending.body.len();
        self.pending.uniform_values.iter().for_each(|&value| self.uses.value(value, needs));
        needs.reads.contains(&variable)
    }

    fn block(&mut self, block: &Block, steps: &mut Vec<Step>) -> Result<()> {
        for (statement, &span) in block.span_iter() {
            self.statement((statement, span), steps)?;
        }
        Ok(())
    }

    fn statement(&mut self, (statement, span): (&Statement, Span), steps: &mut Vec<Step>) -> Result<()> {
        let number = self.number;
        self.number += 1;
        match statement {
            Statement::Emit(range) => self.emit((range, number), span, steps),
            Statement::Block(block) => self.block(block, steps)?,
            Statement::ControlBarrier(_) => self.cut(span, steps)?,
            Statement::MemoryBarrier(_) => {}
            Statement::WorkGroupUniformLoad { .. } => {
                self.cut(span, steps)?;
                self.simple((statement, number), span, steps)?;
                self.flush(steps);
                steps.push(Step::Barrier);
            }
            // Invocations that have jumped ahead take no part in uniform control flow.
            Statement::If { .. }
            | Statement::Switch { .. }
            | Statement::Loop { .. }
            | Statement::Break
            | Statement::Continue
            | Statement::Return { .. }
                if self.pending.skips != Skip::No && !contains_barrier(statement) =>
            {
                self.simple((statement, number), span, steps)?;
            }
            cut if self.uniform_code.is_group_level(cut) => self.control((cut, span), steps)?,
            simple => self.simple((simple, number), span, steps)?,
        }
        Ok(())
    }

    /// Cuts at a barrier.
    fn cut(&mut self, span: Span, steps: &mut Vec<Step>) -> Result<()> {
        self.flush(steps);
        steps.push(Step::Barrier);
        self.reject_jump_ahead(span)
    }

    /// Everything that invocations jump over must be in the same region.
    fn reject_jump_ahead(&self, span: Span) -> Result<()> {
        if self.skip != Skip::No {
            let what = "in host C, uniform control flow after some invocations have jumped ahead";
            return Err(self.program.unsupported(what, span));
        }
        Ok(())
    }

    /// Named values are evaluated where they are computed; all others are printed at their use.
    fn emit(&mut self, (range, number): (&Range<Expression>, u32), span: Span, steps: &mut Vec<Step>) {
        for handle in range.clone().filter(|&handle| self.uses.is_named(handle)) {
            let emit = Statement::Emit(Range::new_from_bounds(handle, handle));
            if self.uniform_code.is_once(handle) {
                self.note_ahead(&[handle]);
                once(steps, (emit, number), span);
            } else {
                self.pending.body.push(emit, span);
                self.pending.numbers.push(number);
            }
        }
    }

    fn simple(
        &mut self,
        (statement, number): (&Statement, u32),
        span: Span,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        blocks::inner(statement).for_each(|block| blocks::each(block, &mut |_| self.number += 1));
        if self.uniform_code.runs_once(statement) {
            // The pending code of the invocations reads the variable's old value.
            if let Statement::Store { pointer, .. } = statement
                && self.pending_reads(self.uses.root(*pointer))
            {
                self.flush(steps);
            }
            // A function may contain a loop that ends only for arguments that the conditions before it let
            // through.
            if self.pending_jumps
                && self.pending.skips == Skip::No
                && matches!(statement, Statement::Call { .. })
            {
                self.flush(steps);
            }
            self.note_ahead(&used_by(statement).0);
            once(steps, (statement.clone(), number), span);
        } else {
            self.reject_jump_ahead(span)?;
            self.pending.skips = self.pending.skips.max(Skip::of(statement));
            self.pending_jumps |= jumps(statement);
            self.pending.body.push(statement.clone(), span);
            self.pending.numbers.push(number);
        }
        Ok(())
    }

    /// Records expressions that are evaluated before the pending region although it may jump over them.
    fn note_ahead(&mut self, values: &[Value]) {
        let mut pending = if self.pending_jumps { values.to_vec() } else { Vec::new() };
        while let Some(value) = pending.pop() {
            if self.ahead.insert(value) {
                pending.extend(operands(&self.uses.function.expressions[value]));
            }
        }
    }

    /// A condition computed by the group, or by the invocations just before.
    fn condition(&mut self, condition: Value, steps: &mut Vec<Step>) -> Condition {
        if self.uniform_code.is_once(condition) {
            self.flush(steps);
            return Condition::Once(condition);
        }
        self.pending.uniform_values.push(condition);
        self.flush(steps);
        Condition::FromRegion(condition)
    }

    /// Uniform control flow.
    fn control(&mut self, (statement, span): (&Statement, Span), steps: &mut Vec<Step>) -> Result<()> {
        if !matches!(statement, Statement::Break | Statement::Continue | Statement::Return { .. }) {
            self.reject_jump_ahead(span)?;
        }
        let step = match statement {
            Statement::If { condition, accept, reject } => {
                let condition = self.condition(*condition, steps);
                Step::If { condition, accept: self.nested(accept)?, reject: self.nested(reject)? }
            }
            Statement::Switch { selector, cases } => {
                let selector = self.condition(*selector, steps);
                let mut new = Vec::with_capacity(cases.len());
                for case in cases {
                    new.push((case.value, case.fall_through, self.nested(&case.body)?));
                    self.skip = if self.skip == Skip::Break { Skip::No } else { self.skip };
                }
                Step::Switch { selector, cases: new }
            }
            Statement::Loop { body, continuing, break_if } => {
                self.flush(steps);
                self.loops += 1;
                let body = self.nested(body)?;
                self.skip = Skip::No;
                let mut after = Vec::new();
                self.block(continuing, &mut after)?;
                let break_if = break_if.map(|condition| self.condition(condition, &mut after));
                self.flush(&mut after);
                self.loops -= 1;
                Step::Loop { body, continuing: after, break_if }
            }
            Statement::Break => Step::Break,
            Statement::Continue => Step::Continue,
            Statement::Return { .. } => Step::Return,
            other => {
                return Err(self.program.unsupported(format_args!("in host C, {other:?}"), span));
            }
        };
        self.flush(steps);
        steps.push(step);
        Ok(())
    }

    fn nested(&mut self, block: &Block) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        self.block(block, &mut steps)?;
        self.flush(&mut steps);
        Ok(steps)
    }
}

/// Adds a statement that runs once, to the preceding block if there is one.
fn once(steps: &mut Vec<Step>, (statement, number): (Statement, u32), span: Span) {
    if !matches!(steps.last(), Some(Step::Once(_))) {
        steps.push(Step::Once(Numbered::default()));
    }
    if let Some(Step::Once(shared)) = steps.last_mut() {
        shared.body.push(statement, span);
        shared.numbers.push(number);
    }
}

/// Whether an invocation may return in a statement, or jump out of it.
fn jumps(statement: &Statement) -> bool {
    Skip::of(statement) != Skip::No
        || blocks::within(statement, &mut |inner| matches!(inner, Statement::Return { .. } | Statement::Kill))
}
