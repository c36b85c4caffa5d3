//! Gives the `return` behind a loop that never ends the value that it needs: naga ends each function with a `return`, and rejects
//! one without a value in a function with a result, also where control never arrives (WGSL: §behaviors; gfx-rs/wgpu#9501).

use naga::{Block, Expression, Function, Handle, Module, Span, Statement, Type};

use crate::ir::blocks::{self, Skip};

/// Completes the functions of a module.
pub(super) fn complete(module: &mut Module) {
    for function in blocks::functions_mut(module) {
        if let Some(result) = &function.result {
            let ty = result.ty;
            let mut body = std::mem::take(&mut function.body);
            in_block(&mut body, function, ty);
            function.body = body;
        }
    }
}

/// Completes the last statement of a block, which may be the last of the function.
fn in_block(block: &mut Block, function: &mut Function, ty: Handle<Type>) {
    let is_implied = block.span_iter().last().is_some_and(|(_, span)| !span.is_defined());
    let Some((last, before)) = block.split_last_mut() else { return };
    match last {
        Statement::Return { value: value @ None } if is_implied && before.iter().any(never_ends) => {
            *value = Some(function.expressions.append(Expression::ZeroValue(ty), Span::UNDEFINED));
        }
        Statement::Loop { .. } => {}
        other => blocks::inner_mut(other).for_each(|inner| in_block(inner, function, ty)),
    }
}

/// Whether control never reaches what follows a statement.
fn never_ends(statement: &Statement) -> bool {
    match statement {
        Statement::Return { .. } | Statement::Break | Statement::Continue => true,
        Statement::Block(block) => block.iter().any(never_ends),
        Statement::If { accept, reject, .. } => {
            accept.iter().any(never_ends) && reject.iter().any(never_ends)
        }
        Statement::Switch { cases, .. } => cases.iter().all(|case| {
            Skip::of_block(&case.body) != Skip::Break
                && (case.fall_through || case.body.iter().any(never_ends))
        }),
        // WGSL has no loops without any exit.
        Statement::Loop { body, continuing: _, break_if } => {
            break_if.is_none() && !breaks(body) && blocks::has_return(statement)
        }
        _ => false,
    }
}

/// Whether a block has a `break` out of the loop around it.
fn breaks(block: &Block) -> bool {
    block.iter().any(|statement| match statement {
        Statement::Break => true,
        Statement::Loop { .. } | Statement::Switch { .. } => false,
        other => blocks::inner(other).any(breaks),
    })
}
