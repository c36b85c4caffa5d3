//! Verifies that range checks are hoisted only out of loops whose counter grows by one up to the limit, and whose
//! indices grow with it.
//!
//! As in [`independence`](super::independence), indices are tested numerically: computed from arbitrary numbers for
//! everything that the loop does not change.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use naga::{
    AddressSpace, BinaryOperator as Op, Block, Expression, MathFunction, Scalar, ScalarKind, Statement,
    TypeInner,
};

use super::Verdict;
use super::evaluated::{Evaluated, Uses};
use crate::analysis::proof::trip_count::loop_head;
use crate::analysis::uniformity::constant;
use crate::ir::operands::operands;
use crate::ir::variables::loaded;
use crate::ir::{Value, blocks};
use crate::print::c::invocation::hoisted_checks::{HoistedChecks, PackedSum};

const TRIALS: u64 = 6;

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    on.schedule.hoisted.iter().try_for_each(|(&condition, checks)| {
        let mut loops = Vec::new();
        for region in &on.schedule.steps.regions {
            blocks::each(&region.body, &mut |statement| {
                if let Statement::Loop { body, continuing, break_if: None } = statement
                    && loop_head(body).is_some_and(|(_, own)| own == condition)
                {
                    loops.push((statement.clone(), body.clone(), continuing.clone()));
                }
            });
        }
        let [(statement, body, continuing)] = &loops[..] else {
            return wrong("checks are made before a loop that no item has");
        };
        let uses = on.statement(statement);
        let mut inside = BTreeSet::new();
        note_emitted(body, &mut inside);
        note_emitted(continuing, &mut inside);
        let mut checked = Checked { on, checks, inside, uses, trials: Vec::new() };
        checked.trials = (0..TRIALS)
            .map(|trial| {
                let start = 0x9e37_79b9_u32.wrapping_mul(u32::try_from(trial).unwrap_or_default());
                [0, 1, 7].map(|rounds| Numbers::new(&checked, trial, start.wrapping_add(rounds)))
            })
            .collect();
        checked.verify(condition, body, continuing)
    })
}

fn wrong(what: &str) -> Verdict {
    Err(what.to_owned())
}

fn note_emitted(block: &Block, found: &mut BTreeSet<Value>) {
    blocks::each(block, &mut |statement| {
        if let Statement::Emit(range) = statement {
            found.extend(range.clone());
        }
    });
}

/// A loop, what it computes, and what it uses.
struct Checked<'c, 'v, 'a> {
    on: &'c Evaluated<'v, 'a>,
    checks: &'c HoistedChecks,
    inside: BTreeSet<Value>,
    uses: Uses,
    /// Per trial: the first, second and eighth iteration, from different start values.
    trials: Vec<[Numbers; 3]>,
}

