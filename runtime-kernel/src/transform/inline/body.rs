//! Copies the body of an entry point expression by expression, inlining calls.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, ArraySize, Block, Expression, FastHashMap, Function, Handle, Literal, LocalVariable,
    Module, Range, Span, Statement, Type, TypeInner, UniqueArena,
};
use runtime_core::Result;

use super::unroll::Unrolling;
use super::{Inlining, LARGE, MAX_SIZE, Purpose, return_elimination, scalar_replacement};
use crate::analysis::proof::constant::{KnownValues, fold};
use crate::ir::operands::{renew_operands, renew_uses, result_of};
use crate::ir::variables::{Root, loaded, root};
use crate::ir::{Global, Local, Value};

/// A copy of an entry point's function with the chosen calls inlined.
pub(super) fn rebuild(
    (module, info): (&Module, &ModuleInfo),
    choices: &[Inlining],
    (types, bool_type, purpose): (&UniqueArena<Type>, Handle<Type>, Purpose),
    (entry, spent): (usize, &mut usize),
) -> Result<Function> {
    let function = &module.entry_points[entry].function;
    let out = without_body(function);
    let (privates, logical_operations, known) =
        (FastHashMap::default(), FastHashMap::default(), KnownValues::default());
    let counters = Vec::new();
    let mut rebuild = Rebuild {
        module,
        info,
        choices,
        bool_type,
        out,
        privates,
        logical_operations,
        known,
        unrolling: Unrolling::of(purpose),
        as_written: purpose == Purpose::AsWritten,
        counters,
        entry,
        statements: *spent,
    };
    let mut frame = Frame::new((function, info.get_entry_point(entry)), Vec::new(), Exit::Keep);
    frame.locals = function
        .local_variables
        .iter()
        .map(|(_, local)| rebuild.local(local.name.clone(), local.ty))
        .collect();
    for ((_, local), &new) in function.local_variables.iter().zip(&frame.locals.clone()) {
        let init = local.init.map(|init| rebuild.value(&mut frame, init)).transpose()?;
        rebuild.out.local_variables.get_mut(new).init = init;
        let value = init.and_then(|init| rebuild.literal(init));
        rebuild.known.set(new, value);
    }
    let mut body = rebuild.block(&mut frame, &function.body, 0)?;
    return_elimination::strip_trailing(&mut body);
    rebuild.out.body = body;
    *spent = rebuild.spent();
    if !rebuild.as_written {
        scalar_replacement::replace_arrays(types, &mut rebuild.out);
    }
    Ok(rebuild.out)
}

/// A function with the same signature, and nothing else yet.
pub(crate) fn without_body(function: &Function) -> Function {
    Function {
        name: function.name.clone(),
        arguments: function.arguments.clone(),
        result: function.result.clone(),
        diagnostic_filter_leaf: function.diagnostic_filter_leaf,
        ..Function::default()
    }
}

/// What `return` is lowered to.
#[derive(Clone, Copy)]
pub(super) enum Exit {
    /// Itself.
    Keep,
    /// A store of the value, as the last statement.
    Tail(Option<Local>),
    /// A store of the value, then a break out of the loop around the body; inside inner loops, a flag is set
    /// first.
    Leave { result: Option<Local>, flag: Local },
}

/// A source function being copied into the new body.
pub(super) struct Frame<'f> {
    pub(super) source: &'f Function,
    pub(super) info: &'f FunctionInfo,
    /// By expression of the source: its new handle.
    pub(super) map: Vec<Option<Value>>,
    pub(super) locals: Vec<Local>,
    pub(super) arguments: Vec<Value>,
    pub(super) exit: Exit,
}

impl<'f> Frame<'f> {
    fn new((source, info): (&'f Function, &'f FunctionInfo), arguments: Vec<Value>, exit: Exit) -> Self {
        Self { source, info, map: vec![None; source.expressions.len()], locals: Vec::new(), arguments, exit }
    }
}

pub(super) struct Rebuild<'m> {
    pub(super) module: &'m Module,
    info: &'m ModuleInfo,
    choices: &'m [Inlining],
    bool_type: Handle<Type>,
    pub(super) out: Function,
    pub(super) privates: FastHashMap<Global, Local>,
    /// The variables of `&&` and `||` that have become operations.
    pub(super) logical_operations: FastHashMap<Local, Value>,
    /// Variables with a known value at this point.
    pub(super) known: KnownValues,
    pub(super) unrolling: Unrolling,
    /// Calls are inlined, and nothing else changes.
    pub(super) as_written: bool,
    /// The counters of loops being unrolled.
    pub(super) counters: Vec<Local>,
    entry: usize,
    /// Statements so far, plus the statements and expressions of earlier entry points.
    statements: usize,
}

