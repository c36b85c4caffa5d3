//! Finds the attributes of a text.

use std::ops::Range;

use crate::parse::lists::List;
use crate::parse::tokens::{Token, text};

/// The lists of attributes, each in front of one declaration, member, statement or block.
pub(super) fn lists(tokens: &[Token<'_>]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = end + tokens[end..].iter().position(|token| token.text == "@")?;
        end = end_of(tokens, start);
        Some(start..end)
    })
}

/// The token behind a list of attributes.
fn end_of(tokens: &[Token<'_>], mut at: usize) -> usize {
    while text(tokens, at) == "@" {
        at = List::at(tokens, at + 2).map_or(at + 1, |list| list.close) + 1;
    }
    at.min(tokens.len())
}
