//! Rewrites a function's body statement by statement, with branches around accesses that may be out of range.

use naga::proc::TypeResolution;
use naga::{
    AddressSpace, AtomicFunction, Barrier, BinaryOperator, Block, Expression, FastHashMap, Function, Handle,
    Literal, LocalVariable, MathFunction, ScalarKind, Span, Statement, Type, TypeInner,
};
use runtime_core::{Error, Result};

use super::{BoundsChecker, Check, Source};
use crate::analysis::proof::range::{self, Element, Limit};
use crate::ir::body_writer::{BodyWriter, WriteBody};
use crate::ir::operands::{renew_operands, renew_uses, result_of};
use crate::ir::{Global, Local, Value, declare};
use crate::transform::inline::without_body;

/// A function being written.
pub(super) struct Body<'b, 'p> {
    pub(super) checker: &'b mut BoundsChecker,
    pub(super) source: &'b Source<'p>,
    pub(super) out: BodyWriter,
    /// By expression of the source.
    map: Vec<Option<Value>>,
    /// By variable of the source.
    locals: Vec<Local>,
    /// By type: a variable that merges a guarded value with zero.
    merge_variables: FastHashMap<Handle<Type>, Value>,
    /// Whether this is the unchecked variant.
    unchecked: bool,
}

impl WriteBody for Body<'_, '_> {
    fn writer(&mut self) -> &mut BodyWriter {
        &mut self.out
    }
}

impl<'b, 'p> Body<'b, 'p> {
    pub(super) fn new(checker: &'b mut BoundsChecker, source: &'b Source<'p>) -> Self {
        let out = BodyWriter::new(without_body(source.context.function));
        Self {
            checker,
            source,
            out,
            map: Vec::new(),
            locals: Vec::new(),
            merge_variables: FastHashMap::default(),
            unchecked: false,
        }
    }

    /// Finishes the function with its body.
    pub(super) fn finish(self, body: Block) -> Function {
        self.out.finish(body)
    }

    /// Appends a copy of the whole body.
    pub(super) fn copy_body(&mut self, unchecked: bool) -> Result<Block> {
        self.unchecked = unchecked;
        let function = self.source.context.function;
        let expressions = &function.expressions;
        self.map.clear();
        self.map.resize(expressions.len(), None);
        for (old, expression) in expressions.iter() {
            if expression.needs_pre_emit() && !matches!(expression, Expression::LocalVariable(_)) {
                let new = self.constant(expression.clone());
                self.map[old.index()] = Some(new);
            }
        }
        self.locals()?;
        self.copied(&function.body)
    }

    /// Copies the variables, which both variants in an entry point share: only one of them runs.
    fn locals(&mut self) -> Result<()> {
        let function = self.source.context.function;
        if self.locals.is_empty() {
            for (_, local) in function.local_variables.iter() {
                let init = local.init.map(|init| self.value(init)).transpose()?;
                let variable = LocalVariable { name: local.name.clone(), ty: local.ty, init };
                self.locals.push(self.out.function.local_variables.append(variable, Span::UNDEFINED));
            }
        }
        for (old, expression) in function.expressions.iter() {
            if let Expression::LocalVariable(local) = *expression {
                let new = self.constant(Expression::LocalVariable(self.locals[local.index()]));
                self.map[old.index()] = Some(new);
            }
        }
        Ok(())
    }

    /// The new expression for one of the source; one that no statement evaluates is copied at its first use.
    pub(super) fn value(&mut self, old: Value) -> Result<Value> {
        if let Some(new) = self.map[old.index()] {
            return Ok(new);
        }
        let expression = self.renewed(old)?;
        let new = self.constant(expression);
        self.map[old.index()] = Some(new);
        Ok(new)
    }

    /// An expression of the source with new operands.
    fn renewed(&mut self, old: Value) -> Result<Expression> {
        let mut expression = self.source.context.function.expressions[old].clone();
        renew_operands(&mut expression, |operand| self.value(operand))?;
        Ok(expression)
    }

