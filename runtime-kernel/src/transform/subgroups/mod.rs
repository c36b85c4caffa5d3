//! Emulates subgroups by work-group memory and barriers, for targets without them, and cooperative matrices.
//!
//! A work-group is divided into subgroups of a given size, in the order of the local invocation index; the last one may
//! have fewer invocations. Each operation becomes a call of a function that stores the argument of every invocation in
//! work-group memory and reads those of its subgroup. Its barriers require that all invocations of the work-group reach it.

mod arrays;
mod built_ins;
mod import;
mod library;
mod matrices;
mod matrix_library;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use naga::valid::FunctionInfo;
use naga::{Barrier, Block, Expression, Function, Module, Statement};
use runtime_core::Result;

use self::import::Imported;
use self::library::Library;
use self::matrices::MatrixCalls;
use crate::ir::operands::used_by;
use crate::ir::{Value, blocks};
use crate::program::Program;

/// How many functions there are for operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One for all calls with the same types.
    Shared,
    /// One for each call, whose barriers have the call's place in the text, for messages.
    PerCall,
}

/// The functions in the library for the operations of a function.
struct Calls {
    /// By result of an operation of subgroups.
    results: BTreeMap<Value, usize>,
    matrices: MatrixCalls,
}

/// The module of a program with emulated subgroups of `size` invocations, a power of two: 16, 32 or 64 if it has cooperative
/// matrices.
///
/// # Errors
/// `Unsupported` for built-in values of subgroups in structures, and types that operations do not have.
pub(crate) fn emulated(program: &Program, size: u32, sharing: Sharing) -> Result<Module> {
    let source = &program.module;
    let items: Vec<u32> =
        source.entry_points.iter().map(|entry| entry.workgroup_size.iter().product()).collect();
    let mut library = Library::new(size, &items, sharing);
    let named = source.functions.iter().map(|(handle, function)| (function, &program.info[handle]));
    let named = named.map(|(function, types)| operations(program, function, types, &mut library));
    let named = named.collect::<Result<Vec<_>>>()?;
    let points = source.entry_points.iter().enumerate();
    let points = points.map(|(at, point)| {
        operations(program, &point.function, program.info.get_entry_point(at), &mut library)
    });
    let points = points.collect::<Result<Vec<_>>>()?;

    let mut module = source.clone();
    matrices::replace_types(&mut module, &library);
    let mut imported = Imported::into(&mut module, &library)?;
    for ((handle, function), calls) in source.functions.iter().zip(&named) {
        let mut function = function.clone();
        replace(&mut function, calls, &imported);
        imported.append(&mut module, function, source.functions.get_span(handle));
    }
    for (at, calls) in points.iter().enumerate() {
        replace(&mut module.entry_points[at].function, calls, &imported);
        built_ins::replace(program, &mut module, at, (size, items[at]), &imported)?;
    }
    Ok(module)
}

/// Adds the operations of a function to the library.
fn operations(
    program: &Program,
    function: &Function,
    types: &FunctionInfo,
    library: &mut Library,
) -> Result<Calls> {
    let mut results = BTreeMap::new();
    add_operations((program, types), &function.body, library, &mut results)?;
    Ok(Calls { results, matrices: matrices::operations(program, function, types, library)? })
}

fn add_operations(
    (program, types): (&Program, &FunctionInfo),
    block: &Block,
    library: &mut Library,
    calls: &mut BTreeMap<Value, usize>,
) -> Result<()> {
    let name = |value: Value| library::type_name(types[value].ty.inner_with(&program.module.types));
    for (statement, &span) in block.span_iter() {
        let added = match *statement {
            Statement::SubgroupBallot { result, predicate } => {
                Some((result, library.ballot(predicate.is_some(), span)))
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                name(argument).map(|ty| (result, library.collective(op, collective_op, &ty, span)))
            }
            Statement::SubgroupGather { mode, argument, result } => {
                let index = used_by(statement).0.get(1).map(|&index| name(index).unwrap_or_default());
                name(argument).map(|ty| (result, library.gather(&mode, &ty, index.as_deref(), span)))
            }
            _ => {
                for inner in blocks::inner(statement) {
                    add_operations((program, types), inner, library, calls)?;
                }
                continue;
            }
        };
        let (result, place) = added.ok_or_else(|| program.unsupported("this subgroup operation", span))?;
        calls.insert(result, place);
    }
    Ok(())
}

/// Replaces the operations of a function by calls.
fn replace(function: &mut Function, calls: &Calls, imported: &Imported) {
    for (handle, expression) in function.expressions.iter_mut() {
        match expression {
            Expression::CallResult(called) => *called = imported.original(*called),
            _ => {
                if let Some(&place) = calls.results.get(&handle) {
                    *expression = Expression::CallResult(imported.function(place));
                }
            }
        }
    }
    replace_statements(&mut function.body, calls, imported);
    matrices::replace(function, &calls.matrices, imported);
}

fn replace_statements(block: &mut Block, calls: &Calls, imported: &Imported) {
    for statement in block.iter_mut() {
        match statement {
            Statement::Call { function, .. } => {
                *function = imported.original(*function);
                continue;
            }
            Statement::ControlBarrier(flags) | Statement::MemoryBarrier(flags) => {
                if flags.contains(Barrier::SUB_GROUP) {
                    *flags = Barrier::WORK_GROUP | Barrier::STORAGE;
                }
                continue;
            }
            _ => blocks::inner_mut(statement).for_each(|inner| replace_statements(inner, calls, imported)),
        }
        let (arguments, result) = used_by(statement);
        if let Some(&place) = result.and_then(|result| calls.results.get(&result)) {
            *statement = Statement::Call { function: imported.function(place), arguments, result };
        }
    }
}
