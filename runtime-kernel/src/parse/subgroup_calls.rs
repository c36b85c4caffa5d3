//! Rewrites subgroup calls that naga does not accept.

use std::borrow::Cow;

use super::lists::List;
use super::text_edits::{Edit, applied};
use super::tokens::tokens;

/// Operations whose second argument is an index, of either type of integers.
const INDEXED: [&str; 3] = ["subgroupBroadcast", "subgroupShuffle", "quadBroadcast"];
/// Operations whose second argument is a `u32`.
const SHIFTED: [&str; 3] = ["subgroupShuffleUp", "subgroupShuffleDown", "subgroupShuffleXor"];

/// `code` with `subgroupElect` expressed by a sum, and with indices of type `u32`, which naga wants although WGSL allows
/// `i32`. Lines stay the same.
pub(crate) fn with_known_calls(code: &str) -> Cow<'_, str> {
    if !code.contains("subgroup") && !code.contains("quadBroadcast") {
        return Cow::Borrowed(code);
    }
    let tokens: Vec<_> = tokens(code).collect();
    let mut edits: Vec<Edit> = Vec::new();
    for at in 0..tokens.len().saturating_sub(2) {
        let (name, is_call) =
            (&tokens[at], tokens[at + 1].text == "(" && (at == 0 || tokens[at - 1].text != "fn"));
        if is_call && name.text == "subgroupElect" && tokens[at + 2].text == ")" {
            edits.push((
                name.range.start..tokens[at + 2].range.end,
                "(subgroupExclusiveAdd(1u) == 0u)".to_owned(),
            ));
        } else if is_call
            && (INDEXED.contains(&name.text) || SHIFTED.contains(&name.text))
            && let Some(list) = List::at(&tokens, at + 1)
            && let [_, index] = &list.elements[..]
        {
            let (from, to) = (tokens[index.start].range.start, tokens[index.end].range.start);
            let (before, after) = match INDEXED.contains(&name.text) {
                // `<<` refuses `bool` and real numbers, which `u32` would convert.
                true => ("u32((", ") << 0u)"),
                // `|` refuses an `i32`, as the operation does.
                false => ("((", ") | 0u)"),
            };
            edits.push((from..from, before.to_owned()));
            edits.push((to..to, after.to_owned()));
        }
    }
    if edits.is_empty() { Cow::Borrowed(code) } else { Cow::Owned(applied(code, edits)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_converted_and_an_election_is_a_sum() {
        let cases = [
            ("if subgroupElect() { }", "if (subgroupExclusiveAdd(1u) == 0u) { }"),
            (" subgroupShuffle(f(a, b), i\n+ 1)", " subgroupShuffle(f(a, b), u32((i\n+ 1) << 0u))"),
            (
                " subgroupBroadcast(subgroupShuffleXor(x, 1), 2,)",
                " subgroupBroadcast(subgroupShuffleXor(x, ((1) | 0u)), u32((2) << 0u),)",
            ),
            (
                " subgroupShuffle(array<u32, 2>(a, b)[c], 1)",
                " subgroupShuffle(array<u32, 2>(a, b)[c], u32((1) << 0u))",
            ),
            (" subgroupAdd(x)", " subgroupAdd(x)"),
            ("fn subgroupShuffle(x: u32, i: u32) {}", "fn subgroupShuffle(x: u32, i: u32) {}"),
            (" subgroupShuffle(x", " subgroupShuffle(x"),
        ];
        for (code, expected) in cases {
            assert_eq!(with_known_calls(code), expected);
        }
    }
}
