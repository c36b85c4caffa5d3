//! `@diagnostic` is before functions, statements with blocks, and blocks (§attributes). It is about warnings, so nothing but
//! its place matters here.

use super::{Violation, attributes};
use crate::parse::tokens::{Token, text};

const SEVERITIES: [&str; 4] = ["off", "info", "warning", "error"];
/// Statements that attributes may precede.
const STATEMENTS: [&str; 5] = ["if", "switch", "loop", "for", "while"];

/// The attributes in other places, of another severity, or twice in one place.
pub(super) fn misplaced(tokens: &[Token<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    attributes::lists(tokens).for_each(|list| check(tokens, list.start, list.end, &mut found));
    found
}

/// Checks the list of attributes from one token to another.
fn check(tokens: &[Token<'_>], from: usize, to: usize, found: &mut Vec<Violation>) {
    let mut rules: Vec<String> = Vec::new();
    for at in (from..to).filter(|&at| text(tokens, at) == "@" && text(tokens, at + 1) == "diagnostic") {
        let place = tokens[at + 1].span();
        let severity = text(tokens, at + 3);
        let rule = tokens.iter().skip(at + 5).take_while(|token| !matches!(token.text, ")" | ","));
        let rule: String = rule.map(|token| token.text).collect();
        let wrong = if !SEVERITIES.contains(&severity) {
            Some(format!(
                "`@diagnostic` has the severity `{severity}`; it is `off`, `info`, `warning` or `error`"
            ))
        } else if !is_allowed(tokens, from, to) {
            Some(
                "`@diagnostic` is not allowed here; it is before a function, before `if`, `switch`, `loop`, `for` or `while`, \
                 or before a block"
                    .to_owned(),
            )
        } else if rules.contains(&rule) {
            Some(format!("two `@diagnostic` are about `{rule}`; remove one"))
        } else {
            None
        };
        rules.push(rule);
        found.extend(wrong.map(|text| Violation { place, text }));
    }
}

/// Whether the list of attributes from one token to another may have a `@diagnostic`.
fn is_allowed(tokens: &[Token<'_>], from: usize, to: usize) -> bool {
    let before = |distance: usize| from.checked_sub(distance).map_or("", |at| text(tokens, at));
    match text(tokens, to) {
        "fn" => true,
        "{" => before(2) != "struct",
        statement => STATEMENTS.contains(&statement) && matches!(before(1), ";" | "{" | "}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    const ATTRIBUTE: &str = "@diagnostic(off, derivative_uniformity)";

    fn is_valid(code: &str) -> bool {
        misplaced(&tokens(&code.replace('$', ATTRIBUTE)).collect::<Vec<_>>()).is_empty()
    }

    #[test]
    fn places() {
        let valid = [
            "$ fn f() { }",
            "@compute $ @workgroup_size((1 + 1), 2) fn f() { }",
            "fn f() { $ { } }",
            "fn f() { $ if a { } }",
            "fn f() { if a $ { } else $ { } }",
            "fn f() { $ switch 0 $ { default $ { } } }",
            "fn f() { g(); $ loop $ { break; continuing $ { } } }",
            "fn f() { { } $ while true $ { } $ for (;;) $ { break; } }",
            "@diagnostic(info, chromium.unreachable_code,) fn f() { }",
            "$ @diagnostic(off, subgroup_uniformity) fn f() { }",
        ];
        for code in valid {
            assert!(is_valid(code), "{code}");
        }
        let invalid = [
            "$ var<private> x: u32;",
            "$ const x = 0;",
            "$ override x: u32;",
            "$ struct S { x: u32 }",
            "struct S $ { x: u32 }",
            "struct S { $ x: u32 }",
            "fn f$() { }",
            "fn f() { $ var x = 0; }",
            "fn f() { if a { } $ else { } }",
            "fn f() { if a { } else $ if b { } }",
            "fn f() { switch 0 { $ default { } } }",
            "fn f() { loop { $ continuing { } } }",
            "fn f() { for $ (;;) { } }",
            "fn f() { $ }",
            "$ $ fn f() { }",
            "@diagnostic(warn, derivative_uniformity) fn f() { }",
        ];
        for code in invalid {
            assert!(!is_valid(code), "{code}");
        }
    }
}