impl Checked<'_, '_, '_> {
    fn verify(&self, condition: Value, body: &Block, continuing: &Block) -> Verdict {
        let function = self.on.function;
        if self.uses.calls || !self.counts(body, continuing) {
            return wrong("a counter is not counted by one");
        }
        let bounded = matches!(function.expressions[condition], Expression::Binary { op: Op::Less, left, right }
            if right == self.checks.limit && self.is_counter(left));
        if !bounded || !self.grows(self.checks.limit, 0) {
            return wrong("a counter is not below the limit");
        }
        for (&access, &index) in &self.checks.accesses {
            let own =
                matches!(function.expressions[access], Expression::Access { index: own, .. } if own == index);
            if !own || !self.inside.contains(&access) || !self.grows(index, 1) {
                return wrong("an index does not grow by one with the counter");
            }
        }
        if self.checks.packed.is_some_and(|sum| !self.is_all(&sum, body)) {
            return wrong("a loop does more than to add dot products of packed bytes");
        }
        let mut pending: Vec<_> =
            self.checks.accesses.values().chain([&self.checks.limit]).copied().collect();
        let mut seen = BTreeSet::new();
        while let Some(value) = pending.pop() {
            if self.inside.contains(&value) && seen.insert(value) {
                if self.on.is_named(value) && !self.checks.values.contains(&value) {
                    return wrong("an index is made of what is not computed before the loop");
                }
                pending.extend(operands(&function.expressions[value]));
            }
        }
        ensure!(
            self.checks.values.iter().all(|&value| self.grown(value).is_some()),
            "a value cannot be computed before the loop"
        )
    }

    /// Whether a packed sum is all that the body assigns.
    fn is_all(&self, sum: &PackedSum, body: &Block) -> bool {
        let function = self.on.function;
        let mut stores = Vec::new();
        blocks::each(body, &mut |statement| match statement {
            Statement::Store { pointer, value } => stores.push(Some((*pointer, *value))),
            Statement::Emit(_) | Statement::Block(_) | Statement::If { .. } | Statement::Break => {}
            _ => stores.push(None),
        });
        let [Some((pointer, value))] = stores[..] else { return false };
        let Expression::Binary { op: Op::Add, left, right } = function.expressions[value] else {
            return false;
        };
        let own = |value| self.inside.contains(&value) && loaded(function, value) == Some(sum.variable);
        let dot = if own(left) { right } else { left };
        let Expression::Math { fun, arg, arg1: Some(arg1), arg2: None, arg3: None } =
            function.expressions[dot]
        else {
            return false;
        };
        let of = |value: Value, access: Value| {
            let word = *self.on.context.inner(value) == TypeInner::Scalar(Scalar::U32);
            word && self.inside.contains(&value)
                && self.checks.accesses.contains_key(&access)
                && matches!(function.expressions[value], Expression::Load { pointer } if pointer == access)
        };
        let [a, b] = sum.operands;
        self.on.variable(pointer) == Some(sum.variable)
            && sum.variable != self.checks.counter
            && (own(left) != own(right))
            && fun == sum.function
            && matches!(fun, MathFunction::Dot4I8Packed | MathFunction::Dot4U8Packed)
            && of(arg, a)
            && of(arg1, b)
    }

    /// Whether a value is the counter's in this iteration.
    fn is_counter(&self, value: Value) -> bool {
        self.inside.contains(&value) && loaded(self.on.function, value) == Some(self.checks.counter)
    }

    /// Identifies memory that the loop does not change; `None` for memory that it may change.
    fn memory(&self, pointer: Value) -> Option<(Value, Vec<u32>)> {
        let (mut steps, mut place) = (Vec::new(), pointer);
        while let Expression::AccessIndex { base, index } = self.on.function.expressions[place] {
            steps.push(index);
            place = base;
        }
        let fixed = match self.on.function.expressions[place] {
            Expression::LocalVariable(variable) => !self.uses.written.contains(&variable),
            Expression::GlobalVariable(variable) => {
                self.on.module.global_variables[variable].space == AddressSpace::Immediate
            }
            _ => false,
        };
        fixed.then_some((place, steps))
    }

    /// Whether the loop assigns its counter only at the end of an iteration, incremented by one.
    fn counts(&self, body: &Block, continuing: &Block) -> bool {
        let own = |statement: &Statement| match statement {
            Statement::Store { pointer, value }
                if self.on.variable(*pointer) == Some(self.checks.counter) =>
            {
                Some(*value)
            }
            _ => None,
        };
        let (mut before, mut after, mut stores) = (0, Vec::new(), 0);
        blocks::each(body, &mut |statement| before += usize::from(own(statement).is_some()));
        blocks::each(continuing, &mut |statement| {
            after.extend(own(statement));
            stores += usize::from(!matches!(statement, Statement::Emit(_) | Statement::Block(_)));
        });
        let (0, 1, [value]) = (before, stores, &after[..]) else { return false };
        matches!(self.on.function.expressions[*value], Expression::Binary { op: Op::Add, left, right }
            if self.is_counter(left) && constant(self.on.module, self.on.function, right) == Some(1))
    }

    /// Whether a value can be computed before the loop, and grows by `step` per iteration.
    fn grows(&self, value: Value, step: u32) -> bool {
        let word = matches!(
            self.on.context.inner(value),
            TypeInner::Scalar(Scalar { kind: ScalarKind::Sint | ScalarKind::Uint, width: 4 })
        );
        word && self.grown(value).is_some_and(|found| found.into_iter().all(|grown| grown == step))
    }

    /// The growth of a value per iteration, by trial; `None` if it cannot be computed before the loop.
    fn grown(&self, value: Value) -> Option<Vec<u32>> {
        let trial = |[now, next, eighth]: &[Numbers; 3]| {
            let (first, step) = (now.of(value)?, next.of(value)?.wrapping_sub(now.of(value)?));
            Some(if eighth.of(value)?.wrapping_sub(first) == step.wrapping_mul(7) { step } else { u32::MAX })
        };
        self.trials.iter().map(trial).collect()
    }
}

/// The values of one iteration: everything that the loop does not change is arbitrary but fixed within a trial.
struct Numbers {
    trial: u64,
    /// By expression computed in the loop: its value, or `None` if it cannot be computed before the loop.
    inside: BTreeMap<Value, Option<u32>>,
}

impl Numbers {
    /// The values of an iteration with the given counter.
    fn new(checked: &Checked<'_, '_, '_>, trial: u64, counter: u32) -> Self {
        let mut numbers = Self { trial, inside: BTreeMap::new() };
        // Operands precede their users.
        for &value in &checked.inside {
            let number =
                if checked.is_counter(value) { Some(counter) } else { numbers.computed(checked, value) };
            numbers.inside.insert(value, number);
        }
        numbers
    }

    fn of(&self, value: Value) -> Option<u32> {
        self.inside.get(&value).copied().unwrap_or_else(|| Some(self.any(value)))
    }

    fn any(&self, what: impl Hash) -> u32 {
        let mut hasher = DefaultHasher::new();
        (self.trial, what).hash(&mut hasher);
        u32::try_from(hasher.finish() >> 32).unwrap_or_default()
    }

    fn computed(&self, checked: &Checked<'_, '_, '_>, value: Value) -> Option<u32> {
        let on = checked.on;
        let of = |value| constant(on.module, on.function, value).or_else(|| self.of(value));
        Some(match on.function.expressions[value] {
            Expression::Load { pointer } => self.any(checked.memory(pointer)?),
            // For a component, hash the vector: components are as arbitrary as the vector, and as constant.
            Expression::AccessIndex { base, index } if !on.context.is_pointer(base) => {
                of(base)?;
                self.any((base, index))
            }
            Expression::As { expr, kind: ScalarKind::Sint | ScalarKind::Uint, convert: Some(4) | None } => {
                of(expr)?
            }
            Expression::Binary { op: Op::Add, left, right } => of(left)?.wrapping_add(of(right)?),
            Expression::Binary { op: Op::Subtract, left, right } => of(left)?.wrapping_sub(of(right)?),
            Expression::Binary { op: Op::Multiply, left, right } => of(left)?.wrapping_mul(of(right)?),
            _ => return None,
        })
    }
}
