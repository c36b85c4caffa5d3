//! Functions that no entry point reaches, as entry points: the rules hold for them, too.

use naga::{
    AddressSpace, EntryPoint, Expression, Function, LocalVariable, Module, Span, Statement, TypeInner,
};

use crate::ir::blocks;

/// The module with an entry point for each of the `wanted` functions that nothing calls, in place of its own; `None` if there
/// is no such function. Arguments count as the same for all invocations, since no call says otherwise.
pub(super) fn as_entry_points(module: &Module, wanted: &[bool]) -> Option<Module> {
    let mut called = vec![false; module.functions.len()];
    blocks::functions(module).for_each(|function| blocks::note_calls(&function.body, &mut called));
    let unreached = module.functions.iter().filter(|(handle, _)| {
        let at = handle.index();
        wanted.get(at) == Some(&true) && !called[at]
    });
    let any = module.entry_points.first()?;
    let made = unreached.filter_map(|(_, function)| {
        // No text can have a name with a blank.
        let name = format!("function {}", function.name.as_deref().unwrap_or_default());
        Some(EntryPoint { name, function: without_arguments(module, function)?, ..any.clone() })
    });
    let made: Vec<_> = made.collect();
    (!made.is_empty()).then(|| Module { entry_points: made, ..module.clone() })
}

/// A function with values in place of its arguments, and no result. `None` if there is no such value.
fn without_arguments(module: &Module, function: &Function) -> Option<Function> {
    let mut function = function.clone();
    let arguments = std::mem::take(&mut function.arguments);
    for (_, expression) in function.expressions.iter_mut() {
        let Expression::FunctionArgument(index) = *expression else { continue };
        let ty = arguments[index as usize].ty;
        *expression = match module.types[ty].inner {
            TypeInner::Pointer { base, space: AddressSpace::Function } => {
                let local = LocalVariable { name: None, ty: base, init: None };
                Expression::LocalVariable(function.local_variables.append(local, Span::UNDEFINED))
            }
            TypeInner::Scalar(_)
            | TypeInner::Vector { .. }
            | TypeInner::Matrix { .. }
            | TypeInner::Array { .. }
            | TypeInner::Struct { .. } => Expression::ZeroValue(ty),
            _ => return None,
        };
    }
    function.result = None;
    blocks::rewrite(&mut function.body, &mut |statement, span, block| {
        let statement = match statement {
            Statement::Return { .. } => Statement::Return { value: None },
            other => other,
        };
        block.push(statement, span);
    });
    Some(function)
}
