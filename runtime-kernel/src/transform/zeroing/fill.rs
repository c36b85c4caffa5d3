//! Fills work-group memory with zeros at the start of an entry point: all invocations together, then a barrier.
//!
//! ```text
//! for (var i = local_invocation_index; i < 1024; i += 256) { tile[i / 32 % 32][i % 32] = 0; }
//! workgroupBarrier();
//! ```

use naga::{
    Barrier, BinaryOperator, Block, Expression, Handle, Literal, LocalVariable, Module, Span, Statement,
    Type, TypeInner,
};
use runtime_core::Result;

use super::walk::dimensions;
use crate::ir::body_writer::{BodyWriter, WriteBody};
use crate::ir::built_ins::local_index;
use crate::ir::{Global, Value, declare};

/// Fills variables at the start of an entry point.
pub(super) fn fill(module: &mut Module, entry: usize, variables: &[Global]) -> Result<()> {
    let word = declare::word(&mut module.types);
    let items = module.entry_points[entry].workgroup_size.iter().product();
    let mut function = std::mem::take(&mut module.entry_points[entry].function);
    let mut rest = std::mem::take(&mut function.body);
    let index = local_index(&module.types, &mut function.arguments, word);
    let mut filling = Fill { module, out: BodyWriter::new(function), word, items, index };
    let mut body = filling.nested(|fill| {
        for &variable in variables {
            let pointer = fill.constant(Expression::GlobalVariable(variable));
            fill.variable(pointer, fill.module.global_variables[variable].ty)?;
        }
        fill.push(Statement::ControlBarrier(Barrier::WORK_GROUP));
        Ok(())
    })?;
    body.append(&mut rest);
    filling.module.entry_points[entry].function = filling.out.finish(body);
    Ok(())
}

struct Fill<'a> {
    module: &'a mut Module,
    out: BodyWriter,
    word: Handle<Type>,
    /// Invocations per work-group.
    items: u32,
    /// The argument that holds the local invocation index, and the member if it is a struct.
    index: (u32, Option<u32>),
}

impl WriteBody for Fill<'_> {
    fn writer(&mut self) -> &mut BodyWriter {
        &mut self.out
    }
}