    /// Copies an expression of the source, to be evaluated here.
    fn copy(&mut self, old: Value) -> Result<Value> {
        let expression = self.renewed(old)?;
        Ok(self.append(expression))
    }

    /// A copy of a block of the source.
    fn copied(&mut self, block: &Block) -> Result<Block> {
        self.nested(|body| block.iter().try_for_each(|statement| body.statement(statement)))
    }

    fn statement(&mut self, statement: &Statement) -> Result<()> {
        let new = match statement {
            Statement::Emit(range) => return range.clone().try_for_each(|old| self.emit(old)),
            Statement::Block(inner) => Statement::Block(self.copied(inner)?),
            Statement::If { condition, accept, reject } => {
                let condition = self.value(*condition)?;
                Statement::If { condition, accept: self.copied(accept)?, reject: self.copied(reject)? }
            }
            Statement::Switch { selector, cases } => {
                let (selector, mut cases) = (self.value(*selector)?, cases.clone());
                for case in &mut cases {
                    case.body = self.copied(&case.body)?;
                }
                Statement::Switch { selector, cases }
            }
            Statement::Loop { body, continuing, break_if } => Statement::Loop {
                body: self.copied(body)?,
                continuing: self.copied(continuing)?,
                break_if: break_if.map(|condition| self.value(condition)).transpose()?,
            },
            Statement::Store { pointer, .. } => match self.condition(*pointer)? {
                Some(condition) => return self.skipped(condition, statement),
                None => return self.simple(statement).map(|_| ()),
            },
            Statement::Atomic { pointer, result, .. } => return self.atomic(statement, *pointer, *result),
            Statement::CooperativeStore { target, data } => return self.tile_store(*target, *data),
            Statement::WorkGroupUniformLoad { pointer, result } => {
                return self.workgroup_uniform_load(statement, *pointer, *result);
            }
            simple => return self.simple(simple).map(|_| ()),
        };
        self.push(new);
        Ok(())
    }

    /// A statement without a block; returns the value that it provides.
    fn simple(&mut self, statement: &Statement) -> Result<Option<Value>> {
        let mut statement = statement.clone();
        renew_uses(&mut statement, |operand| self.value(operand))?;
        if let Statement::Call { function, .. } = &mut statement {
            *function = self.variant(*function);
        }
        let mut given = None;
        if let Some(result) = result_of(&mut statement) {
            let mut expression = self.source.context.function.expressions[*result].clone();
            if let Expression::CallResult(function) = &mut expression {
                *function = self.variant(*function);
            }
            let new = self.constant(expression);
            self.map[result.index()] = Some(new);
            *result = new;
            given = Some(new);
        }
        self.push(statement);
        Ok(given)
    }

    fn variant(&self, function: Handle<Function>) -> Handle<Function> {
        let variants = self.checker.variants[function.index()];
        if self.unchecked { variants.unchecked } else { variants.checked }
    }

    fn emit(&mut self, old: Value) -> Result<()> {
        if self.source.context.function.expressions[old].needs_pre_emit() {
            return Ok(());
        }
        let context = self.source.context;
        if let Expression::CooperativeLoad { columns, rows, role, data } = context.function.expressions[old] {
            let (condition, data) = self.tile(data)?;
            let load = Expression::CooperativeLoad { columns, rows, role, data };
            let new = match condition {
                Some(condition) => self.value_or_zero(condition, old, |body| Ok(body.append(load)))?,
                None => self.append(load),
            };
            self.map[old.index()] = Some(new);
            return Ok(());
        }
        let condition = match context.function.expressions[old] {
            Expression::Load { pointer } => self.condition(pointer)?,
            Expression::Access { .. } if !context.is_pointer(old) => self.index_condition(old)?,
            _ => None,
        };
        let new = match condition {
            Some(condition) => self.value_or_zero(condition, old, |body| body.copy(old))?,
            None => match self.clamped(old)? {
                Some(new) => new,
                None => self.copy(old)?,
            },
        };
        self.map[old.index()] = Some(new);
        Ok(())
    }

