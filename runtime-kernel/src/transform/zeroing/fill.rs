//! Fills work-group memory with zeros at the start of an entry point: all invocations together, then a barrier.
//!
//! ```text
//! for (var i = local_invocation_index; i < 1024; i += 256) { tile[i / 32 % 32][i % 32] = 0; }
//! workgroupBarrier();
//! ```

use naga::{
    Barrier, BinaryOperator, Block, Expression, Function, Handle, Literal, LocalVariable, Module, Range,
    Scalar, Span, Statement, Type, TypeInner,
};

use super::walk::dimensions;
use crate::ir::built_ins::local_index;
use crate::ir::{Global, Value};

/// Fills variables at the start of an entry point.
pub(super) fn fill(module: &mut Module, entry: usize, variables: &[Global]) {
    let word = Type { name: None, inner: TypeInner::Scalar(Scalar::U32) };
    let word = module.types.insert(word, Span::UNDEFINED);
    let group_size = module.entry_points[entry].workgroup_size;
    let mut function = std::mem::take(&mut module.entry_points[entry].function);
    let index = local_index(&module.types, &mut function.arguments, word);
    let mut filling = Fill {
        module,
        out: &mut function,
        blocks: vec![Block::new()],
        word,
        items: group_size.iter().product(),
        index,
    };
    for &variable in variables {
        let pointer = filling.constant(Expression::GlobalVariable(variable));
        filling.variable(pointer, filling.module.global_variables[variable].ty);
    }
    filling.push(Statement::ControlBarrier(Barrier::WORK_GROUP));
    let mut body = filling.blocks.pop().unwrap_or_default();
    body.append(&mut function.body);
    function.body = body;
    module.entry_points[entry].function = function;
}

struct Fill<'a> {
    module: &'a mut Module,
    out: &'a mut Function,
    /// The enclosing blocks of the next statement.
    blocks: Vec<Block>,
    word: Handle<Type>,
    /// Invocations per work-group.
    items: u32,
    /// The argument that holds the local invocation index, and the member if it is a struct.
    index: (u32, Option<u32>),
}

