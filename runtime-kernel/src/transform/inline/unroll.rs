//! Chooses short loops of constant trip count to unroll, and tracks the variables of known value that this needs.

use naga::valid::GlobalUse;
use naga::{Block, Expression, Handle, Literal, LocalVariable, Statement};

use super::body::{Frame, Rebuild};
use super::has_return;
use crate::analysis::proof::constant;
use crate::analysis::proof::trip_count::CountedLoop;
use crate::ir::blocks::has_barrier;
use crate::ir::blocks::{self, Skip};
use crate::ir::variables::{Root, assigned, root};

/// Maximum trip count.
const MAX_TRIPS: u32 = 16;

/// Maximum number of expressions of all iterations together.
const MAX_SIZE: u32 = 800;

/// The cost of a call, in expressions.
const CALL: u32 = 12;

/// A loop to unroll.
pub(super) struct UnrollPlan {
    pub(super) trips: u32,
    /// The position of the branch that leaves the loop.
    pub(super) exit: usize,
    pub(super) counter: Handle<LocalVariable>,
}

impl Rebuild<'_> {
    /// The plan for a loop of the form `for (…; condition; variable = …)` with a known trip count; `None` if it
    /// should not be unrolled.
    pub(super) fn unroll_plan(
        &self,
        frame: &Frame<'_>,
        body: &Block,
        continuing: &Block,
    ) -> Option<UnrollPlan> {
        let loop_ = CountedLoop::of(frame.source, [body, continuing])?;
        let jumps = |statement| Skip::of(statement) != Skip::No || has_return(statement);
        // Each region between barriers becomes loops over the invocations: many of those compile and run slower
        // than a few.
        if has_barrier(body) || body[loop_.exit + 1..].iter().any(jumps) {
            return None;
        }
        let known = |variable: Handle<LocalVariable>| self.known.value(*frame.locals.get(variable.index())?);
        let start = known(loop_.counter)?;
        let trips = loop_.trip_count((self.module, frame.source), (&known, start), MAX_TRIPS)?;
        let (exit, counter) = (loop_.exit, frame.locals[loop_.counter.index()]);
        (trips.saturating_mul(size(body)) <= MAX_SIZE).then_some(UnrollPlan { trips, exit, counter })
    }

    /// The literal behind a new expression.
    pub(super) fn literal(&self, new: Handle<Expression>) -> Option<Literal> {
        constant::literal(self.module, &self.out.expressions, new)
    }

    /// Forgets the values of the variables that blocks of a function may assign, and of the private variables that
    /// the function or its callees assign anywhere: some of these became variables here only after the blocks were
    /// copied.
    pub(super) fn forget_assigned(&mut self, frame: &Frame<'_>, blocks: &[&Block]) {
        let mut changed = Vec::new();
        for block in blocks {
            assigned(frame.source, block, &mut |old| changed.extend(frame.locals.get(old.index())));
        }
        // Variables may also be assigned through pointer arguments.
        changed.extend(frame.arguments.iter().filter_map(|&argument| match root(&self.out, argument) {
            Root::Local(local) => Some(local),
            _ => None,
        }));
        let privates = self.privates.iter();
        changed.extend(
            privates
                .filter(|(global, _)| frame.info[**global].contains(GlobalUse::WRITE))
                .map(|(_, local)| local),
        );
        self.known.forget(&changed);
    }
}

/// The number of expressions that a block evaluates; those in loops count twice.
fn size(block: &Block) -> u32 {
    let sizes = block.iter().map(|statement| {
        let within = blocks::inner(statement).map(size).fold(0, u32::saturating_add);
        match statement {
            Statement::Emit(range) => u32::try_from(range.index_range().len()).unwrap_or(u32::MAX),
            Statement::Loop { .. } => within.saturating_mul(2),
            Statement::Block(_) | Statement::If { .. } | Statement::Switch { .. } => within,
            Statement::Call { .. } => CALL,
            _ => 1,
        }
    });
    sizes.fold(0, u32::saturating_add)
}
