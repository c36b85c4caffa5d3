//! The matrices that matrix units multiply, and how they lie in memory.

use naga::proc::GlobalCtx;
use naga::valid::FunctionInfo;
use naga::{
    CooperativeData, CooperativeRole, CooperativeSize, Expression, Function, Module, Scalar, Span, Statement,
    Type, TypeInner,
};

use crate::ir::blocks;

/// The rows and columns of a matrix.
pub(crate) const EXTENT: u32 = 16;
/// The alignment of rows in memory, in bytes.
pub(crate) const ROW_ALIGNMENT: u32 = 16;
/// A larger stride is out of range, so that the last row's offset fits in 32 bits.
pub(crate) const MAX_STRIDE: u32 = 1 << 28;

/// A type of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    pub(crate) role: CooperativeRole,
    pub(crate) scalar: Scalar,
}

impl Matrix {
    /// The matrix type behind `inner`, if matrix units have it.
    pub(crate) fn of(inner: &TypeInner) -> Option<Self> {
        use CooperativeSize::Sixteen;
        match *inner {
            TypeInner::CooperativeMatrix { columns: Sixteen, rows: Sixteen, scalar, role }
                if scalar == Scalar::F16 || (scalar == Scalar::F32 && role == CooperativeRole::C) =>
            {
                Some(Self { role, scalar })
            }
            _ => None,
        }
    }
}

/// The rows of a matrix in an array of numbers or vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// The elements of the array in a row.
    pub(crate) width: u32,
    /// The bits of an index or a stride that are zero where rows are aligned.
    pub(crate) alignment_mask: u32,
}

impl Rows {
    /// The rows in an array of `element`, which has at most 16 bytes.
    pub(crate) fn of(element: &TypeInner, context: GlobalCtx<'_>) -> Self {
        let bytes = element.size(context).max(1);
        let scalar_bytes = element.scalar().map_or(bytes, |scalar| scalar.width.into());
        Self {
            width: EXTENT * scalar_bytes / bytes,
            alignment_mask: (ROW_ALIGNMENT / bytes).saturating_sub(1),
        }
    }
}

/// Whether a module has cooperative matrices. It may have no type for one that is only loaded and stored.
pub(crate) fn is_used(module: &Module) -> bool {
    let is_matrix = |ty: &Type| matches!(ty.inner, TypeInner::CooperativeMatrix { .. });
    module.types.iter().any(|(_, ty)| is_matrix(ty)) || blocks::functions(module).any(has_operations)
}

/// Whether a function loads, stores or multiplies matrices.
fn has_operations(function: &Function) -> bool {
    let is_product =
        |expression: &Expression| matches!(expression, Expression::CooperativeMultiplyAdd { .. });
    function.expressions.iter().any(|(_, expression)| is_product(expression))
        || !accesses(function).is_empty()
}

/// Whether an entry point, or a function that it calls, has operations on matrices.
pub(crate) fn is_reached(module: &Module, entry: &Function) -> bool {
    let called = blocks::note_all_calls(module, &entry.body);
    let reached = module.functions.iter().filter(|(handle, _)| called[handle.index()]);
    reached.map(|(_, function)| function).chain([entry]).any(has_operations)
}

/// The types of the matrices of a function, with their places in the text.
pub(crate) fn types<'a>(
    module: &'a Module,
    function: &'a Function,
    info: &'a FunctionInfo,
) -> impl Iterator<Item = (&'a TypeInner, Span)> {
    function.expressions.iter().filter_map(move |(value, _)| match info[value].ty.inner_with(&module.types) {
        matrix @ TypeInner::CooperativeMatrix { .. } => Some((matrix, function.expressions.get_span(value))),
        _ => None,
    })
}

/// The places in memory that a function loads matrices from and stores them to, and in the text.
pub(crate) fn accesses(function: &Function) -> Vec<(CooperativeData, Span)> {
    let loads = function.expressions.iter().filter_map(|(handle, expression)| match *expression {
        Expression::CooperativeLoad { data, .. } => Some((data, function.expressions.get_span(handle))),
        _ => None,
    });
    let mut accesses: Vec<_> = loads.collect();
    blocks::each(&function.body, &mut |statement| {
        if let Statement::CooperativeStore { data, .. } = *statement {
            accesses.push((data, function.expressions.get_span(data.pointer)));
        }
    });
    accesses
}
