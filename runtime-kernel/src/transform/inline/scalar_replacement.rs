//! Scalar replacement: splits small private arrays with constant indices into variables.

use naga::{
    ArraySize, Block, Expression, Function, Handle, LocalVariable, Range, Span, Statement, Type, TypeInner,
    UniqueArena,
};

use crate::ir::operands::{operands, used_by};
use crate::ir::{Local, Value, blocks};

/// Maximum number of elements of such an array.
const MAX_ELEMENTS: u32 = 64;

/// Replaces private arrays that are accessed only element by element, with constant indices, by a variable per
/// element.
pub(super) fn replace_arrays(types: &UniqueArena<Type>, function: &mut Function) {
    let arrays: Vec<_> = function
        .local_variables
        .iter()
        .filter_map(|(variable, local)| Array::of(types, variable, local.ty))
        .filter(|array| array.is_replaceable(function))
        .collect();
    for array in arrays {
        array.replace(function);
    }
}

/// A private array, possibly of arrays.
struct Array {
    variable: Local,
    lengths: Vec<u32>,
    element: Handle<Type>,
}

impl Array {
    fn of(types: &UniqueArena<Type>, variable: Local, ty: Handle<Type>) -> Option<Self> {
        let (mut element, mut lengths) = (ty, Vec::new());
        while let TypeInner::Array { base, size: ArraySize::Constant(length), .. } = types[element].inner {
            lengths.push(length.get());
            element = base;
        }
        let simple = matches!(types[element].inner, TypeInner::Scalar(_) | TypeInner::Vector { .. });
        let count = lengths.iter().try_fold(1u32, |count, &length| count.checked_mul(length))?;
        (simple && !lengths.is_empty() && count <= MAX_ELEMENTS).then_some(Self {
            variable,
            lengths,
            element,
        })
    }

    /// The constant indices of an access chain into the array.
    fn path(&self, function: &Function, pointer: Value) -> Option<Vec<u32>> {
        match function.expressions[pointer] {
            Expression::LocalVariable(variable) => (variable == self.variable).then(Vec::new),
            Expression::AccessIndex { base, index } => {
                let mut path = self.path(function, base)?;
                path.push(index);
                Some(path)
            }
            _ => None,
        }
    }

    /// Whether an access chain leads to more than one element.
    fn is_aggregate(&self, function: &Function, pointer: Value) -> bool {
        self.path(function, pointer).is_some_and(|path| path.len() < self.lengths.len())
    }

    /// Whether every use of the array accesses an element at a constant index, or zeroes the whole.
    fn is_replaceable(&self, function: &Function) -> bool {
        let init = function.local_variables[self.variable].init;
        let zero = init.is_none_or(|init| matches!(function.expressions[init], Expression::ZeroValue(_)));
        let expressions = function.expressions.iter().all(|(_, expression)| match expression {
            Expression::AccessIndex { .. } => true,
            other => !operands(other).any(|operand| self.is_aggregate(function, operand)),
        });
        let mut is_whole = |statement: &Statement| match statement {
            Statement::Store { pointer, .. } => {
                self.is_aggregate(function, *pointer) && !self.zeroes(function, statement)
            }
            other => used_by(other).0.into_iter().any(|used| self.path(function, used).is_some()),
        };
        zero && expressions && !blocks::any(&function.body, &mut is_whole)
    }

    /// Whether a statement zeroes the whole array.
    fn zeroes(&self, function: &Function, statement: &Statement) -> bool {
        match *statement {
            Statement::Store { pointer, value } => {
                matches!(function.expressions[pointer], Expression::LocalVariable(v) if v == self.variable)
                    && matches!(function.expressions[value], Expression::ZeroValue(_))
            }
            _ => false,
        }
    }

    fn replace(&self, function: &mut Function) {
        let name = function.local_variables[self.variable].name.clone();
        let count: u32 = self.lengths.iter().product();
        let elements: Vec<_> = (0..count)
            .map(|number| {
                let name = name.as_ref().map(|name| format!("{name}_{number}"));
                let local = LocalVariable { name, ty: self.element, init: None };
                function.local_variables.append(local, Span::UNDEFINED)
            })
            .collect();
        let handles: Vec<_> = function.expressions.iter().map(|(handle, _)| handle).collect();
        let leaves: Vec<_> = handles
            .into_iter()
            .filter_map(|handle| {
                let path = self.path(function, handle).filter(|path| path.len() == self.lengths.len())?;
                let flat =
                    path.iter().zip(&self.lengths).fold(0, |flat, (index, length)| flat * length + index);
                Some((handle, elements[flat as usize]))
            })
            .collect();
        for (handle, element) in leaves {
            *function.expressions.get_mut(handle) = Expression::LocalVariable(element);
        }
        let mut body = std::mem::take(&mut function.body);
        self.rewrite(function, &elements, &mut body);
        function.body = body;
    }

    /// Removes expressions that are now variables from the `Emit`s, and zeroes elements one by one.
    fn rewrite(&self, function: &mut Function, elements: &[Local], body: &mut Block) {
        blocks::rewrite(body, &mut |statement, span, out| match statement {
            Statement::Emit(range) => emit(function, &range, span, out),
            statement if self.zeroes(function, &statement) => {
                for &element in elements {
                    let pointer = Expression::LocalVariable(element);
                    let pointer = function.expressions.append(pointer, Span::UNDEFINED);
                    let value = Expression::ZeroValue(self.element);
                    let value = function.expressions.append(value, Span::UNDEFINED);
                    out.push(Statement::Store { pointer, value }, span);
                }
            }
            other => out.push(other, span),
        });
    }
}

/// The parts of a range that still need an `Emit`.
fn emit(function: &Function, range: &Range<Expression>, span: Span, out: &mut Block) {
    let mut run: Option<(Value, Value)> = None;
    let mut end = |run: Option<(Value, Value)>| {
        if let Some((first, last)) = run {
            out.push(Statement::Emit(Range::new_from_bounds(first, last)), span);
        }
    };
    for handle in range.clone() {
        if function.expressions[handle].needs_pre_emit() {
            end(run.take());
        } else {
            run = Some((run.map_or(handle, |(first, _)| first), handle));
        }
    }
    end(run);
}
