//! Writes the coarsened body: copies for several invocations, statement by statement, and a loop over single ones.

mod copies;

use naga::{
    BinaryOperator, Binding, Block, BuiltIn, Expression, Function, FunctionArgument, Handle, LocalVariable,
    Scalar, Span, Statement, Type, TypeInner, UniqueArena, VectorSize,
};
use runtime_core::{Error, Result};

use self::copies::Rest;
use super::eligible::Plan;
use super::launch_scalar::LaunchScalar;
use crate::interface::Interface;
use crate::ir::body_writer::{BodyWriter, WriteBody};
use crate::ir::operands::{operands, renew_operands};
use crate::ir::{Local, Value, blocks, declare};
use crate::transform::inline::without_body;

/// A built-in value in a copy.
#[derive(Clone, Copy)]
struct Argument {
    x: Value,
    /// The vector, if it is used as such.
    whole: Option<Value>,
}

/// A copy of the body, for one invocation.
struct Lane {
    /// By expression of the source.
    map: Vec<Option<Value>>,
    /// By variable of the source.
    locals: Vec<Local>,
    /// By argument: what differs from the invocation's own.
    arguments: Vec<Option<Argument>>,
}

pub(super) struct Copier<'p> {
    types: &'p mut UniqueArena<Type>,
    source: &'p Function,
    plan: &'p Plan,
    group_size: u32,
    scalar: LaunchScalar,
    out: BodyWriter,
    /// The copies that are evaluated together, and that of the loop.
    lanes: Vec<Lane>,
    /// Whether a buffer has been written, so that the loop must not repeat the work.
    has_stored: bool,
}

impl WriteBody for Copier<'_> {
    fn writer(&mut self) -> &mut BodyWriter {
        &mut self.out
    }
}

impl<'p> Copier<'p> {
    pub(super) fn new(
        types: &'p mut UniqueArena<Type>,
        (source, plan): (&'p Function, &'p Plan),
        interface: &Interface,
        scalar: LaunchScalar,
    ) -> Self {
        Self {
            types,
            source,
            plan,
            group_size: interface.group_size[0],
            scalar,
            out: BodyWriter::new(without_body(source)),
            lanes: Vec::new(),
            has_stored: false,
        }
    }

    /// The new function.
    ///
    /// # Errors
    /// `Unsupported` for expressions that kernels do not use.
    pub(super) fn coarsened(mut self) -> Result<Function> {
        let body = self.nested(Self::body)?;
        Ok(self.out.finish(body))
    }

    fn body(&mut self) -> Result<()> {
        let (one, all) = (self.number(1), self.number(self.plan.items));
        let group = self.component(BuiltIn::WorkGroupId);
        let launched = self.component(BuiltIn::NumWorkGroups);
        let base = self.constant(Expression::GlobalVariable(self.scalar.variable));
        let pointer = self.append(Expression::AccessIndex { base, index: self.scalar.member });
        let groups = self.append(Expression::Load { pointer });
        let condition = self.binary(BinaryOperator::NotEqual, launched, groups);
        let together = self.nested(|copier| copier.together((group, all), groups))?;
        self.push(Statement::If { condition, accept: together, reject: Block::new() });
        let items = self.append(Expression::Select { condition, accept: all, reject: one });
        self.one_by_one((group, items), groups)
    }

    /// Evaluates all invocations together and returns, if their work-groups exist and all of them pass the guards.
    fn together(&mut self, (group, items): (Value, Value), groups: Value) -> Result<()> {
        let first = self.binary(BinaryOperator::Multiply, group, items);
        let (mut numbers, mut exist) = (Vec::new(), Vec::new());
        for item in 0..self.plan.items {
            let item = self.number(item);
            let number = self.binary(BinaryOperator::Add, first, item);
            numbers.push(number);
            exist.push(self.binary(BinaryOperator::Less, number, groups));
        }
        let condition = self.folded(BinaryOperator::LogicalAnd, &exist)?;
        let accept = self.nested(|copier| {
            for number in numbers {
                copier.lane(number, groups, true)?;
            }
            let (plan, lanes) = (copier.plan, copier.lanes.len());
            copier.interleaved(Rest { statements: &plan.body, after: None }, lanes)
        })?;
        self.push(Statement::If { condition, accept, reject: Block::new() });
        Ok(())
    }

    /// Evaluates one invocation after the other, in a loop.
    fn one_by_one(&mut self, (group, items): (Value, Value), groups: Value) -> Result<()> {
        let first = self.binary(BinaryOperator::Multiply, group, items);
        let ty = declare::word(self.types);
        let variable = LocalVariable { name: Some("item".to_owned()), ty, init: None };
        let variable = self.out.function.local_variables.append(variable, Span::UNDEFINED);
        let pointer = self.constant(Expression::LocalVariable(variable));
        let zero = self.number(0);
        self.push(Statement::Store { pointer, value: zero });
        let body = self.nested(|copier| {
            let item = copier.append(Expression::Load { pointer });
            let condition = copier.binary(BinaryOperator::Less, item, items);
            let reject = copier.lone(Statement::Break);
            copier.push(Statement::If { condition, accept: Block::new(), reject });
            let number = copier.binary(BinaryOperator::Add, first, item);
            let condition = copier.binary(BinaryOperator::Less, number, groups);
            let accept = copier.nested(|copier| {
                let (plan, lane) = (copier.plan, copier.lane(number, groups, false)?);
                copier.reset_variables(lane)?;
                copier.block(&plan.body, lane)
            })?;
            copier.push(Statement::If { condition, accept, reject: Block::new() });
            Ok(())
        })?;
        let continuing = self.nested(|copier| {
            let (item, one) = (copier.append(Expression::Load { pointer }), copier.number(1));
            let value = copier.binary(BinaryOperator::Add, item, one);
            copier.push(Statement::Store { pointer, value });
            Ok(())
        })?;
        self.push(Statement::Loop { body, continuing, break_if: None });
        Ok(())
    }