    /// A pointer to an element of a private or function variable whose index is checked, with the index also
    /// clamped to the last element: NVIDIA's Vulkan driver (580.159) computes the address in more bits than the
    /// index has, so an index that wraps around would pass its check and address something else.
    fn clamped(&mut self, access: Value) -> Result<Option<Value>> {
        let context = self.source.context;
        let Expression::Access { base, index } = context.function.expressions[access] else {
            return Ok(None);
        };
        let own = [AddressSpace::Function, AddressSpace::Private];
        let (Some(Check { limit: Limit::Constant(length), .. }), Some(scalar)) =
            (self.check(access), context.inner(index).scalar())
        else {
            return Ok(None);
        };
        if !context.inner(access).pointer_space().is_some_and(|space| own.contains(&space)) {
            return Ok(None);
        }
        let last = length.saturating_sub(1);
        let last = if scalar.width == 8 { Literal::U64(last.into()) } else { Literal::U32(last) };
        let (base, index) = (self.value(base)?, self.unsigned(index)?);
        let last = self.constant(Expression::Literal(last));
        let fun = MathFunction::Min;
        let index =
            self.append(Expression::Math { fun, arg: index, arg1: Some(last), arg2: None, arg3: None });
        Ok(Some(self.append(Expression::Access { base, index })))
    }

    /// A statement without a value, skipped if the condition does not hold.
    fn skipped(&mut self, condition: Value, statement: &Statement) -> Result<()> {
        let accept = self.nested(|body| body.simple(statement).map(|_| ()))?;
        self.push(Statement::If { condition, accept, reject: Block::new() });
        Ok(())
    }

    fn atomic(&mut self, statement: &Statement, pointer: Value, result: Option<Value>) -> Result<()> {
        let Some(condition) = self.condition(pointer)? else { return self.simple(statement).map(|_| ()) };
        let Some(result) = result else { return self.skipped(condition, statement) };
        let value = self.value_or_zero(condition, result, |body| {
            body.simple(statement)?
                .ok_or_else(|| Error::unsupported("an atomic operation without its result is not supported"))
        })?;
        self.map[result.index()] = Some(value);
        Ok(())
    }

    /// A load between two barriers, which all invocations of the group reach.
    fn workgroup_uniform_load(&mut self, statement: &Statement, pointer: Value, result: Value) -> Result<()> {
        let Some(condition) = self.condition(pointer)? else { return self.simple(statement).map(|_| ()) };
        self.push(Statement::ControlBarrier(Barrier::WORK_GROUP));
        let value = self.value_or_zero(condition, result, |body| {
            let pointer = body.value(pointer)?;
            Ok(body.append(Expression::Load { pointer }))
        })?;
        self.push(Statement::ControlBarrier(Barrier::WORK_GROUP));
        self.map[result.index()] = Some(value);
        Ok(())
    }

    /// The condition that all elements of an access chain are in range.
    fn condition(&mut self, mut pointer: Value) -> Result<Option<Value>> {
        let mut all = None;
        while let Some(element) = Element::of(self.source.context.function, pointer) {
            if let Some(one) = self.index_condition(pointer)? {
                all = Some(match all {
                    Some(all) => self.binary(BinaryOperator::LogicalAnd, one, all),
                    None => one,
                });
            }
            pointer = element.base;
        }
        Ok(all)
    }

    /// The check that an access needs in this variant.
    fn check(&self, access: Value) -> Option<Check> {
        self.source.checks[access.index()].filter(|check| !(self.unchecked && check.covered))
    }

    /// An index as an unsigned number of the same width.
    pub(super) fn unsigned(&mut self, index: Value) -> Result<Value> {
        let expr = self.value(index)?;
        Ok(match self.source.context.inner(index).scalar_kind() {
            Some(ScalarKind::Sint) => {
                self.append(Expression::As { expr, kind: ScalarKind::Uint, convert: None })
            }
            _ => expr,
        })
    }

