//! Replacements of parts of a text that keep its lines.

use std::ops::Range;

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
