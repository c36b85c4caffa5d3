//! Verifies that code which runs once is uniform, and that no invocation can observe the difference.

use naga::{Binding, BuiltIn, Expression, Function, Handle, Statement};

use super::super::schedule::steps::{Condition, Step};
use super::super::schedule::variable_storage::Storage;
use super::Verdict;
use super::evaluated::{Evaluated, Uses};
use super::values::is_read_only;
use crate::ir::variables;
use crate::ir::{Value, blocks};

pub(super) fn verify(on: &Evaluated<'_, '_>) -> Verdict {
    on.all().into_iter().try_for_each(|(step, _)| visit(on, step))
}

fn visit(on: &Evaluated<'_, '_>, step: &Step) -> Verdict {
    if let Some(Condition::Once(value)) = step.condition() {
        are_shared(on, &on.condition(value))?;
    }
    let Step::Once(shared) = step else { return Ok(()) };
    shared.body.iter().try_for_each(|statement| {
        are_shared(on, &on.statement(statement))?;
        let fine = match statement {
            Statement::Emit(_) | Statement::WorkGroupUniformLoad { .. } => true,
            Statement::Store { pointer, .. } => on
                .variable(*pointer)
                .is_some_and(|variable| on.schedule.storage.variable(variable) == Storage::Group),
            Statement::Call { function, arguments, .. } => {
                arguments.iter().all(|&argument| !on.context.is_pointer(argument)) && is_pure(on, *function)
            }
            _ => false,
        };
        ensure!(fine, "{statement:?} runs once")
    })
}

/// Whether everything that is evaluated is uniform.
fn are_shared(on: &Evaluated<'_, '_>, uses: &Uses) -> Verdict {
    uses.evaluated.iter().try_for_each(|&part| {
        ensure!(
            is_shared(on, part),
            "{part:?} differs from item to item: {:?}",
            on.function.expressions[part]
        )
    })
}

fn is_shared(on: &Evaluated<'_, '_>, part: Value) -> bool {
    match on.function.expressions[part] {
        Expression::LocalVariable(variable) => on.schedule.storage.variable(variable) == Storage::Group,
        Expression::FunctionArgument(index) => {
            let binding = on.function.arguments[index as usize].binding.as_ref();
            let alone = on.context.group_size == Some([1; 3]);
            match binding {
                Some(Binding::BuiltIn(
                    BuiltIn::WorkGroupId
                    | BuiltIn::NumWorkGroups
                    | BuiltIn::WorkGroupSize
                    | BuiltIn::SubgroupSize
                    | BuiltIn::NumSubgroups,
                )) => true,
                Some(Binding::BuiltIn(
                    BuiltIn::LocalInvocationId | BuiltIn::LocalInvocationIndex | BuiltIn::GlobalInvocationId,
                )) => alone,
                _ => false,
            }
        }
        Expression::Load { pointer } => {
            // Variables are judged by the expressions that name them.
            on.variable(pointer).is_some() || is_read_only(on, pointer)
        }
        Expression::AtomicResult { .. }
        | Expression::SubgroupBallotResult
        | Expression::SubgroupOperationResult { .. } => false,
        _ => true,
    }
}

/// Whether a function computes its result from its arguments and constant memory, without side effects.
fn is_pure(on: &Evaluated<'_, '_>, handle: Handle<Function>) -> bool {
    let function = &on.module.functions[handle];
    let memory = function.expressions.iter().all(|(_, expression)| match *expression {
        Expression::GlobalVariable(variable) => {
            variables::is_read_only(on.module.global_variables[variable].space)
        }
        _ => true,
    });
    let has_side_effect = |statement: &Statement| match statement {
        Statement::Call { function, .. } => !is_pure(on, *function),
        Statement::Emit(_)
        | Statement::Break
        | Statement::Continue
        | Statement::Return { .. }
        | Statement::Store { .. } => false,
        other => blocks::inner(other).next().is_none(),
    };
    memory && !blocks::any(&function.body, &mut |statement| has_side_effect(statement))
}
