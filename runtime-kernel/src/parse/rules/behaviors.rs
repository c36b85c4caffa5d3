//! Every loop can end: by `break`, by `return` or by its condition (§behaviors-rules).

use naga::{Block, Module, Span, Statement};

use super::Violation;
use crate::ir::blocks;

/// What may come after a statement.
type Behaviors = u8;

const NEXT: Behaviors = 1;
const BREAK: Behaviors = 2;
const CONTINUE: Behaviors = 4;
const RETURN: Behaviors = 8;

/// The loops that never end.
pub(super) fn endless(module: &Module) -> Vec<Violation> {
    let mut found = Vec::new();
    for function in blocks::functions(module) {
        of_block(&function.body, &mut found);
    }
    found
}

fn of_block(block: &Block, found: &mut Vec<Violation>) -> Behaviors {
    let mut behaviors = NEXT;
    for (statement, span) in block.span_iter() {
        // What control does not reach is checked as well.
        let own = of_statement(statement, *span, found);
        if behaviors & NEXT != 0 {
            behaviors = behaviors & !NEXT | own;
        }
    }
    behaviors
}

fn of_statement(statement: &Statement, place: Span, found: &mut Vec<Violation>) -> Behaviors {
    match statement {
        Statement::Return { .. } => RETURN,
        Statement::Break => BREAK,
        Statement::Continue => CONTINUE,
        Statement::Block(block) => of_block(block, found),
        Statement::If { accept, reject, .. } => of_block(accept, found) | of_block(reject, found),
        Statement::Switch { cases, .. } => {
            // A case of several selectors is several cases, of which the first ones fall through.
            let bodies = cases.iter().map(|case| (of_block(&case.body, found), case.fall_through));
            let behaviors = bodies.fold(0, |all, (own, falls)| all | if falls { own & !NEXT } else { own });
            if behaviors & BREAK == 0 { behaviors } else { behaviors & !BREAK | NEXT }
        }
        Statement::Loop { body, continuing, break_if } => {
            let condition = if break_if.is_some() { BREAK } else { 0 };
            let inside = of_block(body, found) | of_block(continuing, found) | condition;
            let after = if inside & BREAK == 0 { 0 } else { NEXT };
            let behaviors = inside & RETURN | after;
            if behaviors == 0 {
                let text = "this loop never ends: it has no condition, and nothing leaves it; add a `break`";
                found.push(Violation { place, text: text.to_owned() });
            }
            behaviors
        }
        _ => NEXT,
    }
}
