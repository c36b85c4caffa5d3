//! Verifies that every statement is where the program has it, and that statements which run ahead of others may do
//! so.
//!
//! The function's body and the tree of steps are walked in parallel. Between two control-flow statements that both
//! have is a *slot*: a set of other statements, which must be the same on both sides. Per-invocation statements keep
//! their order within it, and so do those that run once; one that runs once may go ahead of per-invocation ones if
//! these cannot observe it.

use std::collections::BTreeSet;

use naga::{Block, Statement};

use super::super::schedule::steps::{Condition, Step};
use super::Verdict;
use super::evaluated::{Evaluated, Uses};
use crate::ir::{Value, blocks};

/// Maximum number of pairs of statements in one slot; a schedule beyond it counts as not verified.
const MAX_PAIRS: usize = 1 << 20;

/// A statement other than uniform control flow, or one expression of an `Emit`.
type Key = (u32, Option<Value>);

/// Its occurrence in the schedule.
#[derive(Clone, Debug)]
struct Leaf {
    key: Key,
    statement: Statement,
    once: bool,
}

struct Walk<'w, 'v, 'a> {
    on: &'w Evaluated<'v, 'a>,
    /// Numbers of the statements that are leaves of the schedule.
    leaves: BTreeSet<u32>,
    regions: BTreeSet<usize>,
}

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    let mut walk = Walk { on, leaves: BTreeSet::new(), regions: BTreeSet::new() };
    for (step, _) in on.all() {
        match step {
            Step::Once(shared) => walk.leaves.extend(&shared.numbers),
            Step::Lanes(region) => {
                ensure!(walk.regions.insert(*region), "region {region} runs twice")?;
                let known = on.schedule.steps.regions.get(*region);
                walk.leaves.extend(known.iter().flat_map(|region| &region.numbers));
            }
            _ => {}
        }
    }
    ensure!(walk.regions.len() == on.schedule.steps.regions.len(), "a region is left out")?;
    let steps = flattened(&on.schedule.steps.steps);
    walk.block(&numbered(&on.function.body, &mut 0), &steps)
}

/// The statements of a block with their numbers; plain inner blocks are flattened.
fn numbered<'b>(block: &'b Block, next: &mut u32) -> Vec<(u32, &'b Statement)> {
    let mut found = Vec::with_capacity(block.len());
    for statement in block {
        let number = *next;
        *next += 1;
        match statement {
            Statement::Block(inner) => found.extend(numbered(inner, next)),
            other => {
                found.push((number, other));
                *next += size(other);
            }
        }
    }
    found
}

/// The number of statements inside a statement.
fn size(statement: &Statement) -> u32 {
    let mut count = 0;
    blocks::inner(statement).for_each(|block| blocks::each(block, &mut |_| count += 1));
    count
}

/// The steps without the rows around them.
fn flattened(steps: &[Step]) -> Vec<&Step> {
    let mut found = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::Rows(rows) => found.extend(flattened(&rows.steps)),
            other => found.push(other),
        }
    }
    found
}