impl<'m> Rebuild<'m> {
    fn local(&mut self, name: Option<String>, ty: Handle<Type>) -> Local {
        self.out.local_variables.append(LocalVariable { name, ty, init: None }, Span::UNDEFINED)
    }

    pub(super) fn append(&mut self, expression: Expression) -> Value {
        self.out.expressions.append(expression, Span::UNDEFINED)
    }

    /// The new handle of an expression that was copied already, or that needs no `Emit`.
    pub(super) fn value(&mut self, frame: &mut Frame<'_>, old: Value) -> Result<Value> {
        if let Some(new) = frame.map[old.index()] {
            return Ok(new);
        }
        let new = match frame.source.expressions[old] {
            Expression::FunctionArgument(index) if !frame.arguments.is_empty() => {
                frame.arguments[index as usize]
            }
            Expression::LocalVariable(local) => {
                self.append(Expression::LocalVariable(frame.locals[local.index()]))
            }
            Expression::GlobalVariable(global)
                if self.module.global_variables[global].space == AddressSpace::Private
                    && !self.as_written =>
            {
                let local = self.private(global)?;
                self.append(Expression::LocalVariable(local))
            }
            _ => self.copy(frame, old)?,
        };
        frame.map[old.index()] = Some(new);
        Ok(new)
    }

    /// Copies an expression with its operands' new handles.
    fn copy(&mut self, frame: &mut Frame<'_>, old: Value) -> Result<Value> {
        let mut expression = frame.source.expressions[old].clone();
        renew_operands(&mut expression, |operand| self.value(frame, operand))?;
        let expression = self.simplified(frame, old, expression);
        Ok(self.out.expressions.append(expression, frame.source.expressions.get_span(old)))
    }

    /// Folds operations on constants, and turns accesses by a constant into `AccessIndex`.
    fn simplified(&self, frame: &Frame<'_>, old: Value, new: Expression) -> Expression {
        match new {
            Expression::Binary { op, left, right } => {
                let value = self.literal(left).zip(self.literal(right)).and_then(|(a, b)| fold(op, a, b));
                value.map_or(new, Expression::Literal)
            }
            Expression::Access { base, index } => {
                let Expression::Access { base: old_base, .. } = frame.source.expressions[old] else {
                    return new;
                };
                let index = match self.literal(index) {
                    Some(Literal::U32(index)) => index,
                    Some(Literal::I32(index)) if index >= 0 => index.cast_unsigned(),
                    _ => return new,
                };
                let types = &self.module.types;
                let inner = match *frame.info[old_base].ty.inner_with(types) {
                    TypeInner::Pointer { base, .. } => &types[base].inner,
                    ref other => other,
                };
                match *inner {
                    TypeInner::Array { size: ArraySize::Constant(length), .. } if index < length.get() => {
                        Expression::AccessIndex { base, index }
                    }
                    _ => new,
                }
            }
            other => other,
        }
    }

    /// The local variable that replaces a private one.
    fn private(&mut self, global: Global) -> Result<Local> {
        if let Some(&local) = self.privates.get(&global) {
            return Ok(local);
        }
        let variable = &self.module.global_variables[global];
        let local = self.local(variable.name.clone(), variable.ty);
        let init = variable.init.map(|init| self.global_value(init)).transpose()?;
        self.out.local_variables.get_mut(local).init = init;
        self.privates.insert(global, local);
        Ok(local)
    }

    /// Copies a constant expression of the module into the function.
    fn global_value(&mut self, old: Value) -> Result<Value> {
        let mut expression = self.module.global_expressions[old].clone();
        renew_operands(&mut expression, |operand| self.global_value(operand))?;
        Ok(self.append(expression))
    }

    /// Statements and expressions so far, including earlier entry points.
    fn spent(&self) -> usize {
        self.statements + self.out.expressions.len()
    }

    /// Counts a statement against the limit.
    fn count(&mut self) -> Result<()> {
        self.statements += 1;
        if self.spent() <= MAX_SIZE {
            Ok(())
        } else {
            Err(super::too_long(&self.module.entry_points[self.entry]))
        }
    }

    /// `depth` counts the enclosing loops and switches of the same function.
    pub(super) fn block(&mut self, frame: &mut Frame<'_>, block: &Block, depth: u32) -> Result<Block> {
        let mut out = Block::with_capacity(block.len());
        for (statement, &span) in block.span_iter() {
            self.count()?;
            self.statement(frame, (statement, span), depth, &mut out)?;
        }
        Ok(out)
    }

