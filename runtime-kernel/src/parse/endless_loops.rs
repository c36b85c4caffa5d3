//! Gives the `return` behind a loop that never ends the value that it needs: naga ends each function with a `return`, and rejects
//! one without a value in a function with a result, also where control never arrives (WGSL: §behaviors; gfx-rs/wgpu#9501).

use naga::{Block, Expression, Function, Handle, Module, Span, Statement, Type};

use crate::ir::{behaviors, blocks};

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
    let is_complete = !is_implied || !is_end_unreachable(block);
    match block.last_mut() {
        Some(Statement::Return { value: value @ None }) if !is_complete => {
            *value = Some(function.expressions.append(Expression::ZeroValue(ty), Span::UNDEFINED));
        }
        Some(Statement::Loop { .. }) | None => {}
        Some(other) => blocks::inner_mut(other).for_each(|inner| in_block(inner, function, ty)),
    }
}

/// Whether control leaves a block before its last statement, a `return` without a value.
fn is_end_unreachable(block: &Block) -> bool {
    if !matches!(block.last(), Some(Statement::Return { value: None })) {
        return false;
    }
    let before = block.span_iter().map(|(statement, span)| (statement, *span)).take(block.len() - 1);
    let behaviors = behaviors::of_statements(before, &mut |_| ());
    // WGSL has no loops without any exit, which have no behaviours at all.
    behaviors & behaviors::NEXT == 0 && behaviors != 0
}
