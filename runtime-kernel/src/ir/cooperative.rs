//! The matrices that matrix units multiply.

use naga::valid::FunctionInfo;
use naga::{Expression, Function, Module, Span, Type, TypeInner};

/// The rows and columns of a matrix.
pub(crate) const EXTENT: u32 = 16;
/// The alignment of rows in memory, in bytes.
pub(crate) const ROW_ALIGNMENT: u32 = 16;
/// A larger stride is out of range, so that the last row's offset fits in 32 bits.
pub(crate) const MAX_STRIDE: u32 = 1 << 28;

/// Whether a module has cooperative matrices. It may have no type for one that is only loaded and stored.
pub(crate) fn is_used(module: &Module) -> bool {
    let is_matrix = |ty: &Type| matches!(ty.inner, TypeInner::CooperativeMatrix { .. });
    let functions = module.functions.iter().map(|(_, function)| function);
    let mut functions = functions.chain(module.entry_points.iter().map(|entry| &entry.function));
    module.types.iter().any(|(_, ty)| is_matrix(ty))
        || functions.any(|function| {
            function.expressions.iter().any(|(_, expression)| {
                matches!(
                    expression,
                    Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. }
                )
            })
        })
}

/// The matrices of a function, by where they are in the text.
pub(crate) fn of_function<'a>(
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
) -> impl Iterator<Item = (&'a TypeInner, Span)> {
    function.expressions.iter().filter_map(move |(value, _)| match info[value].ty.inner_with(&module.types) {
        matrix @ TypeInner::CooperativeMatrix { .. } => Some((matrix, function.expressions.get_span(value))),
        _ => None,
    })
}
