//! Copies the functions of one module into another.

use naga::{
    BinaryOperator, Block, Constant, Expression, FastHashMap, Function, Handle, Literal, LocalVariable,
    Module, Range, ScalarKind, Span, Statement, Type, TypeInner,
};
use runtime_core::{Error, Result};

use crate::analysis::proof::trip_count::loop_step;
use crate::ir::operands::{each_use, renew_operands, result_of};
use crate::ir::{Global, Local, Value, blocks};

/// What a scalar of the launch becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScalarSource {
    /// This member of the new immediates.
    Member(u32),
    /// A constant.
    Value(Literal),
}

/// What a tensor of the launch becomes, if its elements are kept in a variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromotedVariable {
    /// The variable, in the new module.
    pub(super) variable: Global,
    /// If it is an array: the variable with the index of its first element, and the distance of its elements.
    pub(super) array: Option<(Global, u32)>,
    /// The type of an element.
    pub(super) element: Handle<Type>,
    /// The member of the new immediates with the number of elements.
    pub(super) length: u32,
    /// Whether indices may be out of range.
    pub(super) is_checked: bool,
}

/// The copy of a module's parts into another module.
pub(super) struct Copier<'a> {
    pub(super) source: &'a Module,
    pub(super) types: Vec<Handle<Type>>,
    expressions: Vec<Value>,
    constants: FastHashMap<Handle<Constant>, Handle<Constant>>,
    pub(super) globals: FastHashMap<Global, Global>,
    pub(super) functions: FastHashMap<Handle<Function>, Handle<Function>>,
    /// The immediates of the source and of the new module.
    pub(super) immediates: [Option<Global>; 2],
    pub(super) scalars: Vec<ScalarSource>,
    pub(super) promoted: FastHashMap<Global, PromotedVariable>,
    /// By element of a promoted tensor, in the next function: the counter of the loop whose iteration is its index in the array, and
    /// what the loop adds to it.
    pub(super) counted: FastHashMap<Value, (Local, u32)>,
}

impl<'a> Copier<'a> {
    /// Copies the types and constants of a module.
    ///
    /// # Errors
    /// `Unsupported` for what kernels do not use.
    pub(super) fn new(source: &'a Module, into: &mut Module) -> Result<Self> {
        let mut copier = Self {
            source,
            types: Vec::with_capacity(source.types.len()),
            expressions: Vec::with_capacity(source.global_expressions.len()),
            constants: FastHashMap::default(),
            globals: FastHashMap::default(),
            functions: FastHashMap::default(),
            immediates: [None; 2],
            scalars: Vec::new(),
            promoted: FastHashMap::default(),
            counted: FastHashMap::default(),
        };
        copier.copy_types(into)?;
        copier.copy_constants(into)?;
        Ok(copier)
    }

    fn copy_types(&mut self, into: &mut Module) -> Result<()> {
        for (_, ty) in self.source.types.iter() {
            let mut ty = ty.clone();
            match &mut ty.inner {
                TypeInner::Array { base, .. } | TypeInner::Pointer { base, .. } => {
                    *base = self.types[base.index()];
                }
                TypeInner::Struct { members, .. } => {
                    members.iter_mut().for_each(|member| member.ty = self.types[member.ty.index()]);
                }
                _ => {}
            }
            self.types.push(into.types.insert(ty, Span::UNDEFINED));
        }
        for (kind, ty) in &self.source.special_types.predeclared_types {
            into.special_types.predeclared_types.insert(kind.clone(), self.types[ty.index()]);
        }
        Ok(())
    }

    fn copy_constants(&mut self, into: &mut Module) -> Result<()> {
        for (_, expression) in self.source.global_expressions.iter() {
            let mut expression = expression.clone();
            renew_operands(&mut expression, |operand| Ok(self.expressions[operand.index()]))?;
            self.renew_type(&mut expression);
            match &mut expression {
                Expression::Constant(constant) => *constant = self.constant(*constant, into),
                Expression::Override(_) => return Err(unsupported("an override without a value")),
                _ => {}
            }
            self.expressions.push(into.global_expressions.append(expression, Span::UNDEFINED));
        }
        Ok(())
    }

    /// The copy of a constant, whose value has been copied.
    fn constant(&mut self, old: Handle<Constant>, into: &mut Module) -> Handle<Constant> {
        if let Some(&new) = self.constants.get(&old) {
            return new;
        }
        let mut constant = self.source.constants[old].clone();
        constant.ty = self.types[constant.ty.index()];
        constant.init = self.expressions[constant.init.index()];
        let new = into.constants.append(constant, Span::UNDEFINED);
        self.constants.insert(old, new);
        new
    }

