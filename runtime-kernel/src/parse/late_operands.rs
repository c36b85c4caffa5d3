//! Fixes the order of `coopStore` and its operands: naga 30 emits operands that are not evaluated yet after the store.

use naga::{Block, Module, Statement};

use crate::ir::blocks::{functions_mut, inner_mut};

/// Moves each `coopStore` behind the evaluation of its operands.
pub(super) fn evaluate_first(module: &mut Module) {
    functions_mut(module).for_each(|function| in_block(&mut function.body));
}

fn in_block(block: &mut Block) {
    block.iter_mut().flat_map(inner_mut).for_each(in_block);
    let mut at = 0;
    while at + 1 < block.len() {
        if let (Statement::CooperativeStore { target, data }, Statement::Emit(range)) =
            (&block[at], &block[at + 1])
            && range.clone().any(|value| [*target, data.pointer, data.stride].contains(&value))
        {
            block.swap(at, at + 1);
        }
        at += 1;
    }
}