impl Walk<'_, '_, '_> {
    fn block(&self, statements: &[(u32, &Statement)], steps: &[&Step]) -> Verdict {
        let mut steps = steps.iter().copied().peekable();
        let mut slot = Vec::new();
        for &(number, statement) in statements {
            match statement {
                Statement::Emit(range) => {
                    let named = range.clone().filter(|&value| self.on.is_named(value));
                    slot.extend(named.map(|value| (number, Some(value))));
                }
                Statement::MemoryBarrier(_) => {}
                Statement::WorkGroupUniformLoad { .. } => {
                    self.slot(&mut slot, &mut steps)?;
                    self.barrier(steps.next(), number)?;
                    slot.push((number, None));
                    self.slot(&mut slot, &mut steps)?;
                    self.barrier(steps.next(), number)?;
                }
                _ if self.leaves.contains(&number) => slot.push((number, None)),
                control => {
                    let last = self.slot(&mut slot, &mut steps)?;
                    self.control((number, control), steps.next(), last)?;
                }
            }
        }
        self.slot(&mut slot, &mut steps)?;
        ensure!(steps.next().is_none(), "steps that no statement asks for")
    }

    fn barrier(&self, step: Option<&Step>, number: u32) -> Verdict {
        ensure!(matches!(step, Some(Step::Barrier)), "no barrier at statement {number}")
    }

    /// Compares the slot before the next control flow; returns its last region.
    fn slot<'s>(
        &self,
        wanted: &mut Vec<Key>,
        steps: &mut std::iter::Peekable<impl Iterator<Item = &'s Step>>,
    ) -> Result<Option<usize>, String> {
        let (mut found, mut last) = (Vec::new(), None);
        while let Some(step) = steps.next_if(|step| matches!(step, Step::Once(_) | Step::Lanes(_))) {
            match step {
                Step::Once(shared) => {
                    last = None;
                    self.leaves((&shared.body, &shared.numbers), true, &mut found)?;
                }
                Step::Lanes(region) => {
                    last = Some(*region);
                    let region = &self.on.schedule.steps.regions[*region];
                    self.leaves((&region.body, &region.numbers), false, &mut found)?;
                }
                _ => {}
            }
        }
        let mut keys: Vec<Key> = found.iter().map(|leaf| leaf.key).collect();
        keys.sort_unstable();
        let mut wanted = std::mem::take(wanted);
        wanted.sort_unstable();
        ensure!(keys == wanted, "statements {wanted:?} are scheduled as {keys:?}")?;
        for once in [false, true] {
            let keys = found.iter().filter(|leaf| leaf.once == once).map(|leaf| leaf.key);
            ensure!(keys.is_sorted(), "statements have changed places")?;
        }
        self.ahead(&found)?;
        Ok(last)
    }

    /// The statements of a leaf, with the keys of what they define.
    fn leaves(&self, (body, numbers): (&Block, &[u32]), once: bool, found: &mut Vec<Leaf>) -> Verdict {
        ensure!(body.len() == numbers.len(), "a statement without a number")?;
        for (statement, &number) in body.iter().zip(numbers) {
            match statement {
                Statement::Emit(range) => found.extend(range.clone().map(|value| Leaf {
                    key: (number, Some(value)),
                    statement: Statement::Emit(naga::Range::new_from_bounds(value, value)),
                    once,
                })),
                other => found.push(Leaf { key: (number, None), statement: other.clone(), once }),
            }
        }
        Ok(())
    }

    /// Checks the statements that run once before per-invocation ones that precede them in the program.
    fn ahead(&self, found: &[Leaf]) -> Verdict {
        let shared = found.iter().filter(|leaf| leaf.once).count();
        let small = shared * (found.len() - shared) <= MAX_PAIRS;
        ensure!(small, "too many statements to compare")?;
        for (place, shared) in found.iter().enumerate().filter(|(_, leaf)| leaf.once) {
            let passed = found[place..].iter().filter(|leaf| !leaf.once && leaf.key < shared.key);
            let delayed = found[..place].iter().any(|leaf| !leaf.once && leaf.key > shared.key);
            ensure!(!delayed, "{:?} runs too late", shared.key)?;
            let ours = self.on.statement(&shared.statement);
            for leaf in passed {
                self.may_pass(shared, &ours, leaf)?;
            }
        }
        Ok(())
    }

    fn may_pass(&self, shared: &Leaf, ours: &Uses, leaf: &Leaf) -> Verdict {
        let theirs = self.on.statement(&leaf.statement);
        let notices = !ours.written.is_disjoint(&theirs.variables);
        ensure!(!notices, "{:?} writes what {:?} uses", shared.key, leaf.key)?;
        if !jumps(&leaf.statement, 0) {
            return Ok(());
        }
        let trusts = !ours.evaluated.is_disjoint(&self.on.schedule.guarded);
        ensure!(!trusts, "{:?} is unchecked ahead of {:?}", shared.key, leaf.key)?;
        let calm =
            matches!(shared.statement, Statement::Emit(_) | Statement::Store { .. }) || !theirs.returns;
        ensure!(calm, "{:?} may not end ahead of {:?}", shared.key, leaf.key)
    }

    fn control(
        &self,
        (number, statement): (u32, &Statement),
        step: Option<&Step>,
        last: Option<usize>,
    ) -> Verdict {
        let same = |ours: Value, condition: Condition| {
            let (theirs, agreed) = match condition {
                Condition::Once(value) => (value, true),
                Condition::FromRegion(value) => {
                    let regions = &self.on.schedule.steps.regions;
                    (value, last.is_some_and(|last| regions[last].uniform_values.contains(&value)))
                }
            };
            ensure!(ours == theirs, "statement {number} has another condition")?;
            ensure!(agreed, "no item computes the condition of statement {number}")
        };
        let mut next = number + 1;
        match (statement, step) {
            (Statement::ControlBarrier(_), step) => self.barrier(step, number),
            (Statement::Break, Some(Step::Break))
            | (Statement::Continue, Some(Step::Continue))
            | (Statement::Return { .. }, Some(Step::Return)) => Ok(()),
            (
                Statement::If { condition: ours, accept: yes, reject: no },
                Some(Step::If { condition, accept, reject }),
            ) => {
                same(*ours, *condition)?;
                self.block(&numbered(yes, &mut next), &flattened(accept))?;
                self.block(&numbered(no, &mut next), &flattened(reject))
            }
            (Statement::Switch { selector: ours, cases: blocks }, Some(Step::Switch { selector, cases })) => {
                same(*ours, *selector)?;
                ensure!(blocks.len() == cases.len(), "other cases")?;
                for (block, (value, falls, steps)) in blocks.iter().zip(cases) {
                    let alike = block.value == *value && block.fall_through == *falls;
                    ensure!(alike, "another case")?;
                    self.block(&numbered(&block.body, &mut next), &flattened(steps))?;
                }
                Ok(())
            }
            (
                Statement::Loop { body: ours, continuing: after, break_if: until },
                Some(Step::Loop { body, continuing, break_if }),
            ) => {
                self.block(&numbered(ours, &mut next), &flattened(body))?;
                let steps = flattened(continuing);
                self.block(&numbered(after, &mut next), &steps)?;
                let last = match steps.last() {
                    Some(Step::Lanes(region)) => Some(*region),
                    _ => None,
                };
                match (until, break_if) {
                    (None, None) => Ok(()),
                    (Some(ours), Some(condition)) => Self::until((*ours, *condition), last, self, number),
                    _ => Err("a loop with another end".to_owned()),
                }
            }
            _ => Err(format!("statement {number} is not scheduled: {statement:?}")),
        }
    }

    fn until(
        (ours, condition): (Value, Condition),
        last: Option<usize>,
        walk: &Self,
        number: u32,
    ) -> Verdict {
        let good = match condition {
            Condition::Once(value) => value == ours,
            Condition::FromRegion(value) => {
                let regions = &walk.on.schedule.steps.regions;
                value == ours && last.is_some_and(|last| regions[last].uniform_values.contains(&value))
            }
        };
        ensure!(good, "no item computes the end of loop {number}")
    }
}

/// Whether an invocation may leave a statement by a jump out of it; `loops` of its loops are around.
fn jumps(statement: &Statement, loops: u32) -> bool {
    let any = |block: &Block, loops| block.iter().any(|statement| jumps(statement, loops));
    match statement {
        Statement::Return { .. } | Statement::Kill => true,
        Statement::Break | Statement::Continue => loops == 0,
        Statement::Block(block) => any(block, loops),
        Statement::If { accept, reject, .. } => any(accept, loops) || any(reject, loops),
        // A `continue` leaves a switch; treating it as one that does not is conservative.
        Statement::Switch { cases, .. } => {
            cases.iter().any(|case| any(&case.body, loops + 1) || (loops == 0 && continues(&case.body)))
        }
        Statement::Loop { body, continuing, .. } => any(body, loops + 1) || any(continuing, loops + 1),
        _ => false,
    }
}

/// Whether a block has a `continue` for a loop around it.
fn continues(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Continue => true,
        Statement::Block(block) => continues(block),
        Statement::If { accept, reject, .. } => continues(accept) || continues(reject),
        Statement::Switch { cases, .. } => cases.iter().any(|case| continues(&case.body)),
        _ => false,
    })
}