    /// Begins a copy of the body for the invocation of work-group `number`; returns its index.
    fn lane(&mut self, number: Value, groups: Value, initialises: bool) -> Result<usize> {
        let mut lane = Lane {
            map: vec![None; self.source.expressions.len()],
            locals: Vec::new(),
            arguments: vec![None; self.source.arguments.len()],
        };
        for (index, argument) in self.source.arguments.iter().enumerate() {
            let Some(Binding::BuiltIn(built_in)) = argument.binding else { continue };
            let x = match built_in {
                BuiltIn::WorkGroupId => number,
                BuiltIn::NumWorkGroups => groups,
                BuiltIn::GlobalInvocationId => self.invocation(number),
                _ => continue,
            };
            let whole = self.is_used_whole(index).then(|| self.composed(index, argument.ty, x));
            lane.arguments[index] = Some(Argument { x, whole });
        }
        for (_, local) in self.source.local_variables.iter() {
            let variable = LocalVariable { name: local.name.clone(), ty: local.ty, init: None };
            lane.locals.push(self.out.function.local_variables.append(variable, Span::UNDEFINED));
        }
        let index = self.lanes.len();
        self.lanes.push(lane);
        if initialises {
            for (old, local) in self.source.local_variables.iter() {
                let init = local.init.map(|init| self.value(init, index)).transpose()?;
                let new = self.lanes[index].locals[old.index()];
                self.out.function.local_variables.get_mut(new).init = init;
            }
        }
        Ok(index)
    }

    /// The index along x of this invocation in work-group `number`.
    fn invocation(&mut self, number: Value) -> Value {
        if self.group_size == 1 {
            return number;
        }
        let size = self.number(self.group_size);
        let start = self.binary(BinaryOperator::Multiply, number, size);
        let local = self.component(BuiltIn::LocalInvocationId);
        self.binary(BinaryOperator::Add, start, local)
    }

    /// Whether an argument is used other than by a component.
    fn is_used_whole(&self, argument: usize) -> bool {
        let is_argument = |operand: Value| matches!(self.source.expressions[operand], Expression::FunctionArgument(index) if index as usize == argument);
        let mut stores_it = false;
        blocks::each(&self.plan.body, &mut |statement| {
            stores_it |= matches!(statement, Statement::Store { value, .. } if is_argument(*value));
        });
        stores_it
            || self.source.expressions.iter().any(|(_, expression)| {
                !matches!(expression, Expression::AccessIndex { .. }) && operands(expression).any(is_argument)
            })
    }

    /// A vector argument with another x component.
    fn composed(&mut self, argument: usize, ty: Handle<Type>, x: Value) -> Value {
        let mut components = vec![x];
        for index in 1..3 {
            let base = self.argument(argument);
            components.push(self.append(Expression::AccessIndex { base, index }));
        }
        self.append(Expression::Compose { ty, components })
    }

    fn argument(&mut self, index: usize) -> Value {
        self.constant(Expression::FunctionArgument(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    /// The x component of a built-in value; adds the argument if the kernel does not take it.
    fn component(&mut self, built_in: BuiltIn) -> Value {
        let is_it = |argument: &FunctionArgument| argument.binding == Some(Binding::BuiltIn(built_in));
        let index = self.out.function.arguments.iter().position(is_it).unwrap_or_else(|| {
            let inner = TypeInner::Vector { size: VectorSize::Tri, scalar: Scalar::U32 };
            let ty = declare::ty(self.types, inner);
            let binding = Some(Binding::BuiltIn(built_in));
            self.out.function.arguments.push(FunctionArgument { name: None, ty, binding });
            self.out.function.arguments.len() - 1
        });
        let base = self.argument(index);
        self.append(Expression::AccessIndex { base, index: 0 })
    }

    /// Gives the variables of a copy the values with which the kernel begins.
    fn reset_variables(&mut self, lane: usize) -> Result<()> {
        for (old, local) in self.source.local_variables.iter() {
            let value = match local.init {
                Some(init) => self.evaluated(init)?,
                None => self.constant(Expression::ZeroValue(local.ty)),
            };
            let pointer = Expression::LocalVariable(self.lanes[lane].locals[old.index()]);
            let pointer = self.constant(pointer);
            self.push(Statement::Store { pointer, value });
        }
        Ok(())
    }

    /// Copies a constant expression, to be evaluated here.
    fn evaluated(&mut self, old: Value) -> Result<Value> {
        let mut expression = self.source.expressions[old].clone();
        renew_operands(&mut expression, |operand| self.evaluated(operand))?;
        Ok(if expression.needs_pre_emit() { self.constant(expression) } else { self.append(expression) })
    }

    /// The values joined by an operator.
    fn folded(&mut self, op: BinaryOperator, values: &[Value]) -> Result<Value> {
        let joined = values.iter().copied().reduce(|left, right| self.binary(op, left, right));
        joined.ok_or_else(|| Error::unsupported("coarsening by a factor of 0 is not supported"))
    }
}
