//! What pointer types may not say (§address-space, §atomic-types, §array-types).

use std::collections::HashSet;
use std::ops::Range;

use super::Violation;
use crate::parse::lists::List;
use crate::parse::tokens::{Token, text};

/// The pointer types that no variable can have.
pub(super) fn invalid(tokens: &[Token<'_>]) -> Vec<Violation> {
    let is_type = |at: &usize| text(tokens, *at) == "ptr" && text(tokens, at + 1) == "<";
    let mut types = (0..tokens.len()).filter(is_type).peekable();
    if types.peek().is_none() {
        return Vec::new();
    }
    let declared = |word: &'static str| {
        tokens.windows(2).filter(move |pair| pair[0].text == word).map(|pair| pair[1].text)
    };
    let mut overrides: HashSet<&str> = declared("override").collect();
    // A constant of a function hides an override.
    for name in declared("const") {
        overrides.remove(name);
    }
    let wrong = types.filter_map(|at| {
        let parameters = List::at(tokens, at + 1)?.elements;
        let [space, to, rest @ ..] = &parameters[..] else { return None };
        let words = |range: &Range<usize>| tokens[range.clone()].iter().map(|token| token.text);
        let only = |range: &Range<usize>| words(range).next().unwrap_or_default();
        let access = rest.first().map_or("", only);
        let what = match only(space) {
            "storage" if access == "write" => {
                "is to memory that cannot be read; tensors are `read` or `read_write`"
            }
            "storage" if access != "read_write" && words(to).any(|word| word == "atomic") => {
                "is to an atomic that cannot be written; use `read_write`"
            }
            "workgroup" => return None,
            "function" | "private" | "uniform" if words(to).any(|word| word == "atomic") => {
                "is to an atomic; only tensors and work-group memory have atomics"
            }
            _ if words(to).any(|word| overrides.contains(word)) => {
                "is to an array whose size depends on an override; only work-group memory has such arrays"
            }
            _ => return None,
        };
        Some(Violation { place: tokens[at].span(), text: format!("this pointer {what}") })
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    #[test]
    fn only_what_variables_can_have() {
        let count = |code: &str| {
            let code = format!("override size = 4u; {code}");
            invalid(&tokens(&code).collect::<Vec<_>>()).len()
        };
        for valid in [
            "fn f(a: ptr<storage, atomic<u32>, read_write>) {}",
            "fn f(a: ptr<storage, array<u32, 4>>, size: u32) {}",
            "fn f(a: ptr<storage, u32, read,>) {}",
            "fn f(a: ptr<workgroup, array<atomic<u32>, size>>) {}",
            "fn f(a: ptr<function, array<u32, (4)>>) {}",
            "const ptr = 1; const a = ptr < size;",
            "fn f() { const size = 4u; var a: array<u32, size>; let p: ptr<function, array<u32, size>> = &a; }",
        ] {
            assert_eq!(count(valid), 0, "{valid}");
        }
        for wrong in [
            "alias T = ptr<storage, u32, write,>;",
            "fn f(a: ptr<storage, array<atomic<u32>, 4>, read>) {}",
            "fn f(a: ptr<storage, atomic<i32>>) {}",
            "alias T = ptr<private, array<atomic<i32>, 2>>;",
            "fn f(a: ptr<private, array<u32, size>>) {}",
            "fn f(a: ptr<function, array<array<u32, 2>, size>>) {}",
        ] {
            assert_eq!(count(wrong), 1, "{wrong}");
        }
    }
}