    /// The condition that one element is in range.
    fn index_condition(&mut self, access: Value) -> Result<Option<Value>> {
        let check = self.check(access);
        let context = self.source.context;
        let Some(element) = Element::of(context.function, access) else { return Ok(None) };
        let proven = if check.is_none() { self.proven(element) } else { None };
        let Some(limit) = check.map(|check| check.limit).or(proven.map(|(_, limit)| limit)) else {
            return Ok(None);
        };
        let index = match element.index {
            None => self.number(element.known),
            Some(index) => self.unsigned(index)?,
        };
        let mut limit = match limit {
            Limit::Constant(length) => self.number(length),
            Limit::Runtime(_) => {
                let array = self.value(element.base)?;
                self.append(Expression::ArrayLength(array))
            }
        };
        // WGSL has no 64-bit indices, but naga accepts them, and compares numbers of different widths without an
        // error.
        let wide = |index| context.inner(index).scalar().is_some_and(|scalar| scalar.width == 8);
        if element.index.is_some_and(wide) {
            limit = self.append(Expression::As { expr: limit, kind: ScalarKind::Uint, convert: Some(8) });
        }
        let condition = self.binary(BinaryOperator::Less, index, limit);
        if let Some((report, _)) = proven {
            let line = self.source.program.line(context.function.expressions.get_span(access));
            let reject = self.report(report, line.unwrap_or(u32::MAX));
            self.push(Statement::If { condition, accept: Block::new(), reject });
        }
        Ok(Some(condition))
    }

    /// With reports enabled: the report variable, and the limit of a proven element's index.
    fn proven(&self, element: Element) -> Option<(Global, Limit)> {
        let report = self.checker.report.filter(|_| element.index.is_some())?;
        Some((report, range::length(self.source.context, element.base)?))
    }

    /// Stores a line number in the report; the greatest one wins.
    fn report(&mut self, report: Global, line: u32) -> Block {
        let pointer = self.constant(Expression::GlobalVariable(report));
        let value = self.number(line);
        self.lone(Statement::Atomic { pointer, fun: AtomicFunction::Max, value, result: None })
    }

    /// Adds a dead use of the report variable, so that every entry point binds it.
    pub(super) fn with_report_named(&mut self, block: Block) -> Result<Block> {
        let Some(report) = self.checker.report else { return Ok(block) };
        self.nested(|body| {
            let condition = body.constant(Expression::Literal(Literal::Bool(false)));
            let accept = body.report(report, 0);
            body.push(Statement::If { condition, accept, reject: Block::new() });
            body.push(Statement::Block(block));
            Ok(())
        })
    }

    /// The value that `write` returns if the condition holds, otherwise zero; it has the type of `like`.
    fn value_or_zero(
        &mut self,
        condition: Value,
        like: Value,
        write: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        let ty = match &self.source.context.info[like].ty {
            TypeResolution::Handle(ty) => *ty,
            TypeResolution::Value(inner) => self.type_of(inner.clone()),
        };
        let pointer = match self.merge_variables.get(&ty) {
            Some(&pointer) => pointer,
            None => {
                let variable = LocalVariable { name: None, ty, init: None };
                let local = self.out.function.local_variables.append(variable, Span::UNDEFINED);
                let pointer = self.constant(Expression::LocalVariable(local));
                self.merge_variables.insert(ty, pointer);
                pointer
            }
        };
        let zero = self.constant(Expression::ZeroValue(ty));
        let accept = self.nested(|body| {
            let value = write(body)?;
            body.push(Statement::Store { pointer, value });
            Ok(())
        })?;
        let reject = self.lone(Statement::Store { pointer, value: zero });
        self.push(Statement::If { condition, accept, reject });
        Ok(self.append(Expression::Load { pointer }))
    }

    pub(super) fn type_of(&mut self, inner: TypeInner) -> Handle<Type> {
        declare::ty(&mut self.checker.types, inner)
    }
}
