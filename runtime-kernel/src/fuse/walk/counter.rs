//! The counters of loops.

use naga::{BinaryOperator, Block, Expression, Handle, LocalVariable, ScalarKind};

use super::value::is_positive;
use super::{LoopCounter, Walk};
use crate::analysis::proof::trip_count::{loop_head, loop_step};
use crate::fuse::linear::{Integer, Linear, Scalars, Variable};
use crate::ir::variables::{assigned, loaded};

/// The counter of a loop.
pub(super) struct Counter {
    pub(super) local: Handle<LocalVariable>,
    /// Its value in an iteration.
    pub(super) value: Linear,
    /// What it counts; `None` if there is one iteration at most.
    pub(super) variable: Option<Variable>,
}

/// The value of a counter in an iteration.
struct Counted {
    value: Linear,
    /// What it counts, and the greatest value of that.
    variable: Option<(Variable, i128, Scalars)>,
}

/// One more than the greatest value of the counter for which a loop goes on, and the greatest value of its type.
struct Bound {
    end: Integer,
    largest: i128,
}

impl Walk<'_> {
    /// The counter of a loop `for (…; counter < bound; counter += step)`.
    pub(super) fn counter(&mut self, body: &Block, continuing: &Block) -> Option<Counter> {
        let (exit, condition) = loop_head(body)?;
        let (counter, next) = loop_step(self.function, continuing, &mut Vec::new())?;
        let mut is_changed = false;
        assigned(self.function, body, &mut |local| is_changed |= local == counter);
        if is_changed {
            return None;
        }
        let start = self.locals[counter.index()].number()?.clone();
        let step = self.step(counter, next, (body, continuing))?;
        let (before, count) = (self.state(), self.found.list.len());
        self.locals_unknown((body, continuing));
        for statement in &body[..exit] {
            self.statement(statement);
        }
        self.found.list.truncate(count);
        let counted = self.bound(condition, counter).and_then(|bound| self.counted(start, &step, &bound));
        self.set(before);
        let Counted { value, variable } = counted?;
        if let Some(variable) = variable {
            self.knowledge.maxima.push(variable);
            self.shared = None;
        }
        if let Some((iteration @ Variable::Iteration(_), ..)) = variable
            && let Some(step) = step.value()
        {
            self.found.counters.push(LoopCounter { iteration, local: counter, step });
        }
        Some(Counter { local: counter, value, variable: variable.map(|(variable, ..)| variable) })
    }

    /// What a loop adds to its counter.
    fn step(
        &mut self,
        counter: Handle<LocalVariable>,
        next: Handle<Expression>,
        (body, continuing): (&Block, &Block),
    ) -> Option<Linear> {
        let Expression::Binary { op: BinaryOperator::Add, left, right } = self.function.expressions[next]
        else {
            return None;
        };
        let step = match (loaded(self.function, left), loaded(self.function, right)) {
            (Some(local), _) if local == counter => right,
            (_, Some(local)) if local == counter => left,
            _ => return None,
        };
        let before = self.state();
        let count = self.found.list.len();
        self.locals_unknown((body, continuing));
        self.block(continuing);
        self.found.list.truncate(count);
        self.set(before);
        self.values[step.index()].number().cloned()
    }

    /// The bound of a loop. The variables that the loop assigns are unknown, so that it holds in each iteration.
    fn bound(&self, condition: Handle<Expression>, counter: Handle<LocalVariable>) -> Option<Bound> {
        let Expression::Binary { op, left, right } = self.function.expressions[condition] else {
            return None;
        };
        let (left, right, more) = match op {
            BinaryOperator::Less => (left, right, 0),
            BinaryOperator::LessEqual => (left, right, 1),
            BinaryOperator::Greater => (right, left, 0),
            BinaryOperator::GreaterEqual => (right, left, 1),
            _ => return None,
        };
        if loaded(self.function, left) != Some(counter) {
            return None;
        }
        let end = self.knowledge.integer(self.values[right.index()].number()?)?;
        let end = Integer { constant: end.constant + more, ..end };
        let signed = self.inner(left).scalar_kind() == Some(ScalarKind::Sint);
        if signed && !is_positive(&self.knowledge, &end) {
            return None;
        }
        Some(Bound { end, largest: if signed { i32::MAX.into() } else { u32::MAX.into() } })
    }

    /// The value of a counter from its start, its step and its bound, if it cannot wrap around.
    fn counted(&mut self, start: Linear, step: &Linear, bound: &Bound) -> Option<Counted> {
        let first = self.knowledge.integer(&start)?;
        let ([_, greatest], on_first) = self.knowledge.range(&first)?;
        let ([_, end], on_end) = self.knowledge.range(&bound.end)?;
        let (axis, factor) = match (&step.terms[..], step.constant) {
            ([], factor) => (None, i128::from(factor)),
            (&[(Variable::Groups(axis), factor)], 0) => (Some(axis), i128::from(factor)),
            _ => return None,
        };
        let groups = axis.map_or(1, |axis| self.shape.groups[usize::from(axis)]);
        if factor == 0 || end - 1 + factor * i128::from(groups) > bound.largest || greatest > bound.largest {
            return None;
        }
        let relies = on_first | on_end | step.relies | bound.end.relies;
        let start = start.relying(relies);
        match axis {
            None => self.by_constant(start, factor, (&first, &bound.end)),
            Some(axis) => Some(self.by_groups(start, (axis, factor), (&first, end - 1))),
        }
    }

    fn by_constant(
        &mut self,
        start: Linear,
        step: i128,
        (first, end): (&Integer, &Integer),
    ) -> Option<Counted> {
        let ([_, distance], on_distance) = self.knowledge.range(&end.plus_times(first, -1))?;
        let start = start.relying(on_distance);
        let trips = (distance - 1).max(0) / step;
        if trips == 0 {
            return Some(Counted { value: start, variable: None });
        }
        let iteration = Variable::Iteration(self.number());
        let relies = start.relies;
        let value = start.plus_times(&Linear::variable(iteration, 1), u32::try_from(step).ok()?);
        Some(Counted { value, variable: Some((iteration, trips, relies)) })
    }

    /// The value of a counter that goes on by a multiple of the number of groups. `last` is its greatest value.
    fn by_groups(
        &mut self,
        start: Linear,
        (axis, step): (u8, i128),
        (first, last): (&Integer, i128),
    ) -> Counted {
        let group = first.terms.iter().find(|(variable, _)| *variable == Variable::Group(axis));
        let of_group = group.map(|(_, factor)| *factor).filter(|factor| *factor > 0 && step % factor == 0);
        let number = self.number();
        let relies = start.relies;
        let rest = of_group.map(|factor| {
            let group = Integer::variable(Variable::Group(axis), 1);
            (factor, first.plus_times(&group, -factor))
        });
        let Some((factor, ([least, _], on_rest))) =
            rest.and_then(|(factor, rest)| Some((factor, self.knowledge.range(&rest)?)))
        else {
            let variable = Variable::Unknown(number);
            let value = Linear::variable(variable, 1).relying(relies);
            return Counted { value, variable: Some((variable, last.max(0), relies)) };
        };
        let relies = relies | on_rest;
        let variable = Variable::Congruent(axis, number);
        let count = Linear::variable(variable, 1).minus(&Linear::variable(Variable::Group(axis), 1));
        let value = start.relying(relies).plus_times(&count, u32::try_from(factor).unwrap_or(0));
        Counted { value, variable: Some((variable, ((last - least) / factor).max(0), relies)) }
    }
}
