//! Finds the attributes of a text.

use std::ops::Range;

use crate::parse::lists::end_of_attributes;
use crate::parse::tokens::Token;

/// The lists of attributes, each in front of one declaration, member, statement or block.
pub(super) fn lists(tokens: &[Token<'_>]) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = end + tokens[end..].iter().position(|token| token.text == "@")?;
        end = end_of_attributes(tokens, start);
        Some(start..end)
    })
}
