//! Blanks out directives and attributes that naga rejects although they change nothing here.

use std::borrow::Cow;
use std::ops::Range;

use super::diagnostic_filters::{ERROR, OFF, RULE};
use super::lists::end_of_attributes;
use super::tokens::{Token, text, tokens};

/// Extensions that naga does not know, or whose features it has without them.
const EXTENSIONS: [&str; 8] = [
    "subgroups",
    "subgroups_f16",
    "chromium_experimental_subgroups",
    "subgroup_id",
    "subgroup_uniformity",
    "unrestricted_pointer_parameters",
    "uniform_buffer_standard_layout",
    "immediate_address_space",
];

/// `code` without these extensions in its `enable` and `requires` directives, without `@diagnostic(…)`, and without the comma in
/// `var<function,>`. All offsets stay the same. Of a `@diagnostic` about subgroups, [`diagnostic_filters`](super::diagnostic_filters) finds a mark, or the
/// attribute itself before a function, which naga accepts.
pub(crate) fn without_needless(code: &str) -> Cow<'_, str> {
    let is_here = |word: &&str| code.contains(*word);
    if !EXTENSIONS.iter().chain(&["diagnostic", "var<function"]).any(is_here) {
        return Cow::Borrowed(code);
    }
    let tokens: Vec<_> = tokens(code).collect();
    let mut edited = Cow::Borrowed(code);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = &tokens[at..];
        let length = match token.text {
            "enable" | "requires" => directive_length(rest),
            "@" => attribute_length(rest),
            "var" => {
                let words = rest.iter().skip(1).take(4).map(|token| token.text);
                if words.eq(["<", "function", ",", ">"]) {
                    blank(&rest[3..4], &mut edited);
                }
                None
            }
            _ => None,
        };
        match (length, token.text) {
            (Some(length), "@") => remove_attribute(rest, length, &mut edited),
            (Some(length), _) => blank_extensions(&rest[..length], &mut edited),
            (None, _) => {}
        }
        at += length.unwrap_or(1);
    }
    edited
}

/// The tokens of a list of names up to its semicolon.
fn directive_length(tokens: &[Token<'_>]) -> Option<usize> {
    let is_part =
        |token: &Token<'_>| token.text == "," || token.text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let names = tokens[1..].iter().take(MAX_NAMES).take_while(|token| is_part(token)).count();
    tokens.get(names + 1).filter(|token| token.text == ";").map(|_| names + 2)
}

/// The tokens of `@diagnostic(severity, rule)`.
fn attribute_length(tokens: &[Token<'_>]) -> Option<usize> {
    let is_diagnostic = tokens.get(1).is_some_and(|token| token.text == "diagnostic");
    let end = tokens.iter().take(MAX_NAMES).position(|token| token.text == ")").filter(|_| is_diagnostic)?;
    Some(end + 1)
}

/// Blanks out an attribute, the first tokens of some.
fn remove_attribute(tokens: &[Token<'_>], length: usize, code: &mut Cow<'_, str>) {
    let attribute = &tokens[..length];
    let is_known = attribute.iter().any(|token| token.text == RULE);
    if is_known && text(tokens, end_of_attributes(tokens, 0)) == "fn" {
        return;
    }
    blank(attribute, code);
    if is_known {
        let mark = if attribute.iter().any(|token| token.text == "error") { ERROR } else { OFF };
        // The word `diagnostic` is longer.
        let start = attribute[1].range.start;
        code.to_mut().replace_range(start..start + mark.len(), mark);
    }
}

/// Tokens of a directive or an attribute; a longer one is left to naga.
const MAX_NAMES: usize = 64;

/// Blanks out the whole directive, or the names and a comma next to each.
fn blank_extensions(directive: &[Token<'_>], code: &mut Cow<'_, str>) {
    let is_name = |token: &Token<'_>| !matches!(token.text, "," | ";");
    let names = || directive[1..].iter().filter(|token| is_name(token));
    let kept = names().filter(|name| !EXTENSIONS.contains(&name.text)).count();
    if kept == names().count() {
        return;
    }
    if kept == 0 {
        blank(directive, code);
        return;
    }
    let mut first = true;
    for (at, token) in directive.iter().enumerate().skip(1).filter(|(_, token)| is_name(token)) {
        if EXTENSIONS.contains(&token.text) {
            blank(&directive[at..=at], code);
        }
        // Of the commas, those before further names that stay remain.
        let stays = !EXTENSIONS.contains(&token.text);
        if at > 1 && (first || !stays) {
            blank(&directive[at - 1..at], code);
        }
        first &= !stays;
    }
}

fn blank(tokens: &[Token<'_>], code: &mut Cow<'_, str>) {
    for token in tokens {
        let range: Range<usize> = token.range.clone();
        let blanks = " ".repeat(range.len());
        code.to_mut().replace_range(range, &blanks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_nothing_is_blanked_out() {
        let cases = [
            ("enable subgroups; x", "                  x"),
            ("enable f16, subgroups; x", "enable f16           ; x"),
            ("enable subgroups, f16; x", "enable            f16; x"),
            ("enable subgroups, f16, subgroups_f16, b;", "enable            f16               , b;"),
            ("enable f16; // subgroups", "enable f16; // subgroups"),
            ("enable f16; enable /* a */ subgroups;", "enable f16;        /* a */           "),
            ("enable subgroups", "enable subgroups"),
            ("requires subgroup_id; x", "                      x"),
            ("requires other, subgroup_id; x", "requires other             ; x"),
            (
                "@diagnostic(off, derivative_uniformity) fn f",
                "                                        fn f".get(1..).unwrap(),
            ),
            ("if x { } @diagnostic", "if x { } @diagnostic"),
            ("var<function,> x: u32;", "var<function > x: u32;"),
        ];
        for (code, expected) in cases {
            let edited = without_needless(code);
            assert_eq!(
                edited.split_whitespace().collect::<Vec<_>>(),
                expected.split_whitespace().collect::<Vec<_>>()
            );
            assert_eq!(edited.len(), code.len());
        }
    }
}
