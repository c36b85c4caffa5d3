//! Restructures bodies so that they return only at their end, and removes trailing returns.

use naga::{Block, Span, Statement};

use crate::ir::blocks::has_return;

/// Removes the returns at the end of a body, which are redundant.
pub(crate) fn strip_trailing(block: &mut Block) {
    while matches!(block.last(), Some(Statement::Return { value: None })) {
        block.cull(block.len() - 1..);
    }
    match block.last_mut() {
        Some(Statement::Block(inner)) => strip_trailing(inner),
        Some(Statement::If { accept, reject, .. }) => {
            strip_trailing(accept);
            strip_trailing(reject);
        }
        _ => {}
    }
}

/// Whether a body returns at its end or nowhere, so that [`structured`] leaves it as it is.
pub(crate) fn returns_at_end(body: &Block) -> bool {
    let before = match body.last() {
        Some(Statement::Return { .. }) => &body[..body.len() - 1],
        _ => &body[..],
    };
    !before.iter().any(has_return)
}

/// Maximum nesting of branches that early returns may cause.
const MAX_DEPTH: u32 = 64;

/// The body with everything after an early return moved into the other branch, so that it returns only at its end;
/// `None` if a loop or a switch returns, or if the result would be nested too deep.
pub(crate) fn structured(body: Block) -> Option<Block> {
    structured_within(body, MAX_DEPTH)
}

fn structured_within(body: Block, depth: u32) -> Option<Block> {
    let depth = depth.checked_sub(1)?;
    let mut out = Block::with_capacity(body.len());
    let mut statements = body.span_into_iter();
    while let Some((statement, span)) = statements.next() {
        let returns = has_return(&statement);
        match statement {
            Statement::Return { value } => {
                out.push(Statement::Return { value }, span);
                return Some(out);
            }
            Statement::Block(mut inner) if returns => {
                inner.append(&mut rest(&mut statements));
                out.append(&mut structured_within(inner, depth)?);
                return Some(out);
            }
            Statement::If { condition, mut accept, mut reject } if returns => {
                let mut rest = rest(&mut statements);
                match (ends(&accept), ends(&reject)) {
                    (true, true) => {}
                    (true, false) => reject.append(&mut rest),
                    (false, true) => accept.append(&mut rest),
                    (false, false) if rest.is_empty() => {}
                    (false, false) => return None,
                }
                out.push(
                    Statement::If {
                        condition,
                        accept: structured_within(accept, depth)?,
                        reject: structured_within(reject, depth)?,
                    },
                    span,
                );
                return Some(out);
            }
            _ if returns => return None,
            other => out.push(other, span),
        }
    }
    Some(out)
}

fn rest(statements: &mut impl Iterator<Item = (Statement, Span)>) -> Block {
    let mut block = Block::new();
    statements.for_each(|(statement, span)| block.push(statement, span));
    block
}

/// Whether a block always ends with a return.
fn ends(block: &Block) -> bool {
    match block.last() {
        Some(Statement::Return { .. }) => true,
        Some(Statement::Block(inner)) => ends(inner),
        Some(Statement::If { accept, reject, .. }) => ends(accept) && ends(reject),
        _ => false,
    }
}
