//! Cooperative matrices without matrix units: each invocation of a subgroup holds a part of a matrix, and every operation
//! becomes a call. Operators on whole matrices need none: they are those on the parts.

use std::collections::{BTreeMap, BTreeSet};

use naga::valid::FunctionInfo;
use naga::{
    Block, CooperativeData, Expression, Function, Handle, Literal, Module, Range, ScalarKind, Span,
    Statement, Type, TypeInner,
};
use runtime_core::{Error, ErrorKind, Result};

use super::arrays::Array;
use super::import::Imported;
use super::library::Library;
use super::matrix_library::{self, Tile};
use crate::ir::cooperative::Matrix;
use crate::ir::variables::array_of;
use crate::ir::{Value, blocks};
use crate::program::Program;

/// A store: the matrix, the pointer, and the order.
type Store = (Value, Value, bool);

/// The functions in the library for the operations of a function.
#[derive(Debug, Default)]
pub(super) struct MatrixCalls {
    results: BTreeMap<Value, usize>,
    stores: BTreeMap<Store, usize>,
    /// The indices and strides that are signed.
    signed: BTreeSet<Value>,
}

/// Replaces the types of matrices by those of their parts.
pub(super) fn replace_types(module: &mut Module, library: &Library) {
    let handles: Vec<_> = module.types.iter().map(|(handle, _)| handle).collect();
    for handle in handles {
        let ty = &module.types[handle];
        let new = match ty.inner {
            TypeInner::CooperativeMatrix { .. } => Matrix::of(&ty.inner).map(|matrix| Type {
                name: Some(matrix_library::type_name(matrix)),
                inner: matrix_library::part_type(matrix, library.vectors()),
            }),
            TypeInner::Array { base, size, stride } => {
                let part = module.types[base].inner.size(module.to_ctx());
                let is_matrix = has_matrix(module, base) && part != stride;
                is_matrix.then(|| Type {
                    name: ty.name.clone(),
                    inner: TypeInner::Array { base, size, stride: part },
                })
            }
            _ => None,
        };
        if let Some(new) = new {
            module.types.replace(handle, new);
        }
    }
}

/// Whether the elements of an array are parts of matrices, or arrays of them.
fn has_matrix(module: &Module, ty: Handle<Type>) -> bool {
    match module.types[ty].inner {
        TypeInner::Array { base, .. } => has_matrix(module, base),
        _ => module.types[ty].name.as_deref().is_some_and(|name| name.starts_with("matrix ")),
    }
}

/// Adds the operations of a function to the library.
pub(super) fn operations(
    program: &Program,
    function: &Function,
    types: &FunctionInfo,
    library: &mut Library,
) -> Result<MatrixCalls> {
    let mut found = Operations { program, function, types, library, calls: MatrixCalls::default() };
    let mut statements = Vec::new();
    blocks::each(&function.body, &mut |statement| statements.push(statement));
    statements.into_iter().try_for_each(|statement| found.add(statement))?;
    Ok(found.calls)
}

struct Operations<'a> {
    program: &'a Program,
    function: &'a Function,
    types: &'a FunctionInfo,
    library: &'a mut Library,
    calls: MatrixCalls,
}

