//! The statements of a body, in order.

use std::rc::Rc;

use naga::valid::GlobalUse;
use naga::{Block, Expression, Function, Handle, Statement};

use super::counter::Counter;
use super::value::{Value, assume};
use super::{Access, Part, Path, Walk};
use crate::analysis::proof::trip_count::loop_head;
use crate::fuse::linear::{Knowledge, Variable};
use crate::ir::blocks::{self, Skip, leaves};
use crate::ir::variables::{Root, assigned, root};

/// What changes on the way through a body.
pub(super) struct State {
    locals: Vec<Value>,
    knowledge: Knowledge,
    path: Path,
}

impl Walk<'_> {
    pub(super) fn state(&self) -> State {
        State { locals: self.locals.clone(), knowledge: self.knowledge.clone(), path: self.path.clone() }
    }

    pub(super) fn set(&mut self, state: State) {
        State { locals: self.locals, knowledge: self.knowledge, path: self.path } = state;
        self.shared = None;
    }

    pub(super) fn block(&mut self, block: &Block) {
        for statement in block.iter() {
            self.statement(statement);
        }
    }

    pub(super) fn statement(&mut self, statement: &Statement) {
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
            pointer: Some(pointer),
            is_write,
            offset: place.offset.map(|offset| self.with_remainders(offset)),
            bytes: place.bytes,
            knowledge,
            path: self.path.clone(),
            part: place.part,
        });
    }

    /// Records that the callee accesses these tensors at unknown indices.
    fn call(&mut self, function: Handle<Function>) {
        let uses = &self.body.program.info[function];
        for (argument, tensor) in self.body.interface().tensors.iter().enumerate() {
            for (bit, is_write) in [(GlobalUse::WRITE, true), (GlobalUse::READ, false)] {
                if uses[tensor.variable].intersects(bit) {
                    self.found.list.push(Access {
                        argument,
                        pointer: None,
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

    pub(super) fn locals_unknown(&mut self, (body, continuing): (&Block, &Block)) {
        let locals = &mut self.locals;
        for block in [body, continuing] {
            assigned(self.function, block, &mut |local| locals[local.index()] = Value::Unknown);
        }
    }

    fn repeat(
        &mut self,
        (body, continuing): (&Block, &Block),
        counter: Option<Counter>,
        statement: &Statement,
    ) {
        let before = self.state();
        self.locals_unknown((body, continuing));
        let counted = counter.as_ref().map(|counter| counter.variable);
        self.path.is_known &=
            matches!(counted, Some(None | Some(Variable::Iteration(_)))) && is_straight(body);
        self.path.loops.extend(counted.flatten());
        if let Some(Counter { local, value, .. }) = counter {
            self.locals[local.index()] = Value::Number(value);
        }
        let counted = self.locals.clone();
        self.block(body);
        self.locals = counted;
        self.knowledge.facts.clone_from(&before.knowledge.facts);
        self.shared = None;
        self.locals_unknown((body, &Block::new()));
        self.path.is_known = false;
        self.block(continuing);
        let returns = blocks::has_return(statement);
        self.set(before);
        self.path.is_known &= !returns;
        self.locals_unknown((body, continuing));
    }
}

/// Whether only the head of a loop leaves it, and each iteration runs to its end.
fn is_straight(body: &Block) -> bool {
    loop_head(body).is_some_and(|(exit, _)| {
        let is_plain =
            |statement: &Statement| Skip::of(statement) == Skip::No && !blocks::has_return(statement);
        body.iter().skip(exit + 1).all(is_plain)
    })
}