    /// The copy of a constant expression of the module.
    pub(super) fn global_expression(&self, old: Value) -> Value {
        self.expressions[old.index()]
    }

    fn renew_type(&self, expression: &mut Expression) {
        match expression {
            Expression::Compose { ty, .. }
            | Expression::ZeroValue(ty)
            | Expression::AtomicResult { ty, .. }
            | Expression::WorkGroupUniformLoadResult { ty }
            | Expression::SubgroupOperationResult { ty } => *ty = self.types[ty.index()],
            _ => {}
        }
    }

    /// Copies a function; the bindings of its arguments are dropped.
    ///
    /// # Errors
    /// `Unsupported` for what kernels do not use.
    pub(super) fn function(&mut self, function: &Function, into: &mut Module) -> Result<Function> {
        let mut copy = FunctionCopy {
            function,
            new: Function { name: function.name.clone(), ..Function::default() },
            map: Vec::with_capacity(function.expressions.len()),
            starts: Vec::with_capacity(function.expressions.len()),
            all: Vec::new(),
            immediates: None,
            promoted: FastHashMap::default(),
            zeros: FastHashMap::default(),
            arrays: FastHashMap::default(),
            counters: FastHashMap::default(),
        };
        copy.signature(self);
        copy.preamble(self);
        for (old, _) in function.expressions.iter() {
            copy.starts.push(copy.all.len());
            let new = copy.expression(self, old, into)?;
            copy.map.push(new);
        }
        copy.finish(self)
    }
}

/// The counter of a loop that only its `continuing` block changes.
fn counter_of(function: &Function, statement: &Statement) -> Option<Local> {
    match statement {
        Statement::Loop { continuing, .. } => Some(loop_step(function, continuing, &mut Vec::new())?.0),
        _ => None,
    }
}

/// Adds the counters of all loops.
fn note_counters(function: &Function, block: &Block, counters: &mut Vec<Local>) {
    for statement in block.iter() {
        counters.extend(counter_of(function, statement));
        blocks::inner(statement).for_each(|inner| note_counters(function, inner, counters));
    }
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("{what} in a fused kernel is not supported"))
}

/// A function being copied.
struct FunctionCopy<'f> {
    function: &'f Function,
    new: Function,
    /// By old expression: its value.
    map: Vec<Value>,
    /// By old expression: the number of new expressions before it.
    starts: Vec<usize>,
    all: Vec<Value>,
    immediates: Option<Value>,
    promoted: FastHashMap<Global, Value>,
    /// By variable of a promoted tensor: zero of its type.
    zeros: FastHashMap<Value, Value>,
    /// By variable of a promoted tensor that is an array: its first index and the distance of its elements.
    arrays: FastHashMap<Value, [Value; 2]>,
    /// By counter of a loop: where it is, where its first value is kept, and that value before the loop.
    counters: FastHashMap<Local, [Value; 3]>,
}

