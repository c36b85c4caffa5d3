//! The private memory of an invocation: variables, and composite values that a compiler may keep in memory.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{AddressSpace, Expression, Function, GlobalVariable, Module, TypeInner};

use crate::ir::Global;
use crate::ir::blocks::{note_all_calls, note_calls};
use crate::program::Program;

/// Smaller composite values are registers on other devices than the host.
const SMALLEST_VALUE: u64 = 256;

/// The bytes of an entry point on a device: its own, its private variables, and those of the functions that it calls.
pub(crate) fn of_entry(program: &Program, index: usize) -> u64 {
    let (module, info) = (&program.module, program.info.get_entry_point(index));
    let entry = &module.entry_points[index].function;
    let used = |(handle, variable): &(Global, &GlobalVariable)| {
        variable.space == AddressSpace::Private && !info[*handle].is_empty()
    };
    let privates = module.global_variables.iter().filter(used);
    let privates = privates.map(|(_, variable)| size(module, &module.types[variable.ty].inner));
    let own = of_function(module, entry, info, SMALLEST_VALUE);
    let called = note_all_calls(module, &entry.body);
    let functions = module.functions.iter().filter(|(handle, _)| called[handle.index()]);
    let functions = functions
        .map(|(handle, function)| of_function(module, function, &program.info[handle], SMALLEST_VALUE));
    privates.chain(functions).fold(own, u64::saturating_add)
}

/// The bytes of a function's variables, and of its composite values from `smallest` bytes on.
///
/// Scalars and vectors are not counted: they are registers.
pub(crate) fn of_function(module: &Module, function: &Function, info: &FunctionInfo, smallest: u64) -> u64 {
    let bytes = |inner: &TypeInner| match inner {
        TypeInner::Array { .. } | TypeInner::Struct { .. } | TypeInner::Matrix { .. } => size(module, inner),
        _ => 0,
    };
    let variables =
        function.local_variables.iter().map(|(_, declared)| bytes(&module.types[declared.ty].inner));
    let values = function.expressions.iter().filter(|(_, expression)| is_computed(expression));
    let values = values.map(|(handle, _)| bytes(info[handle].ty.inner_with(&module.types)));
    variables.chain(values.filter(|&bytes| bytes >= smallest)).fold(0, u64::saturating_add)
}

/// The bytes of all functions but entry points: there is no recursion, so at most these are active at a time.
pub(crate) fn of_functions(module: &Module, info: &ModuleInfo) -> u64 {
    let functions = module.functions.iter();
    functions
        .map(|(handle, function)| of_function(module, function, &info[handle], 0))
        .fold(0, u64::saturating_add)
}

/// Maximum stack bytes of all functions that are active at a time in host code for a debugger. The host runs work-groups only
/// where 1 MiB is left.
const DEBUG_STACK_BYTES: u64 = 768 << 10;

/// Maximum stack bytes of a function in host code for a debugger, in which every variable and every temporary value has memory
/// of its own. The compiler enforces it.
pub(crate) fn debug_frame_bytes(module: &Module) -> u64 {
    DEBUG_STACK_BYTES / call_depth(module)
}

/// The number of functions in the longest chain of calls, including the entry point.
fn call_depth(module: &Module) -> u64 {
    let mut depths: Vec<u64> = Vec::with_capacity(module.functions.len());
    let depth = |body: &naga::Block, depths: &[u64]| {
        let mut called = vec![false; module.functions.len()];
        note_calls(body, &mut called);
        let callees = depths.iter().zip(&called).filter(|(_, called)| **called);
        callees.map(|(depth, _)| depth).max().copied().unwrap_or(0) + 1
    };
    // A function precedes its callers.
    for (_, function) in module.functions.iter() {
        let own = depth(&function.body, &depths);
        depths.push(own);
    }
    module.entry_points.iter().map(|entry| depth(&entry.function.body, &depths)).max().unwrap_or(1)
}

/// The bytes of a value of a type.
pub(crate) fn size(module: &Module, inner: &TypeInner) -> u64 {
    u64::from(inner.size(module.to_ctx()))
}

/// Whether a composite value is copied to the stack; constants are not.
const fn is_computed(expression: &Expression) -> bool {
    !matches!(expression, Expression::Constant(_) | Expression::Literal(_) | Expression::ZeroValue(_))
}
