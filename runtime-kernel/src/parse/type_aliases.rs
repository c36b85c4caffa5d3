//! Writes out aliases in the text, where naga compares types by name while it parses.

use naga::FastHashMap;

use super::text_edits::applied;
use super::tokens::{Token, text, tokens};

/// Aliases of aliases, each of which may multiply the text.
const MAX_ROUNDS: usize = 16;
/// The longest text that is written.
const MAX_BYTES: usize = 1 << 20;

/// The text with what its aliases stand for in place of their uses; `None` if it has no aliases, or one that a local name
/// hides. Lines stay the same.
pub(super) fn written_out(code: &str) -> Option<String> {
    let mut written: Option<String> = None;
    for _ in 0..MAX_ROUNDS {
        match round(written.as_deref().unwrap_or(code))? {
            Some(text) if text.len() <= MAX_BYTES => written = Some(text),
            Some(_) => return None,
            None => return written,
        }
    }
    None
}

/// One round of replacements, if there is anything to replace.
#[allow(
    clippy::option_option,
    reason = "outside: whether it can be done; inside: whether it changes anything"
)]
fn round(code: &str) -> Option<Option<String>> {
    let tokens: Vec<_> = tokens(code).collect();
    let (aliases, uses) = (definitions(&tokens), |at: usize| text(&tokens, at));
    if tokens
        .iter()
        .enumerate()
        .any(|(at, token)| aliases.contains_key(token.text) && is_declared(&tokens, at))
    {
        return None;
    }
    let mut edits = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_use = at > 0 && !matches!(uses(at - 1), "." | "alias" | "@");
        if let Some(definition) = aliases.get(token.text).filter(|_| is_use) {
            edits.push((token.range.clone(), code[definition.clone()].replace('\n', " ")));
        }
    }
    Some((!edits.is_empty()).then(|| applied(code, edits)))
}

/// By alias: the part of the text that it stands for.
fn definitions<'a>(tokens: &[Token<'a>]) -> FastHashMap<&'a str, std::ops::Range<usize>> {
    let starts = (0..tokens.len()).filter(|&at| text(tokens, at) == "alias" && text(tokens, at + 2) == "=");
    let found = starts.filter_map(|at| {
        let end = (at + 3..tokens.len()).find(|&end| text(tokens, end) == ";")?;
        (end > at + 3).then(|| (tokens[at + 1].text, tokens[at + 3].range.start..tokens[end - 1].range.end))
    });
    found.collect()
}

/// Whether the token declares a name, other than of an alias, that hides an alias; members of structures hide nothing.
fn is_declared(tokens: &[Token<'_>], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| text(tokens, before));
    matches!(before, "let" | "const" | "var" | "fn" | "struct" | "override")
        || (text(tokens, at + 1) == ":" && matches!(before, "(" | "," | ">" | "{" | ")"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_written_out() {
        let code = "alias T = f32; alias\nR = array<T, 4>; fn f(r: R) { let x: R = R(); y.R = 1; }";
        let written = written_out(code).unwrap();
        assert!(
            written.ends_with("fn f(r: array<f32, 4>) { let x: array<f32, 4> = array<f32, 4>(); y.R = 1; }")
        );
        assert_eq!(written.lines().count(), 2);
    }

    #[test]
    fn names_that_hide_an_alias_and_endless_ones_stay() {
        assert_eq!(written_out("alias T = f32; fn f(T: i32) {}"), None);
        assert_eq!(written_out("alias T = f32; fn f() { let T = 1; }"), None);
        assert_eq!(written_out("alias A = array<A, 2>; var x: A;"), None);
        assert_eq!(written_out("fn f() {}"), None);
    }
}
