//! The statements of a body, in order.

use std::rc::Rc;

use naga::valid::GlobalUse;
use naga::{BinaryOperator, Block, Expression, Function, Handle, LocalVariable, ScalarKind, Statement};

use super::value::{Value, assume};
use super::{Access, Part, Path, Walk};
use crate::analysis::proof::trip_count::{loop_head, loop_step};
use crate::fuse::linear::{Integer, Knowledge, Linear, Variable};
use crate::ir::blocks;
use crate::ir::variables::{Root, assigned, loaded, root};

/// What changes on the way through a body.
struct State {
    locals: Vec<Value>,
    knowledge: Knowledge,
    path: Path,
}

impl Walk<'_> {
    fn state(&self) -> State {
        State { locals: self.locals.clone(), knowledge: self.knowledge.clone(), path: self.path.clone() }
    }

    fn set(&mut self, state: State) {
        State { locals: self.locals, knowledge: self.knowledge, path: self.path } = state;
        self.shared = None;
    }

    pub(super) fn block(&mut self, block: &Block) {
        for statement in block.iter() {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    self.values[handle.index()] = self.evaluate(handle);
                }
            }
            Statement::Block(block) => self.block(block),
            Statement::If { condition, accept, reject } => self.branch(*condition, accept, reject),
            Statement::Switch { cases, .. } => {
                let before = self.state();
                for case in cases {
                    self.locals.clone_from(&before.locals);
                    self.path.is_known = false;
                    self.block(&case.body);
                }
                self.set(before);
                self.path.is_known &= !blocks::has_return(statement);
                self.forget_assigned(statement);
            }
            Statement::Loop { body, continuing, break_if } => {
                let counter = break_if.is_none().then(|| self.counter(body, continuing)).flatten();
                self.repeat((body, continuing), counter, statement);
            }
            Statement::Store { pointer, value } => self.store(*pointer, *value),
            Statement::Atomic { pointer, .. } => {
                self.note_access(*pointer, true);
                self.note_access(*pointer, false);
            }
            Statement::Call { function, .. } => {
                self.call(*function);
                self.forget_assigned(statement);
            }
            _ => {}
        }
    }

    fn store(&mut self, pointer: Handle<Expression>, value: Handle<Expression>) {
        let Root::Local(local) = root(self.function, pointer) else {
            self.note_access(pointer, true);
            return;
        };
        let value = self.values[value.index()].clone();
        match self.function.expressions[pointer] {
            Expression::LocalVariable(_) => self.locals[local.index()] = value,
            Expression::AccessIndex { base, index }
                if matches!(self.function.expressions[base], Expression::LocalVariable(_)) =>
            {
                if let Value::Parts(parts) = &mut self.locals[local.index()]
                    && let Some(part) = parts.get_mut(index as usize)
                {
                    *part = value;
                }
            }
            _ => self.locals[local.index()] = Value::Unknown,
        }
    }

    /// Notes an access to a tensor.
    pub(super) fn note_access(&mut self, pointer: Handle<Expression>, is_write: bool) {
        let Some(place) = self.place(pointer) else { return };
        let knowledge = self.known();
        self.found.list.push(Access {
            argument: place.argument,
            is_write,
            offset: place.offset,
            bytes: place.bytes,
            knowledge,
            path: self.path.clone(),
            part: place.part,
        });
    }

    /// Notes that a function accesses tensors, nobody knows where.
    fn call(&mut self, function: Handle<Function>) {
        let uses = &self.body.program.info[function];
        for (argument, tensor) in self.body.interface().tensors.iter().enumerate() {
            for (bit, is_write) in [(GlobalUse::WRITE, true), (GlobalUse::READ, false)] {
                if uses[tensor.variable].intersects(bit) {
                    self.found.list.push(Access {
                        argument,
                        is_write,
                        offset: None,
                        bytes: 0,
                        knowledge: Rc::new(Knowledge::default()),
                        path: Path::default(),
                        part: Part::Other,
                    });
                }
            }
            self.found.lengths[argument] |= !uses[tensor.variable].is_empty();
        }
    }

    fn forget_assigned(&mut self, statement: &Statement) {
        let block = Block::from_vec(vec![statement.clone()]);
        let locals = &mut self.locals;
        assigned(self.function, &block, &mut |local| locals[local.index()] = Value::Unknown);
    }

    /// Learns that a condition has a value, on the way to what follows.
    fn assume(&mut self, condition: &Value, is: bool) {
        let before = self.knowledge.facts.len();
        let is_exact = assume(&mut self.knowledge, condition, is);
        self.path.is_known &= is_exact;
        let new = self.knowledge.facts.len() - before;
        self.path.facts.extend_from_slice(&self.knowledge.facts[..new]);
        self.shared = None;
    }

    fn branch(&mut self, condition: Handle<Expression>, accept: &Block, reject: &Block) {
        let condition = self.values[condition.index()].clone();
        let before = self.state();
        self.assume(&condition, true);
        self.block(accept);
        let accepted = std::mem::replace(&mut self.locals, before.locals.clone());
        let after_accept =
            State { locals: accepted, knowledge: self.knowledge.clone(), path: self.path.clone() };
        let is_known = before.path.is_known;
        self.set(State { ..before });
        let before = self.state();
        self.assume(&condition, false);
        self.block(reject);
        // An item may have returned inside.
        let returns = |block: &Block| block.iter().any(blocks::has_return);
        match (leaves(accept), leaves(reject)) {
            (true, _) => self.path.is_known &= is_known && !returns(reject),
            (false, true) => {
                self.set(after_accept);
                self.path.is_known &= !returns(accept);
            }
            (false, false) => {
                let mut joined = before;
                for ((own, one), two) in joined.locals.iter_mut().zip(after_accept.locals).zip(&self.locals) {
                    *own = if one == *two { one } else { Value::Unknown };
                }
                joined.path.is_known &= !(returns(accept) || returns(reject));
                self.set(joined);
            }
        }
    }

    /// The counter of a loop `for (…; counter < bound; counter += step)`, and its value in an iteration.
    fn counter(&mut self, body: &Block, continuing: &Block) -> Option<(Handle<LocalVariable>, Linear)> {
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
        let bound = self.bound(condition, counter);
        self.set(before);
        let (bound, first) = (bound?, self.knowledge.integer(&start)?);
        if bound.1 && !self.is_positive(&[&first, &bound.0]) {
            return None;
        }
        let (bound, is_signed) = bound;
        let step_by = i128::from(step.value().filter(|step| *step > 0)?);
        let ([_, last], on_bound) = self.knowledge.range(&bound)?;
        let largest = if is_signed { i128::from(i32::MAX) } else { i128::from(u32::MAX) };
        if last - 1 + step_by > largest {
            return None;
        }
        let ([_, distance], on_distance) = self.knowledge.range(&bound.plus_times(&first, -1))?;
        let trips = ((distance - 1).max(0)) / step_by;
        let relies = on_bound | on_distance | step.relies;
        let mut value = Linear { relies: start.relies | relies, ..start };
        if trips > 0 {
            let iteration = Variable::Iteration(*self.loops);
            *self.loops += 1;
            value = value.plus_times(&Linear::variable(iteration, 1), step.value()?);
            self.knowledge.maxima.push((iteration, trips, relies));
            self.shared = None;
        }
        Some((counter, value))
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

    fn locals_unknown(&mut self, (body, continuing): (&Block, &Block)) {
        let locals = &mut self.locals;
        for block in [body, continuing] {
            assigned(self.function, block, &mut |local| locals[local.index()] = Value::Unknown);
        }
    }

    /// One more than the greatest value of the counter for which a loop goes on, and whether it is compared as a signed number.
    /// The variables that the loop assigns are unknown, so that it is the same in each iteration.
    fn bound(
        &self,
        condition: Handle<Expression>,
        counter: Handle<LocalVariable>,
    ) -> Option<(Integer, bool)> {
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
        let signed = self.inner(left).scalar_kind() == Some(ScalarKind::Sint);
        let bound = self.knowledge.integer(self.values[right.index()].number()?)?;
        Some((Integer { constant: bound.constant + more, ..bound }, signed))
    }

    /// Whether numbers are the same as `i32`.
    fn is_positive(&self, numbers: &[&Integer]) -> bool {
        let largest = |number: &Integer| self.knowledge.range(number).map(|([_, max], _)| max);
        numbers.iter().all(|number| largest(number).is_some_and(|max| max <= i128::from(i32::MAX)))
    }

    fn repeat(
        &mut self,
        (body, continuing): (&Block, &Block),
        counter: Option<(Handle<LocalVariable>, Linear)>,
        statement: &Statement,
    ) {
        let before = self.state();
        self.locals_unknown((body, continuing));
        if let Some((counter, value)) = counter {
            self.locals[counter.index()] = Value::Number(value);
        }
        self.path.is_known = false;
        let counted = self.locals.clone();
        self.block(body);
        self.locals = counted;
        self.knowledge.facts.clone_from(&before.knowledge.facts);
        self.shared = None;
        self.locals_unknown((body, &Block::new()));
        self.block(continuing);
        let returns = blocks::has_return(statement);
        self.set(before);
        self.path.is_known &= !returns;
        self.locals_unknown((body, continuing));
    }
}

/// Whether control never reaches the end of a block.
fn leaves(block: &Block) -> bool {
    match block.last() {
        Some(Statement::Return { .. } | Statement::Break | Statement::Continue | Statement::Kill) => true,
        Some(Statement::Block(inner)) => leaves(inner),
        Some(Statement::If { accept, reject, .. }) => leaves(accept) && leaves(reject),
        _ => false,
    }
}