impl Fill<'_> {
    fn push(&mut self, statement: Statement) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement, Span::UNDEFINED);
        }
    }

    /// Appends an expression that is evaluated here.
    fn append(&mut self, expression: Expression) -> Value {
        let new = self.constant(expression);
        self.push(Statement::Emit(Range::new_from_bounds(new, new)));
        new
    }

    /// Appends an expression that needs no `Emit`.
    fn constant(&mut self, expression: Expression) -> Value {
        self.out.expressions.append(expression, Span::UNDEFINED)
    }

    fn number(&mut self, number: u32) -> Value {
        self.constant(Expression::Literal(Literal::U32(number)))
    }

    fn binary(&mut self, op: BinaryOperator, left: Value, right: u32) -> Value {
        let right = self.number(right);
        self.append(Expression::Binary { op, left, right })
    }

    /// The local invocation index.
    fn item(&mut self) -> Value {
        let (argument, member) = self.index;
        let argument = Expression::FunctionArgument(argument);
        // Writers declare an argument once per expression for it, so reuse an existing one.
        let found = self.out.expressions.iter().find(|(_, expression)| **expression == argument);
        let found = found.map(|(handle, _)| handle);
        let base = found.unwrap_or_else(|| self.constant(argument));
        match member {
            Some(index) => self.append(Expression::AccessIndex { base, index }),
            None => base,
        }
    }

    /// Fills the target of a pointer, using all invocations.
    fn variable(&mut self, pointer: Value, ty: Handle<Type>) {
        match self.module.types[ty].inner.clone() {
            TypeInner::Array { .. } => {
                let (lengths, element) = dimensions(self.module, ty);
                let all = lengths.iter().product();
                let first = self.item();
                let step = self.items;
                self.counted((first, all, step), &mut |fill, number| {
                    let element_pointer = fill.element(pointer, number, &lengths);
                    fill.zero(element_pointer, element);
                });
            }
            TypeInner::Struct { members, .. } if self.has_arrays(ty) => {
                for (index, member) in (0..).zip(&members) {
                    let pointer = self.append(Expression::AccessIndex { base: pointer, index });
                    self.variable(pointer, member.ty);
                }
            }
            _ => {
                let first = self.item();
                let condition = self.binary(BinaryOperator::Equal, first, 0);
                let accept = self.nested(&mut |fill| fill.zero(pointer, ty));
                self.push(Statement::If { condition, accept, reject: Block::new() });
            }
        }
    }

    fn has_arrays(&self, ty: Handle<Type>) -> bool {
        match &self.module.types[ty].inner {
            TypeInner::Array { .. } => true,
            TypeInner::Struct { members, .. } => members.iter().any(|member| self.has_arrays(member.ty)),
            _ => false,
        }
    }

    /// An element of nested arrays, by its flat index.
    fn element(&mut self, mut pointer: Value, number: Value, lengths: &[u32]) -> Value {
        let mut stride: u32 = lengths.iter().product();
        for (place, &length) in lengths.iter().enumerate() {
            stride /= length.max(1);
            let mut index = number;
            if stride > 1 {
                index = self.binary(BinaryOperator::Divide, index, stride);
            }
            if place > 0 {
                index = self.binary(BinaryOperator::Modulo, index, length);
            }
            pointer = self.append(Expression::Access { base: pointer, index });
        }
        pointer
    }

    /// Stores zero, using one invocation.
    fn zero(&mut self, pointer: Value, ty: Handle<Type>) {
        match self.module.types[ty].inner.clone() {
            TypeInner::Atomic(scalar) => {
                if let Some(zero) = Literal::zero(scalar) {
                    let value = self.constant(Expression::Literal(zero));
                    self.push(Statement::Store { pointer, value });
                }
            }
            TypeInner::Struct { members, .. } if self.has_atomics(ty) => {
                for (index, member) in (0..).zip(&members) {
                    let pointer = self.append(Expression::AccessIndex { base: pointer, index });
                    self.zero(pointer, member.ty);
                }
            }
            TypeInner::Array { .. } if self.has_atomics(ty) => {
                let (lengths, element) = dimensions(self.module, ty);
                let first = self.number(0);
                let all = lengths.iter().product();
                self.counted((first, all, 1), &mut |fill, number| {
                    let element_pointer = fill.element(pointer, number, &lengths);
                    fill.zero(element_pointer, element);
                });
            }
            _ => {
                let value = self.constant(Expression::ZeroValue(ty));
                self.push(Statement::Store { pointer, value });
            }
        }
    }

    fn has_atomics(&self, ty: Handle<Type>) -> bool {
        match &self.module.types[ty].inner {
            TypeInner::Atomic(_) => true,
            TypeInner::Array { base, .. } => self.has_atomics(*base),
            TypeInner::Struct { members, .. } => members.iter().any(|member| self.has_atomics(member.ty)),
            _ => false,
        }
    }

    /// The block of the statements that `write` pushes.
    fn nested(&mut self, write: &mut dyn FnMut(&mut Self)) -> Block {
        self.blocks.push(Block::new());
        write(self);
        self.blocks.pop().unwrap_or_default()
    }

    /// `for (var i = first; i < end; i += step) { … }`; a branch if that suffices.
    fn counted(&mut self, (first, end, step): (Value, u32, u32), write: &mut dyn FnMut(&mut Self, Value)) {
        // Every `first` is below `step`.
        if end <= step {
            let condition = self.binary(BinaryOperator::Less, first, end);
            let accept = self.nested(&mut |fill| write(fill, first));
            self.push(Statement::If { condition, accept, reject: Block::new() });
            return;
        }
        let counter = LocalVariable { name: Some("i".to_owned()), ty: self.word, init: None };
        let counter = self.out.local_variables.append(counter, Span::UNDEFINED);
        let pointer = self.constant(Expression::LocalVariable(counter));
        self.push(Statement::Store { pointer, value: first });
        let body = self.nested(&mut |fill| {
            let number = fill.append(Expression::Load { pointer });
            let condition = fill.binary(BinaryOperator::Less, number, end);
            let reject = fill.nested(&mut |fill| fill.push(Statement::Break));
            fill.push(Statement::If { condition, accept: Block::new(), reject });
            write(fill, number);
        });
        let continuing = self.nested(&mut |fill| {
            let number = fill.append(Expression::Load { pointer });
            let value = fill.binary(BinaryOperator::Add, number, step);
            fill.push(Statement::Store { pointer, value });
        });
        self.push(Statement::Loop { body, continuing, break_if: None });
    }
}