    pub(super) fn statement(
        &mut self,
        frame: &mut Frame<'_>,
        (statement, span): (&Statement, Span),
        depth: u32,
        out: &mut Block,
    ) -> Result<()> {
        match statement {
            Statement::Emit(range) => {
                for old in range.clone() {
                    self.emit(frame, old, out)?;
                }
            }
            Statement::Block(block) => {
                let block = self.block(frame, block, depth)?;
                out.push(Statement::Block(block), span);
            }
            Statement::If { .. } | Statement::Switch { .. } | Statement::Loop { .. } => {
                self.control(frame, (statement, span), depth, out)?;
            }
            Statement::Return { value } => self.lower_return(frame, (*value, span), depth, out)?,
            Statement::Call { function, arguments, result } if self.inlines(*function) => {
                let arguments = arguments
                    .iter()
                    .map(|&argument| self.value(frame, argument))
                    .collect::<Result<Vec<_>>>()?;
                let arguments = match self.unrolling {
                    Unrolling::None => self.opaque_arguments(*function, &arguments, out),
                    Unrolling::Short | Unrolling::OfMatrices => arguments,
                };
                let value = self.call(*function, arguments, span, out)?;
                if let (Some(result), Some(value)) = (result, value) {
                    frame.map[result.index()] = Some(value);
                }
            }
            simple => self.simple(frame, (simple, span), out)?,
        }
        Ok(())
    }

    /// A statement without a block.
    fn simple(
        &mut self,
        frame: &mut Frame<'_>,
        (statement, span): (&Statement, Span),
        out: &mut Block,
    ) -> Result<()> {
        let mut statement = statement.clone();
        renew_uses(&mut statement, |operand| self.value(frame, operand))?;
        if let Some(result) = result_of(&mut statement) {
            // Each copy of an unrolled statement provides a value of its own.
            let old = *result;
            frame.map[old.index()] = None;
            *result = self.value(frame, old)?;
            if let Some(name) = frame.source.named_expressions.get(&old) {
                self.out.named_expressions.insert(*result, name.clone());
            }
        }
        if let Statement::Store { pointer, .. } = statement
            && let Root::Local(local) = root(&self.out, pointer)
        {
            self.logical_operations.remove(&local);
        }
        self.known.note((self.module, &self.out), &statement);
        out.push(statement, span);
        Ok(())
    }

    fn emit(&mut self, frame: &mut Frame<'_>, old: Value, out: &mut Block) -> Result<()> {
        if let Some(local) = loaded(frame.source, old).map(|local| frame.locals[local.index()]) {
            let counter = self.known.value(local).filter(|_| self.counters.contains(&local));
            let known = self.logical_operations.get(&local).copied();
            let known = known.or_else(|| counter.map(|value| self.append(Expression::Literal(value))));
            if known.is_some() {
                frame.map[old.index()] = known;
                return Ok(());
            }
        }
        let right = self.make_opaque(frame, old, out)?;
        let new = self.copy(frame, old)?;
        if let Some((right, seen)) = right {
            frame.map[right.index()] = Some(seen);
        }
        frame.map[old.index()] = Some(new);
        if self.out.expressions[new].needs_pre_emit() {
            return Ok(());
        }
        if let Some(name) = frame.source.named_expressions.get(&old) {
            self.out.named_expressions.insert(new, name.clone());
        }
        push_emit(out, new, frame.source.expressions.get_span(old));
        Ok(())
    }

    fn inlines(&self, function: Handle<Function>) -> bool {
        match self.choices[function.index()] {
            Inlining::Must => true,
            Inlining::May => self.out.expressions.len() < LARGE,
            Inlining::No => false,
        }
    }

    /// Passes values through variables, so that naga sees no constants where the program has arguments.
    fn opaque_arguments(
        &mut self,
        function: Handle<Function>,
        arguments: &[Value],
        out: &mut Block,
    ) -> Vec<Value> {
        let module = self.module;
        let declared = &module.functions[function].arguments;
        let pass = |(&argument, declared): (&Value, &naga::FunctionArgument)| {
            if module.types[declared.ty].inner.pointer_space().is_some() {
                return argument;
            }
            let local = self.local(None, declared.ty);
            let pointer = self.append(Expression::LocalVariable(local));
            out.push(Statement::Store { pointer, value: argument }, Span::UNDEFINED);
            self.read(local, out)
        };
        arguments.iter().zip(declared).map(pass).collect()
    }

