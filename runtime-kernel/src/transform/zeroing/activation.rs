//! Values that depend only on the positions of invocations in their work-group.

use std::cell::Cell;
use std::rc::Rc;

use naga::{
    BinaryOperator as Op, Block, BuiltIn, Expression, FastHashMap, FastHashSet, Function, Handle, Literal,
    MathFunction, Module, Scalar, Statement, TypeInner, UnaryOperator,
};

use super::column::{Column, Kind, keep};
use super::memory::FIRST;
use crate::analysis::proof::constant::literal;
use crate::analysis::proof::range::built_in_of;
use crate::ir::variables::{assigned, loaded};
use crate::ir::{Local, Value, blocks};

/// The fixed cost of an evaluation, in values.
const EVALUATION: usize = 32;

/// Executions of statements that are analysed together: one per invocation, and in a counted loop one per
/// invocation and iteration. There is always at least one.
#[derive(Clone, Debug)]
pub(super) struct Activations {
    /// Their numbers.
    pub(super) ids: Rc<[u32]>,
    items: Rc<[u32]>,
    /// Loop counters and function arguments; the latest is last.
    known: Vec<(Name, Column)>,
}

/// Something with a value, by call depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Local(u32, Local),
    Argument(u32, u32),
}

/// A function and the arguments that it is called with.
type Called<'a> = (Handle<Function>, &'a [Value]);

/// The function being executed.
pub(super) struct Scope<'a> {
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    /// The call depth; 0 for the entry point.
    pub(super) depth: u32,
    group_size: [u32; 3],
    /// By result of a call.
    calls: FastHashMap<Value, Called<'a>>,
    /// Loads of loop counters inside their loops.
    pub(super) loads: FastHashSet<Value>,
    /// The current values of variables.
    pub(super) current: FastHashMap<Local, Value>,
    /// The values that loads have read.
    read: FastHashMap<Value, Value>,
    /// The remaining budget of evaluations for the whole walk.
    budget: &'a Cell<u32>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        (module, function): (&'a Module, &'a Function),
        depth: u32,
        group_size: [u32; 3],
        budget: &'a Cell<u32>,
    ) -> Self {
        let mut calls = FastHashMap::default();
        blocks::each(&function.body, &mut |statement| {
            if let Statement::Call { function, arguments, result: Some(result) } = statement {
                calls.insert(*result, (*function, &arguments[..]));
            }
        });
        let variables = function.local_variables.iter();
        let current = variables.filter_map(|(variable, declared)| Some((variable, declared.init?))).collect();
        let (loads, read) = (FastHashSet::default(), FastHashMap::default());
        Self { module, function, depth, group_size, calls, loads, current, read, budget }
    }

    /// Records what an expression reads that is evaluated now.
    pub(super) fn emit(&mut self, expression: Value) {
        if let Some(variable) = loaded(self.function, expression) {
            match self.current.get(&variable) {
                Some(&value) => self.read.insert(expression, value),
                None => self.read.remove(&expression),
            };
        }
    }

    /// Forgets the values of the variables that the blocks assign.
    pub(super) fn forget(&mut self, blocks: &[&Block]) {
        let blocks = if self.current.is_empty() { &[] } else { blocks };
        for block in blocks {
            assigned(self.function, block, &mut |variable| {
                self.current.remove(&variable);
            });
        }
    }

    /// The values of an expression in these activations, if they depend on the invocations alone.
    pub(super) fn value(&self, active: &Activations, expression: Value) -> Option<Column> {
        if !self.spend(EVALUATION) {
            return None;
        }
        let found = self.evaluate(active, expression)?;
        self.spend(found.stored()).then_some(found)
    }

    fn evaluate(&self, active: &Activations, expression: Value) -> Option<Column> {
        let value = |expression| self.value(active, expression);
        match self.function.expressions[expression] {
            Expression::FunctionArgument(index) if self.depth > 0 => {
                active.known(Name::Argument(self.depth, index))
            }
            Expression::FunctionArgument(_) | Expression::AccessIndex { .. } => {
                self.built_in(active, expression)
            }
            Expression::Load { .. } if self.loads.contains(&expression) => {
                active.known(Name::Local(self.depth, loaded(self.function, expression)?))
            }
            Expression::Load { .. } => value(*self.read.get(&expression)?),
            Expression::Unary { op, expr } => match (op, value(expr)?) {
                (UnaryOperator::LogicalNot, truth) if truth.kind() == Some(Kind::Bool) => truth.inverted(),
                (UnaryOperator::BitwiseNot, word) if word.kind() == Some(Kind::U32) => word.inverted(),
                _ => None,
            },
            Expression::Binary { op, left, right } => Column::operate(op, &value(left)?, &value(right)?),
            Expression::Select { condition, accept, reject } => match value(condition)? {
                Column::Same(Literal::Bool(true)) => value(accept),
                Column::Same(Literal::Bool(false)) => value(reject),
                truths => truths.select(&value(accept)?, &value(reject)?),
            },
            Expression::As { expr, kind, convert: None | Some(4) } => value(expr)?.cast(kind),
            Expression::Math { fun, arg, arg1: Some(other), arg2: None, .. } => match fun {
                MathFunction::Min => value(arg)?.extreme(&value(other)?, false),
                MathFunction::Max => value(arg)?.extreme(&value(other)?, true),
                _ => None,
            },
            Expression::CallResult(_) => self.called(active, expression),
            _ => literal(self.module, &self.function.expressions, expression).map(Column::Same),
        }
    }

    /// The result of a function that only computes it from its arguments.
    fn called(&self, active: &Activations, result: Value) -> Option<Column> {
        let (function, arguments) = *self.calls.get(&result)?;
        let function = &self.module.functions[function];
        let Some(Statement::Return { value: Some(value) }) = function.body.last() else { return None };
        let before = &function.body[..function.body.len() - 1];
        if !before.iter().all(|statement| matches!(statement, Statement::Emit(_))) {
            return None;
        }
        // Nested calls are not evaluated.
        let scope = Scope {
            module: self.module,
            function,
            depth: self.depth + 1,
            group_size: self.group_size,
            calls: FastHashMap::default(),
            loads: FastHashSet::default(),
            current: FastHashMap::default(),
            read: FastHashMap::default(),
            budget: self.budget,
        };
        scope.value(&self.entered(active, arguments), *value)
    }

    /// The activations inside a call with these arguments.
    pub(super) fn entered(&self, active: &Activations, arguments: &[Value]) -> Activations {
        let mut inner = active.clone();
        for (index, argument) in (0..).zip(arguments) {
            let name = Name::Argument(self.depth + 1, index);
            // Drop the arguments of an earlier call at this depth.
            inner.known.retain(|(known, _)| *known != name);
            if let Some(value) = self.value(active, *argument) {
                inner.know(name, value);
            }
        }
        inner
    }

    fn built_in(&self, active: &Activations, expression: Value) -> Option<Column> {
        if self.depth > 0 {
            return None;
        }
        let items = Column::Each(Kind::U32, Rc::clone(&active.items));
        let [x, y, _] = self.group_size;
        let part = |op, value: &Column, size| Column::operate(op, value, &Column::number(size));
        match built_in_of((self.module, self.function), expression)? {
            (BuiltIn::LocalInvocationIndex, None) => Some(items),
            (BuiltIn::LocalInvocationId, Some(0)) => part(Op::Modulo, &items, x),
            (BuiltIn::LocalInvocationId, Some(1)) => part(Op::Modulo, &part(Op::Divide, &items, x)?, y),
            (BuiltIn::LocalInvocationId, Some(2)) => part(Op::Divide, &items, x.checked_mul(y)?),
            _ => None,
        }
    }

    /// Spends evaluations; returns whether the budget sufficed.
    pub(super) fn spend(&self, work: usize) -> bool {
        let left = u32::try_from(work).ok().and_then(|work| self.budget.get().checked_sub(work));
        self.budget.set(left.unwrap_or(0));
        left.is_some()
    }

    /// The initial value of a variable.
    pub(super) fn initial(&self, variable: Local) -> Option<Literal> {
        let declared = &self.function.local_variables[variable];
        match (declared.init, &self.module.types[declared.ty].inner) {
            (Some(init), _) => literal(self.module, &self.function.expressions, init),
            (None, TypeInner::Scalar(scalar @ (Scalar::U32 | Scalar::I32))) => Literal::zero(*scalar),
            _ => None,
        }
    }
}

