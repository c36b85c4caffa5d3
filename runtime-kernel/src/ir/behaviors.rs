//! Where control may go after a statement: WGSL's behaviour analysis (§behaviors-rules).

use naga::{Block, Span, Statement};

/// A set of the places below.
pub(crate) type Behaviors = u8;

/// To the next statement.
pub(crate) const NEXT: Behaviors = 1;
const BREAK: Behaviors = 2;
const CONTINUE: Behaviors = 4;
const RETURN: Behaviors = 8;

/// The behaviours of the statements of a block. `endless` is told of each loop that control never leaves.
pub(crate) fn of_block(block: &Block, endless: &mut impl FnMut(Span)) -> Behaviors {
    of_statements(block.span_iter().map(|(statement, span)| (statement, *span)), endless)
}

/// As [`of_block`], of some statements in a row.
pub(crate) fn of_statements<'a>(
    statements: impl Iterator<Item = (&'a Statement, Span)>,
    endless: &mut impl FnMut(Span),
) -> Behaviors {
    let mut behaviors = NEXT;
    for (statement, span) in statements {
        // What control does not reach is examined as well.
        let own = of_statement(statement, span, endless);
        if behaviors & NEXT != 0 {
            behaviors = behaviors & !NEXT | own;
        }
    }
    behaviors
}

fn of_statement(statement: &Statement, place: Span, endless: &mut impl FnMut(Span)) -> Behaviors {
    match statement {
        Statement::Return { .. } => RETURN,
        Statement::Break => BREAK,
        Statement::Continue => CONTINUE,
        Statement::Block(block) => of_block(block, endless),
        Statement::If { accept, reject, .. } => of_block(accept, endless) | of_block(reject, endless),
        Statement::Switch { cases, .. } => {
            // naga splits a case with several selectors into several cases; all but the last fall through.
            let bodies = cases.iter().map(|case| (of_block(&case.body, endless), case.fall_through));
            let behaviors = bodies.fold(0, |all, (own, falls)| all | if falls { own & !NEXT } else { own });
            if behaviors & BREAK == 0 { behaviors } else { behaviors & !BREAK | NEXT }
        }
        Statement::Loop { body, continuing, break_if } => {
            let condition = if break_if.is_some() { BREAK } else { 0 };
            let inside = of_block(body, endless) | of_block(continuing, endless) | condition;
            let after = if inside & BREAK == 0 { 0 } else { NEXT };
            let behaviors = inside & RETURN | after;
            if behaviors == 0 {
                endless(place);
            }
            behaviors
        }
        _ => NEXT,
    }
}
