//! Renames what a `continuing` block declares again: it is a scope of its own (WGSL: §loop-statement), which naga's parser takes
//! for that of the loop's body.

use std::borrow::Cow;
use std::collections::HashSet;

use super::text_edits::{Edit, applied};
use super::tokens::{Token, declared_name, text, tokens};

/// The text with other names for these declarations.
pub(crate) fn without_repeated(code: &str) -> Cow<'_, str> {
    if !code.contains("continuing") {
        return Cow::Borrowed(code);
    }
    let tokens: Vec<_> = tokens(code).collect();
    let mut edits = Vec::new();
    // By open brace: the names that its block has declared.
    let mut open: Vec<HashSet<&str>> = vec![HashSet::new()];
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" if text(&tokens, at.wrapping_sub(1)) == "continuing" => {
                let outer = open.last().cloned().unwrap_or_default();
                let new = renamed(&tokens, at, &outer, edits.len());
                edits.extend(new);
                open.push(HashSet::new());
            }
            "{" => open.push(HashSet::new()),
            "}" if open.len() > 1 => {
                open.pop();
            }
            "let" | "var" | "const" => {
                let name = text(&tokens, declared_name(&tokens, at));
                open.last_mut().map(|names| names.insert(name));
            }
            _ => {}
        }
    }
    // Of two edits of a name the first one is applied: that of the inner block.
    edits.reverse();
    if edits.is_empty() { Cow::Borrowed(code) } else { Cow::Owned(applied(code, edits)) }
}

/// The edits for the `continuing` block that begins at `start`, in a body that declares `outer`. `number` tells its names from those
/// of others.
fn renamed(tokens: &[Token<'_>], start: usize, outer: &HashSet<&str>, number: usize) -> Vec<Edit> {
    let (mut edits, mut depth, mut names) = (Vec::new(), 0_usize, Vec::new());
    // The name of a declaration holds from its end.
    let mut pending = None;
    for at in start..tokens.len() {
        let token = &tokens[at];
        match token.text {
            "{" | "(" => depth += 1,
            "}" if depth == 1 => break,
            "}" | ")" => depth = depth.saturating_sub(1),
            ";" => names.extend(pending.take()),
            "let" | "var" | "const" if depth == 1 => {
                let name = declared_name(tokens, at);
                if let Some(declared) = tokens.get(name).filter(|token| outer.contains(token.text)) {
                    let new = unused(tokens, declared.text, number);
                    edits.push((declared.range.clone(), new.clone()));
                    pending = Some((declared.text, new));
                }
            }
            word if text(tokens, at - 1) != "." => {
                let new = names.iter().find(|(name, _)| *name == word);
                edits.extend(new.map(|(_, new)| (token.range.clone(), new.clone())));
            }
            _ => {}
        }
    }
    edits
}

/// A name that the text does not use.
fn unused(tokens: &[Token<'_>], name: &str, number: usize) -> String {
    let mut new = format!("{name}_continuing_{number}");
    while tokens.iter().any(|token| token.text == new) {
        new.push('_');
    }
    new
}
