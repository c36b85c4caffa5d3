//! The arguments of calls for pointers that naga's validator rejects: it never sees these calls, since `pointers_to_variables`
//! replaces them.

use naga::front::Typifier;
use naga::proc::ResolveContext;
use naga::valid::{CallError, EntryPointError, FunctionError, ValidationError};
use naga::{
    Block, Function, FunctionArgument, Handle, Module, Span, Statement, Type, TypeInner, UniqueArena,
    WithSpan,
};

use super::pointers_to_variables::is_refused;
use crate::ir::{Value, blocks};

/// The first call whose arguments for such pointers differ in number or type from what its function declares.
pub(super) fn first_wrong(module: &Module) -> Option<WithSpan<ValidationError>> {
    let functions = module.functions.iter().find_map(|(handle, function)| {
        let (source, span) = wrong_call(module, function)?;
        let name = function.name.clone().unwrap_or_default();
        Some((ValidationError::Function { handle, name, source }, span))
    });
    let in_entries = || {
        module.entry_points.iter().find_map(|entry| {
            let (error, span) = wrong_call(module, &entry.function)?;
            let source = EntryPointError::Function(error);
            Some((ValidationError::EntryPoint { stage: entry.stage, name: entry.name.clone(), source }, span))
        })
    };
    let (error, span) = functions.or_else(in_entries)?;
    Some(WithSpan::new(error).with_span(span, ""))
}

/// The first such call in a function, and its place.
fn wrong_call(module: &Module, function: &Function) -> Option<(FunctionError, Span)> {
    let mut found = None;
    each_call(&function.body, &mut |called, arguments, span| {
        let declared = &module.functions[called].arguments;
        if found.is_none() && declared.iter().any(|argument| is_refused(module, argument)) {
            let error = wrong_argument(module, function, declared, arguments);
            found = error.map(|(error, place)| {
                (FunctionError::InvalidCall { function: called, error }, place.unwrap_or(span))
            });
        }
    });
    found
}

fn each_call(block: &Block, visit: &mut impl FnMut(Handle<Function>, &[Value], Span)) {
    for (statement, span) in block.span_iter() {
        if let Statement::Call { function, arguments, .. } = statement {
            visit(*function, arguments, *span);
        }
        for inner in blocks::inner(statement) {
            each_call(inner, visit);
        }
    }
}

/// What is wrong with the arguments of a call, and the place of the argument.
fn wrong_argument(
    module: &Module,
    function: &Function,
    declared: &[FunctionArgument],
    arguments: &[Value],
) -> Option<(CallError, Option<Span>)> {
    let (required, seen) = (declared.len(), arguments.len());
    if required != seen {
        return Some((CallError::ArgumentCount { required, seen }, None));
    }
    let mut types = Typifier::new();
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    let pairs = declared.iter().zip(arguments).enumerate();
    for (index, (declared, &argument)) in pairs.filter(|(_, (declared, _))| is_refused(module, declared)) {
        // The validator rejects an expression without a type.
        types.grow(argument, &function.expressions, &context).ok()?;
        let given = types[argument].inner_with(&module.types);
        if !is_same_pointer(&module.types, &module.types[declared.ty].inner, given) {
            let error = CallError::ArgumentType { index, required: declared.ty, seen_expression: argument };
            // naga knows no place of a local variable.
            let place = Some(function.expressions.get_span(argument)).filter(Span::is_defined);
            return Some((error, place));
        }
    }
    None
}

fn is_same_pointer(types: &UniqueArena<Type>, declared: &TypeInner, given: &TypeInner) -> bool {
    match (declared, given) {
        (TypeInner::Pointer { base, space }, TypeInner::Pointer { base: given, space: in_space }) => {
            space == in_space && is_same(types, *base, *given)
        }
        _ => declared.non_struct_equivalent(given, types),
    }
}

/// Whether two types are the same but for the names of aliases.
fn is_same(types: &UniqueArena<Type>, one: Handle<Type>, other: Handle<Type>) -> bool {
    match (&types[one].inner, &types[other].inner) {
        _ if one == other => true,
        (TypeInner::Struct { .. }, _) => false,
        (
            TypeInner::Array { base, size, stride },
            TypeInner::Array { base: other, size: other_size, stride: other_stride },
        ) => size == other_size && stride == other_stride && is_same(types, *base, *other),
        (one, other) => one == other,
    }
}
