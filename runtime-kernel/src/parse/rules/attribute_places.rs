//! What `@id`, `@workgroup_size` and `@compute` stand before (§attributes, §entry-point-decl).

use super::{Violation, attributes};
use crate::parse::lists::List;
use crate::parse::tokens::{Token, text};

/// The attributes that something else has, and what compute shaders must not have.
pub(super) fn misplaced(tokens: &[Token<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    attributes::lists(tokens).for_each(|list| check(tokens, list.start, list.end, &mut found));
    found
}

/// Checks the list of attributes from one token to another.
fn check(tokens: &[Token<'_>], from: usize, to: usize, found: &mut Vec<Violation>) {
    let find = |name: &str| (from..to).find(|&at| text(tokens, at) == "@" && text(tokens, at + 1) == name);
    let is_kernel = text(tokens, to) == "fn" && find("compute").is_some();
    let mut add = |at: usize, text: &str| {
        found.push(Violation { place: tokens[at].span(), text: text.to_owned() });
    };
    if let Some(at) = find("id").filter(|_| text(tokens, to) != "override") {
        add(at, "`@id` is not allowed here; only an `override` has a number");
    }
    if let Some(at) = find("workgroup_size") {
        if !is_kernel {
            add(
                at,
                "`@workgroup_size` is not allowed here; only a function with `@compute` has a work-group",
            );
        }
        // Suffixes of literals; other expressions are left to naga.
        let sizes = List::at(tokens, at + 2).map(|list| list.elements).unwrap_or_default();
        let has = |suffix| {
            let is_literal =
                |text: &str| text.starts_with(|first: char| first.is_ascii_digit()) && text.ends_with(suffix);
            sizes.iter().any(|size| size.len() == 1 && is_literal(tokens[size.start].text))
        };
        if has('i') && has('u') {
            add(at, "the sizes of a work-group have one type; use either `i` or `u`");
        }
    }
    if is_kernel {
        let name = to + 1;
        let close = (name..tokens.len()).find(|&at| text(tokens, at) == "{").unwrap_or(name);
        let arrow = (name..close).find(|&at| text(tokens, at) == "-" && text(tokens, at + 1) == ">");
        if let Some(at) = arrow {
            add(at, "a kernel returns nothing; it writes to its tensors");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    #[test]
    fn places() {
        let count = |code| misplaced(&tokens(code).collect::<Vec<_>>()).len();
        for valid in [
            "@id(1) override a: u32;",
            "@compute @workgroup_size(8u, 8, n) fn main(@builtin(local_invocation_id) id: vec3u) { }",
            "@workgroup_size((4i), 2i) @compute fn main() { } @must_use fn f() -> u32 { return 1u; }",
            "@compute @workgroup_size(u32(4i), 2u) fn main() { }",
            "fn f(@location(0) id: u32) { } struct S { @align(16) id: u32 }",
        ] {
            assert_eq!(count(valid), 0, "{valid}");
        }
        for wrong in [
            "@id(1) const a = 1;",
            "@id(1) fn f() { }",
            "@workgroup_size(1) fn f() { }",
            "@workgroup_size(1) var<private> a: u32;",
            "@compute @workgroup_size(1u, 1i) fn main() { }",
            "@compute @workgroup_size(1) fn main() -> @location(0) u32 { return 1u; }",
        ] {
            assert_eq!(count(wrong), 1, "{wrong}");
        }
    }
}