impl Activations {
    /// One per invocation.
    pub(super) fn of_items(items: u32) -> Self {
        Self { ids: (FIRST..FIRST + items).collect(), items: (0..items).collect(), known: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    fn known(&self, name: Name) -> Option<Column> {
        self.known.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    pub(super) fn know(&mut self, name: Name, value: Column) {
        self.known.push((name, value));
    }

    /// Forgets the latest value.
    pub(super) fn forget_last(&mut self) {
        self.known.pop();
    }

    /// Those for which `truths` equals `wanted`, if any.
    pub(super) fn keep(&self, truths: &[u32], wanted: bool) -> Option<Self> {
        let ids = keep(&self.ids, truths, wanted);
        let known = self.known.iter().map(|(name, value)| (*name, value.keep(truths, wanted)));
        (!ids.is_empty()).then(|| Self {
            ids,
            items: keep(&self.items, truths, wanted),
            known: known.collect(),
        })
    }

    /// Several joined, all with the same names, renumbered from `next` on.
    pub(super) fn joined(parts: &[Self], next: &mut u32) -> Option<Self> {
        let first = parts.first()?;
        let count = u32::try_from(parts.iter().map(Self::len).sum::<usize>()).ok()?;
        let ids = (*next..next.checked_add(count)?).collect();
        *next += count;
        let mut items = Vec::with_capacity(count as usize);
        parts.iter().for_each(|part| items.extend_from_slice(&part.items));
        let known = first.known.iter().enumerate().map(|(place, (name, _))| {
            let columns: Vec<_> = parts.iter().map(|part| (&part.known[place].1, part.len())).collect();
            Some((*name, Column::joined(&columns)?))
        });
        Some(Self { ids, items: items.into(), known: known.collect::<Option<_>>()? })
    }
}