impl Operations<'_> {
    fn add(&mut self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Emit(range) => range.clone().try_for_each(|value| self.add_value(value)),
            Statement::CooperativeStore { target, data } => {
                let (tile, span) = (self.tile(*target, *data)?, self.span(data.pointer));
                let place = self.library.matrix_store(tile, span);
                self.calls.stores.insert((*target, data.pointer, data.row_major), place);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_value(&mut self, value: Value) -> Result<()> {
        let span = self.span(value);
        let place = match self.function.expressions[value] {
            Expression::CooperativeLoad { data, .. } => {
                let tile = self.tile(value, data)?;
                self.library.matrix_load(tile, span)
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                let types = [self.matrix(a)?, self.matrix(b)?, self.matrix(c)?];
                self.library.matrix_multiply_add(types, span)
            }
            _ => return Ok(()),
        };
        self.calls.results.insert(value, place);
        Ok(())
    }

    fn tile(&mut self, matrix: Value, data: CooperativeData) -> Result<Tile> {
        let module = &self.program.module;
        let part = array_of(self.function, data.pointer);
        let pointee = |pointer| match *self.inner(pointer) {
            TypeInner::Pointer { base, .. } => &module.types[base].inner,
            ref other => other,
        };
        let length = match *pointee(part) {
            TypeInner::Array { size, .. } => match size.resolve(module.to_ctx()) {
                Ok(naga::proc::IndexableLength::Known(length)) => Some(length),
                _ => None,
            },
            _ => return Err(internal()),
        };
        let array = Array::of((module, self.function), part, pointee(data.pointer), length)?;
        let matrix = self.matrix(matrix)?;
        let index = match self.function.expressions[data.pointer] {
            Expression::Access { index, .. } => Some(index),
            _ => None,
        };
        for number in index.into_iter().chain([data.stride]) {
            if self.inner(number).scalar_kind() == Some(ScalarKind::Sint) {
                self.calls.signed.insert(number);
            }
        }
        Ok(Tile { matrix, row_major: data.row_major, array: self.library.array(array) })
    }

    fn matrix(&self, value: Value) -> Result<Matrix> {
        Matrix::of(self.inner(value)).ok_or_else(internal)
    }

    fn inner(&self, value: Value) -> &TypeInner {
        self.types[value].ty.inner_with(&self.program.module.types)
    }

    fn span(&self, value: Value) -> Span {
        self.function.expressions.get_span(value)
    }
}

fn internal() -> Error {
    Error::new(ErrorKind::Internal, "a matrix that was not checked")
}

/// Replaces the operations of a function by calls.
pub(super) fn replace(function: &mut Function, calls: &MatrixCalls, imported: &Imported) {
    if calls.results.is_empty() && calls.stores.is_empty() {
        return;
    }
    let mut body = std::mem::take(&mut function.body);
    Replacement { function, calls, imported }.body(&mut body);
    function.body = body;
    for (&result, &place) in &calls.results {
        function.expressions[result] = Expression::CallResult(imported.function(place));
    }
}

struct Replacement<'a> {
    function: &'a mut Function,
    calls: &'a MatrixCalls,
    imported: &'a Imported,
}

impl Replacement<'_> {
    fn body(&mut self, body: &mut Block) {
        blocks::rewrite(body, &mut |statement, span, new| match statement {
            Statement::Emit(range) => self.emit(range, span, new),
            Statement::CooperativeStore { target, data } => self.store(target, data, span, new),
            other => new.push(other, span),
        });
    }

    /// The expressions of a range, with calls between them.
    fn emit(&mut self, range: Range<Expression>, span: Span, new: &mut Block) {
        let mut pending: Option<[Value; 2]> = None;
        let flush = |pending: &mut Option<[Value; 2]>, new: &mut Block| {
            if let Some([first, last]) = pending.take() {
                new.push(Statement::Emit(Range::new_from_bounds(first, last)), span);
            }
        };
        for value in range {
            let Some(&place) = self.calls.results.get(&value) else {
                pending = Some([pending.map_or(value, |[first, _]| first), value]);
                continue;
            };
            flush(&mut pending, new);
            let arguments = match self.function.expressions[value] {
                Expression::CooperativeLoad { data, .. } => self.place(data, new),
                Expression::CooperativeMultiplyAdd { a, b, c } => vec![a, b, c],
                _ => Vec::new(),
            };
            let function = self.imported.function(place);
            new.push(Statement::Call { function, arguments, result: Some(value) }, span);
        }
        flush(&mut pending, new);
    }

    fn store(&mut self, target: Value, data: CooperativeData, span: Span, new: &mut Block) {
        let Some(&place) = self.calls.stores.get(&(target, data.pointer, data.row_major)) else { return };
        let mut arguments = vec![target];
        arguments.extend(self.place(data, new));
        new.push(Statement::Call { function: self.imported.function(place), arguments, result: None }, span);
    }

    /// The index and the stride, as unsigned numbers.
    fn place(&mut self, data: CooperativeData, new: &mut Block) -> Vec<Value> {
        let index = match self.function.expressions[data.pointer] {
            Expression::Access { index, .. } => index,
            Expression::AccessIndex { index, .. } => {
                self.function.expressions.append(Expression::Literal(Literal::U32(index)), Span::UNDEFINED)
            }
            _ => data.stride,
        };
        vec![self.unsigned(index, new), self.unsigned(data.stride, new)]
    }

    fn unsigned(&mut self, number: Value, new: &mut Block) -> Value {
        if !self.calls.signed.contains(&number) {
            return number;
        }
        let converted = Expression::As { expr: number, kind: ScalarKind::Uint, convert: None };
        let converted = self.function.expressions.append(converted, Span::UNDEFINED);
        let range = Range::new_from_bounds(converted, converted);
        new.push(Statement::Emit(range), Span::UNDEFINED);
        converted
    }
}
