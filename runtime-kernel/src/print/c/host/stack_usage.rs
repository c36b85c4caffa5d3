//! How much of a thread's stack an entry point's function takes.

use naga::valid::FunctionInfo;
use naga::{Expression, Function, Module, TypeInner};

/// Bytes that a function may take of the stack of the thread that runs work-groups. The host runs them only where
/// twice as much is left, for what a compiler adds.
pub(super) const LIMIT: u64 = 512 << 10;

/// The bytes of the variables and composite values of a function.
///
/// Scalars and vectors are left out: they are registers.
pub(super) fn of_function(module: &Module, function: &Function, info: &FunctionInfo) -> u64 {
    let bytes = |inner: &TypeInner| match inner {
        TypeInner::Array { .. } | TypeInner::Struct { .. } | TypeInner::Matrix { .. } => size(module, inner),
        _ => 0,
    };
    let variables =
        function.local_variables.iter().map(|(_, declared)| bytes(&module.types[declared.ty].inner));
    let values = function.expressions.iter().filter(|(_, expression)| is_computed(expression));
    let values = values.map(|(handle, _)| bytes(info[handle].ty.inner_with(&module.types)));
    variables.chain(values).fold(0, u64::saturating_add)
}

/// The bytes of all functions that stay functions: none calls itself, so no more of them are under way at a time.
pub(super) fn of_callees(module: &Module, info: &naga::valid::ModuleInfo) -> u64 {
    let functions = module.functions.iter();
    functions
        .map(|(handle, function)| of_function(module, function, &info[handle]))
        .fold(0, u64::saturating_add)
}

/// The bytes of a value of a type.
pub(super) fn size(module: &Module, inner: &TypeInner) -> u64 {
    u64::from(inner.size(module.to_ctx()))
}

/// Whether a composite value is a copy on the stack; constants are not.
const fn is_computed(expression: &Expression) -> bool {
    !matches!(expression, Expression::Constant(_) | Expression::Literal(_) | Expression::ZeroValue(_))
}
