//! Unrolling of loops in entry points, and the variables of known value that it depends on.

use naga::valid::GlobalUse;
use naga::{Block, Expression, Handle, Literal, LocalVariable};

use super::body::{Frame, Rebuild};
use crate::analysis::proof::constant;
use crate::analysis::proof::unrolling::copied_loop;
use crate::ir::variables::{Root, assigned, root};

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
        let known = |variable: Handle<LocalVariable>| self.known.value(*frame.locals.get(variable.index())?);
        let (counted, trips) = copied_loop((self.module, frame.source), &known, [body, continuing])?;
        let counter = frame.locals[counted.counter.index()];
        Some(UnrollPlan { trips, exit: counted.exit, counter })
    }

    /// The literal behind a new expression.
    pub(super) fn literal(&self, new: Handle<Expression>) -> Option<Literal> {
        constant::literal(self.module, &self.out.expressions, new)
    }

    /// Forgets the values of the variables that blocks of a function may assign, and of the private variables that
    /// the function or its callees assign anywhere: some of these became variables here only after the blocks were
    /// copied.
    pub(super) fn forget_assigned(&mut self, frame: &Frame<'_>, blocks: &[&Block]) {
        if self.known.is_empty() {
            return;
        }
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
