//! Replacements of parts of a text that keep its lines.

use std::ops::Range;

use super::tokens::Token;

/// A replacement of a part of the text.
pub(crate) type Edit = (Range<usize>, String);

/// The text with the replacements; of two that overlap, the first one.
pub(crate) fn applied(code: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut new, mut at) = (String::with_capacity(2 * code.len()), 0);
    for (range, text) in edits {
        if range.start < at {
            continue;
        }
        new.push_str(&code[at..range.start]);
        new.push_str(&text);
        new.extend(code[range.clone()].matches('\n').skip(text.matches('\n').count()));
        at = range.end;
    }
    new.push_str(&code[at..]);
    new
}

/// The arguments of a call whose first one is at `first`: each from its first token to the `,` or `)` after it.
pub(crate) fn arguments(tokens: &[Token<'_>], first: usize) -> Vec<Range<usize>> {
    let (mut list, mut start, mut depth) = (Vec::new(), first, 0usize);
    for (at, token) in tokens.iter().enumerate().skip(first) {
        match (token.text, depth) {
            ("(" | "[", _) => depth += 1,
            (")", 0) => {
                if at > start || list.is_empty() {
                    list.push(start..at);
                }
                return list;
            }
            (")" | "]", _) => depth = depth.saturating_sub(1),
            (",", 0) => {
                list.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    Vec::new()
}