/// Writes what is done with an element, or with its number.
type Write<'w> = &'w mut dyn FnMut(&mut Fill<'_>, Value) -> Result<()>;

impl Fill<'_> {
    fn with_number(&mut self, op: BinaryOperator, left: Value, right: u32) -> Value {
        let right = self.number(right);
        self.binary(op, left, right)
    }

    /// The local invocation index.
    fn item(&mut self) -> Value {
        let (argument, member) = self.index;
        let argument = Expression::FunctionArgument(argument);
        // Writers declare an argument once per expression for it, so reuse an existing one.
        let found = self.out.function.expressions.iter().find(|(_, expression)| **expression == argument);
        let found = found.map(|(handle, _)| handle);
        let base = found.unwrap_or_else(|| self.constant(argument));
        match member {
            Some(index) => self.append(Expression::AccessIndex { base, index }),
            None => base,
        }
    }

    /// Fills the target of a pointer, using all invocations.
    fn variable(&mut self, pointer: Value, ty: Handle<Type>) -> Result<()> {
        match self.module.types[ty].inner.clone() {
            TypeInner::Array { .. } => {
                let (lengths, element) = dimensions(self.module, ty);
                let all = lengths.iter().product();
                let first = self.item();
                let step = self.items;
                self.counted((first, all, step), &mut |fill, number| {
                    let element_pointer = fill.element(pointer, number, &lengths);
                    fill.zero(element_pointer, element)
                })
            }
            TypeInner::Struct { members, .. } if self.has_arrays(ty) => {
                for (index, member) in (0..).zip(&members) {
                    let pointer = self.append(Expression::AccessIndex { base: pointer, index });
                    self.variable(pointer, member.ty)?;
                }
                Ok(())
            }
            _ => {
                let first = self.item();
                let condition = self.with_number(BinaryOperator::Equal, first, 0);
                let accept = self.nested(|fill| fill.zero(pointer, ty))?;
                self.push(Statement::If { condition, accept, reject: Block::new() });
                Ok(())
            }
        }
    }

    fn has_arrays(&self, ty: Handle<Type>) -> bool {
        declare::has_part(self.module, ty, &|_, inner| matches!(inner, TypeInner::Array { .. }))
    }

    /// An element of nested arrays, by its flat index.
    fn element(&mut self, mut pointer: Value, number: Value, lengths: &[u32]) -> Value {
        let mut stride: u32 = lengths.iter().product();
        for (place, &length) in lengths.iter().enumerate() {
            stride /= length.max(1);
            let mut index = number;
            if stride > 1 {
                index = self.with_number(BinaryOperator::Divide, index, stride);
            }
            if place > 0 {
                index = self.with_number(BinaryOperator::Modulo, index, length);
            }
            pointer = self.append(Expression::Access { base: pointer, index });
        }
        pointer
    }

    /// Stores zero, using one invocation.
    fn zero(&mut self, pointer: Value, ty: Handle<Type>) -> Result<()> {
        match self.module.types[ty].inner.clone() {
            TypeInner::Atomic(scalar) => {
                if let Some(zero) = Literal::zero(scalar) {
                    let value = self.constant(Expression::Literal(zero));
                    self.push(Statement::Store { pointer, value });
                }
                Ok(())
            }
            TypeInner::Struct { members, .. } if self.has_atomics(ty) => {
                for (index, member) in (0..).zip(&members) {
                    let pointer = self.append(Expression::AccessIndex { base: pointer, index });
                    self.zero(pointer, member.ty)?;
                }
                Ok(())
            }
            TypeInner::Array { .. } if self.has_atomics(ty) => {
                let (lengths, element) = dimensions(self.module, ty);
                let first = self.number(0);
                let all = lengths.iter().product();
                self.counted((first, all, 1), &mut |fill, number| {
                    let element_pointer = fill.element(pointer, number, &lengths);
                    fill.zero(element_pointer, element)
                })
            }
            _ => {
                let value = self.constant(Expression::ZeroValue(ty));
                self.push(Statement::Store { pointer, value });
                Ok(())
            }
        }
    }

    fn has_atomics(&self, ty: Handle<Type>) -> bool {
        declare::has_atomics(self.module, ty)
    }

    /// `for (var i = first; i < end; i += step) { … }`; a branch if that suffices.
    fn counted(&mut self, (first, end, step): (Value, u32, u32), write: Write<'_>) -> Result<()> {
        // Every `first` is below `step`.
        if end <= step {
            let condition = self.with_number(BinaryOperator::Less, first, end);
            let accept = self.nested(|fill| write(fill, first))?;
            self.push(Statement::If { condition, accept, reject: Block::new() });
            return Ok(());
        }
        let counter = LocalVariable { name: Some("i".to_owned()), ty: self.word, init: None };
        let counter = self.out.function.local_variables.append(counter, Span::UNDEFINED);
        let pointer = self.constant(Expression::LocalVariable(counter));
        self.push(Statement::Store { pointer, value: first });
        let body = self.nested(|fill| {
            let number = fill.append(Expression::Load { pointer });
            let condition = fill.with_number(BinaryOperator::Less, number, end);
            let reject = fill.lone(Statement::Break);
            fill.push(Statement::If { condition, accept: Block::new(), reject });
            write(fill, number)
        })?;
        let continuing = self.nested(|fill| {
            let number = fill.append(Expression::Load { pointer });
            let value = fill.with_number(BinaryOperator::Add, number, step);
            fill.push(Statement::Store { pointer, value });
            Ok(())
        })?;
        self.push(Statement::Loop { body, continuing, break_if: None });
        Ok(())
    }
}
