//! Parts the signs of `a--b`, which is `a - -b`: naga takes them for a decrement, which is a statement.

use std::borrow::Cow;

use super::text_edits::applied;
use super::tokens::tokens;

/// `code` with a blank between two signs that no statement or loop head ends with; lines stay the same.
pub(crate) fn parted(code: &str) -> Cow<'_, str> {
    if !code.contains("--") {
        return Cow::Borrowed(code);
    }
    let tokens: Vec<_> = tokens(code).collect();
    let are_signs = tokens.windows(3).filter(|three| {
        let is_joined = three[0].range.end == three[1].range.start;
        three[0].text == "-" && three[1].text == "-" && is_joined && !matches!(three[2].text, ";" | ")")
    });
    let edits: Vec<_> =
        are_signs.map(|three| (three[1].range.start..three[1].range.start, " ".into())).collect();
    if edits.is_empty() { Cow::Borrowed(code) } else { Cow::Owned(applied(code, edits)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decrements_stay() {
        let kept = "i--; for (; i > 0; i--) { } x = a - -b; // a--b\n i --; x[0]--; x = a -\n-b;";
        assert_eq!(parted(kept), kept);
        assert_eq!(parted("x = a--b; y = f(1---c, --d); i--;"), "x = a- -b; y = f(1- - -c, - -d); i--;");
    }
}