    /// Inlines a call; returns its result, if it has one.
    fn call(
        &mut self,
        function: Handle<Function>,
        arguments: Vec<Value>,
        span: Span,
        out: &mut Block,
    ) -> Result<Option<Value>> {
        let module: &'m Module = self.module;
        let source = &module.functions[function];
        let result = source.result.as_ref().map(|result| self.local(None, result.ty));
        let at_end = return_elimination::returns_at_end(&source.body);
        let form = if at_end { None } else { return_elimination::structured(source.body.clone()) };
        let early = !at_end && form.is_none();
        let exit = if early {
            let flag = self.local(None, self.bool_type);
            self.assign(flag, Expression::Literal(Literal::Bool(false)), out);
            Exit::Leave { result, flag }
        } else {
            Exit::Tail(result)
        };
        let mut frame = Frame::new((source, &self.info[function]), arguments, exit);
        self.fresh_locals(&mut frame, out)?;
        let mut body = self.block(&mut frame, form.as_ref().unwrap_or(&source.body), 0)?;
        if early {
            // Values known at the end of the body need not hold at its returns.
            self.forget_assigned(&frame, &[&source.body]);
            body.push(Statement::Break, span);
            out.push(Statement::Loop { body, continuing: Block::new(), break_if: None }, span);
        } else {
            out.append(&mut body);
        }
        Ok(result.map(|result| self.read(result, out)))
    }

    /// Initialises the local variables of an inlined function at each call, including calls in loops.
    fn fresh_locals(&mut self, frame: &mut Frame<'_>, out: &mut Block) -> Result<()> {
        for (_, local) in frame.source.local_variables.iter() {
            let new = self.local(local.name.clone(), local.ty);
            frame.locals.push(new);
            let pointer = self.append(Expression::LocalVariable(new));
            let value = match local.init {
                Some(init) => self.emitted_value(frame, init, out)?,
                None => self.append(Expression::ZeroValue(local.ty)),
            };
            let store = Statement::Store { pointer, value };
            self.known.note((self.module, &self.out), &store);
            out.push(store, Span::UNDEFINED);
        }
        Ok(())
    }

    /// The value of an initialiser, as a statement may use it: an initialiser itself needs no `Emit`.
    fn emitted_value(&mut self, frame: &mut Frame<'_>, init: Value, out: &mut Block) -> Result<Value> {
        let copied = self.out.expressions.len();
        let value = self.value(frame, init)?;
        for (handle, expression) in self.out.expressions.iter().skip(copied) {
            if !expression.needs_pre_emit() {
                push_emit(out, handle, Span::UNDEFINED);
            }
        }
        Ok(value)
    }

    fn assign(&mut self, local: Local, value: Expression, out: &mut Block) {
        let pointer = self.append(Expression::LocalVariable(local));
        let value = self.append(value);
        out.push(Statement::Store { pointer, value }, Span::UNDEFINED);
    }

    pub(super) fn read(&mut self, local: Local, out: &mut Block) -> Value {
        let pointer = self.append(Expression::LocalVariable(local));
        let value = self.append(Expression::Load { pointer });
        push_emit(out, value, Span::UNDEFINED);
        value
    }

    /// Lowers a `return` of the current function.
    fn lower_return(
        &mut self,
        frame: &mut Frame<'_>,
        (value, span): (Option<Value>, Span),
        depth: u32,
        out: &mut Block,
    ) -> Result<()> {
        let value = value.map(|value| self.value(frame, value)).transpose()?;
        let result = match frame.exit {
            Exit::Keep => {
                out.push(Statement::Return { value }, span);
                return Ok(());
            }
            Exit::Tail(result) | Exit::Leave { result, .. } => result,
        };
        if let (Some(result), Some(value)) = (result, value) {
            let pointer = self.append(Expression::LocalVariable(result));
            out.push(Statement::Store { pointer, value }, span);
        }
        if let Exit::Leave { flag, .. } = frame.exit {
            if depth > 0 {
                self.assign(flag, Expression::Literal(Literal::Bool(true)), out);
            }
            out.push(Statement::Break, span);
        }
        Ok(())
    }
}

/// Appends the evaluation of an expression, extending the preceding range where possible.
pub(super) fn push_emit(out: &mut Block, handle: Value, span: Span) {
    if let Some(Statement::Emit(range)) = out.last_mut()
        && let Some((first, last)) = range.first_and_last()
        && last.index() + 1 == handle.index()
    {
        *range = Range::new_from_bounds(first, handle);
        return;
    }
    out.push(Statement::Emit(Range::new_from_bounds(handle, handle)), span);
}
