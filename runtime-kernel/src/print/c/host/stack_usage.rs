//! The stack usage of an entry point's function.

use naga::valid::FunctionInfo;
use naga::{Expression, Function, Module, TypeInner};

/// Maximum stack bytes of a function on a thread that runs work-groups. The host runs it only where twice as much
/// is left, to allow for the compiler's own use.
pub(super) const LIMIT: u64 = 512 << 10;

/// The bytes of a function's variables and composite values.
///
/// Scalars and vectors are not counted: they are registers.
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

/// The bytes of all functions that are not inlined: there is no recursion, so at most these are active at a time.
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

/// Whether a composite value is copied to the stack; constants are not.
const fn is_computed(expression: &Expression) -> bool {
    !matches!(expression, Expression::Constant(_) | Expression::Literal(_) | Expression::ZeroValue(_))
}