impl FunctionCopy<'_> {
    fn append(&mut self, expression: Expression) -> Value {
        let new = self.new.expressions.append(expression, Span::UNDEFINED);
        self.all.push(new);
        new
    }

    fn value(&self, old: Value) -> Value {
        self.map[old.index()]
    }

    fn signature(&mut self, copier: &Copier<'_>) {
        self.new.arguments.clone_from(&self.function.arguments);
        for argument in &mut self.new.arguments {
            argument.ty = copier.types[argument.ty.index()];
            argument.binding = None;
        }
        self.new.result.clone_from(&self.function.result);
        if let Some(result) = &mut self.new.result {
            result.ty = copier.types[result.ty.index()];
        }
        for (_, local) in self.function.local_variables.iter() {
            let ty = copier.types[local.ty.index()];
            let local = LocalVariable { name: local.name.clone(), ty, init: None };
            self.new.local_variables.append(local, Span::UNDEFINED);
        }
    }

    /// Begins with the variables that replace others: an `Emit` must not contain them.
    fn preamble(&mut self, copier: &Copier<'_>) {
        self.immediates = copier.immediates[1].map(|global| self.append(Expression::GlobalVariable(global)));
        for (&old, promoted) in &copier.promoted {
            let new = self.append(Expression::GlobalVariable(promoted.variable));
            self.promoted.insert(old, new);
            let zero = self.append(Expression::ZeroValue(promoted.element));
            self.zeros.insert(new, zero);
            if let Some((first, step)) = promoted.array {
                let first = self.append(Expression::GlobalVariable(first));
                let step = self.append(Expression::Literal(Literal::U32(step)));
                self.arrays.insert(new, [first, step]);
            }
        }
        let mut loops = Vec::new();
        note_counters(self.function, &self.function.body, &mut loops);
        for &(counter, _) in copier.counted.values() {
            let is_new = !self.counters.contains_key(&counter);
            if is_new && loops.iter().filter(|own| **own == counter).count() == 1 {
                self.keep_first(counter);
            }
        }
    }

    /// Declares a variable for the first value of the counter of a loop.
    fn keep_first(&mut self, counter: Local) {
        let LocalVariable { name, ty, .. } = self.new.local_variables[counter].clone();
        let first = LocalVariable { name: name.map(|name| format!("first_of_{name}")), ty, init: None };
        let first = self.new.local_variables.append(first, Span::UNDEFINED);
        let [at, first] = [counter, first].map(|local| self.append(Expression::LocalVariable(local)));
        let value = self.append(Expression::Load { pointer: at });
        self.counters.insert(counter, [at, first, value]);
    }

    fn is_immediates(&self, copier: &Copier<'_>, old: Value) -> bool {
        matches!(self.function.expressions[old], Expression::GlobalVariable(global) if copier.immediates[0] == Some(global))
    }

    fn expression(&mut self, copier: &mut Copier<'_>, old: Value, into: &mut Module) -> Result<Value> {
        match self.function.expressions[old] {
            Expression::GlobalVariable(global) if copier.immediates[0] == Some(global) => {
                // Where all scalars are constants, nothing uses it.
                Ok(self.immediates.unwrap_or_else(|| self.append(Expression::Literal(Literal::Bool(false)))))
            }
            Expression::AccessIndex { base, index } if self.is_immediates(copier, base) => {
                // Only a constant's load is used.
                self.scalar_pointer(copier.scalars[index as usize])
            }
            Expression::GlobalVariable(global) if self.promoted.contains_key(&global) => {
                Ok(self.promoted[&global])
            }
            Expression::Access { base, index } if self.promoted_in(copier, base).is_some() => {
                Ok(self.promoted_place((base, index), copier.counted.get(&old)))
            }
            Expression::ArrayLength(base) if self.promoted_in(copier, base).is_some() => {
                let member = self.promoted_in(copier, base).map_or(0, |promoted| promoted.length);
                self.scalar(ScalarSource::Member(member))
            }
            Expression::Load { pointer } if self.is_immediates(copier, pointer) => {
                let immediates = copier.immediates[0].ok_or_else(|| unsupported("scalars"))?;
                let ty = copier.types[copier.source.global_variables[immediates].ty.index()];
                let values = copier.scalars.clone().into_iter().map(|scalar| self.scalar(scalar));
                let components = values.collect::<Result<_>>()?;
                Ok(self.append(Expression::Compose { ty, components }))
            }
            Expression::Load { pointer } => match self.function.expressions[pointer] {
                Expression::AccessIndex { base, index } if self.is_immediates(copier, base) => {
                    self.scalar(copier.scalars[index as usize])
                }
                Expression::Access { base, index } => match self.promoted_in(copier, base) {
                    Some(promoted) => self.promoted_value((base, index, pointer), promoted),
                    None => self.plain(copier, old, into),
                },
                _ => self.plain(copier, old, into),
            },
            _ => self.plain(copier, old, into),
        }
    }

    /// The variable of a promoted tensor.
    fn promoted_in(&self, copier: &Copier<'_>, base: Value) -> Option<PromotedVariable> {
        match self.function.expressions[base] {
            Expression::GlobalVariable(global) => copier.promoted.get(&global).copied(),
            _ => None,
        }
    }

    /// The place of an element of a promoted tensor.
    fn promoted_place(&mut self, (base, index): (Value, Value), counted: Option<&(Local, u32)>) -> Value {
        let base = self.value(base);
        let Some(&[first, step]) = self.arrays.get(&base) else { return base };
        let counter = counted.and_then(|(local, step)| Some((self.counters.get(local)?, *step)));
        let (number, first, step) = match counter {
            Some((&[at, first, _], step)) => {
                let step = self.append(Expression::Literal(Literal::U32(step)));
                (self.append(Expression::Load { pointer: at }), first, step)
            }
            None => (self.value(index), first, step),
        };
        let [left, right] = [number, self.append(Expression::Load { pointer: first })]
            .map(|expr| self.append(Expression::As { expr, kind: ScalarKind::Uint, convert: Some(4) }));
        let from_first = Expression::Binary { op: BinaryOperator::Subtract, left, right };
        let mut index = self.append(from_first);
        if !matches!(self.new.expressions[step], Expression::Literal(Literal::U32(1))) {
            let divided = Expression::Binary { op: BinaryOperator::Divide, left: index, right: step };
            index = self.append(divided);
        }
        self.append(Expression::Access { base, index })
    }

    /// The element of a promoted tensor; zero if the index is out of range.
    fn promoted_value(
        &mut self,
        (base, index, pointer): (Value, Value, Value),
        promoted: PromotedVariable,
    ) -> Result<Value> {
        let pointer = self.value(pointer);
        let Some(zero) = self.zeros.get(&self.value(base)).copied().filter(|_| promoted.is_checked) else {
            return Ok(self.append(Expression::Load { pointer }));
        };
        let accept = self.append(Expression::Load { pointer });
        let right = self.scalar(ScalarSource::Member(promoted.length))?;
        let left = self.value(index);
        let left = self.append(Expression::As { expr: left, kind: ScalarKind::Uint, convert: Some(4) });
        let condition = self.append(Expression::Binary { op: BinaryOperator::Less, left, right });
        Ok(self.append(Expression::Select { condition, accept, reject: zero }))
    }

    fn scalar_pointer(&mut self, scalar: ScalarSource) -> Result<Value> {
        match (scalar, self.immediates) {
            (ScalarSource::Member(index), Some(base)) => {
                Ok(self.append(Expression::AccessIndex { base, index }))
            }
            (ScalarSource::Value(value), _) => Ok(self.append(Expression::Literal(value))),
            _ => Err(unsupported("a pointer to the scalars")),
        }
    }

    fn scalar(&mut self, scalar: ScalarSource) -> Result<Value> {
        let pointer = self.scalar_pointer(scalar)?;
        Ok(match scalar {
            ScalarSource::Member(_) => self.append(Expression::Load { pointer }),
            ScalarSource::Value(_) => pointer,
        })
    }

    fn plain(&mut self, copier: &mut Copier<'_>, old: Value, into: &mut Module) -> Result<Value> {
        let mut expression = self.function.expressions[old].clone();
        renew_operands(&mut expression, |operand| Ok(self.value(operand)))?;
        copier.renew_type(&mut expression);
        match &mut expression {
            Expression::Constant(constant) => *constant = copier.constant(*constant, into),
            Expression::Override(_) => return Err(unsupported("an override without a value")),
            Expression::GlobalVariable(global) => {
                let new = copier.globals.get(global).copied();
                *global = new.ok_or_else(|| unsupported("a variable that the entry point does not use"))?;
            }
            Expression::CallResult(function) => {
                let new = copier.functions.get(function).copied();
                *function = new.ok_or_else(|| unsupported("a call"))?;
            }
            _ => {}
        }
        Ok(self.append(expression))
    }

    fn finish(mut self, copier: &Copier<'_>) -> Result<Function> {
        let inits = self.function.local_variables.iter().map(|(_, local)| local.init).collect::<Vec<_>>();
        for ((_, local), init) in self.new.local_variables.iter_mut().zip(inits) {
            local.init = init.map(|init| self.map[init.index()]);
        }
        for (old, name) in &self.function.named_expressions {
            let new = self.value(*old);
            if self.starts[old.index()] < self.end(*old) {
                self.new.named_expressions.insert(new, name.clone());
            }
        }
        let mut body = self.function.body.clone();
        self.renew(copier, &mut body)?;
        self.new.body = body;
        Ok(self.new)
    }

    /// The number of new expressions up to and with an old one.
    fn end(&self, old: Value) -> usize {
        self.starts.get(old.index() + 1).copied().unwrap_or(self.all.len())
    }

    fn renew(&self, copier: &Copier<'_>, block: &mut Block) -> Result<()> {
        for (mut statement, _) in std::mem::take(block).span_into_iter() {
            if let Statement::Emit(range) = &mut statement {
                let Some((first, last)) = range.first_and_last() else { continue };
                let (start, end) = (self.starts[first.index()], self.end(last));
                if start == end {
                    continue;
                }
                *range = Range::new_from_bounds(self.all[start], self.all[end - 1]);
            }
            if let Some([_, first, value]) =
                counter_of(self.function, &statement).and_then(|counter| self.counters.get(&counter))
            {
                block.push(Statement::Emit(Range::new_from_bounds(*value, *value)), Span::UNDEFINED);
                block.push(Statement::Store { pointer: *first, value: *value }, Span::UNDEFINED);
            }
            each_use(&mut statement, |operand| *operand = self.value(*operand));
            result_of(&mut statement).into_iter().for_each(|result| *result = self.value(*result));
            if let Statement::Call { function, .. } = &mut statement {
                *function = *copier.functions.get(function).ok_or_else(|| unsupported("a call"))?;
            }
            blocks::inner_mut(&mut statement).try_for_each(|inner| self.renew(copier, inner))?;
            block.push(statement, Span::UNDEFINED);
        }
        Ok(())
    }
}
