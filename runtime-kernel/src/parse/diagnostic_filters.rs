//! Where a text turns the diagnostic `subgroup_uniformity` off (§diagnostics). It does so by a directive, by attributes of
//! functions, or by attributes of statements and blocks, of which [`without_needless`](super::directives::without_needless)
//! leaves a mark.

use std::ops::Range;

use naga::Span;

use super::tokens::{Token, text, tokens};

/// The rule that the filters are about.
pub(super) const RULE: &str = "subgroup_uniformity";

/// The comments in place of `@diagnostic(…, subgroup_uniformity)` before a statement or a block.
pub(super) const OFF: &str = "/*@off*/";
pub(super) const ERROR: &str = "/*@on*/";

/// Whether the diagnostic is an error, by place.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Filters {
    /// Whether it is off at the start of the text.
    is_off: bool,
    /// The places from which on that is otherwise, in order.
    changes: Vec<(usize, bool)>,
}

impl Filters {
    /// The filters of a text; `None` if it has no operation of subgroups, or the diagnostic is off everywhere.
    pub(crate) fn of_subgroups(code: &str) -> Option<Self> {
        // All names of operations begin so.
        if !code.contains("subgroup") && !code.contains("quad") {
            return None;
        }
        let filters = Self::of(code);
        let off_everywhere = filters.is_off && filters.changes.iter().all(|(_, is_off)| *is_off);
        (!off_everywhere).then_some(filters)
    }

    fn of(code: &str) -> Self {
        let mut filters = Self::default();
        if ![RULE, OFF, ERROR].iter().any(|word| code.contains(word)) {
            return filters;
        }
        let tokens: Vec<_> = tokens(code).collect();
        let mut ranges = marked(code, &tokens);
        for at in 0..tokens.len() {
            match (severity(&tokens, at), at.checked_sub(1)) {
                (Some(is_off), Some(before)) if tokens[before].text == "@" => {
                    ranges.extend(construct(&tokens, at).map(|range| (range, is_off)));
                }
                (Some(is_off), _) => filters.is_off = is_off,
                (None, _) => {}
            }
        }
        ranges.sort_by_key(|(range, _)| range.start);
        filters.changes = changes(&ranges, filters.is_off);
        filters
    }

    /// Whether the diagnostic is off, or less than an error, at a place.
    pub(crate) fn are_off_at(&self, place: Span) -> bool {
        let start = place.to_range().map_or(0, |range| range.start);
        let before = self.changes.partition_point(|(at, _)| *at <= start);
        before.checked_sub(1).map_or(self.is_off, |last| self.changes[last].1)
    }
}

/// The ranges of the attributes that have left a mark.
fn marked(code: &str, tokens: &[Token<'_>]) -> Vec<(Range<usize>, bool)> {
    let marks = [(OFF, true), (ERROR, false)].into_iter();
    let places = marks.flat_map(|(mark, is_off)| code.match_indices(mark).map(move |(at, _)| (at, is_off)));
    let range = |(at, is_off)| {
        let next = tokens.partition_point(|token| token.range.start < at);
        Some((construct(tokens, next)?, is_off))
    };
    places.filter_map(range).collect()
}

/// Whether the `diagnostic(severity, subgroup_uniformity)` at a token, if there is one, makes it less than an error.
fn severity(tokens: &[Token<'_>], at: usize) -> Option<bool> {
    let words = ["diagnostic", "(", "", ",", RULE];
    let is_here = words.iter().zip(at..).all(|(word, at)| word.is_empty() || text(tokens, at) == *word);
    is_here.then(|| text(tokens, at + 2) != "error")
}

/// The range of the function, statement or block that follows from a token on.
fn construct(tokens: &[Token<'_>], start: usize) -> Option<Range<usize>> {
    let mut close = end_of_block(tokens, start)?;
    // An attribute of an `if` is about all of its branches.
    while text(tokens, start) == "if" && text(tokens, close + 1) == "else" {
        close = end_of_block(tokens, close + 1)?;
    }
    Some(tokens[start].range.start..tokens[close].range.end)
}

/// The last token of the first block from a token on.
fn end_of_block(tokens: &[Token<'_>], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut closes = |token: &Token<'_>| {
        match token.text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => return false,
        }
        depth == 0
    };
    Some(start + tokens[start..].iter().position(&mut closes)?)
}

/// Where ranges begin or end, each inside of those that are open, with what holds from there on.
fn changes(ranges: &[(Range<usize>, bool)], outside: bool) -> Vec<(usize, bool)> {
    let mut changes = Vec::new();
    let mut open: Vec<(usize, bool)> = Vec::new();
    let end_until = |place: usize, open: &mut Vec<(usize, bool)>, changes: &mut Vec<(usize, bool)>| {
        while let Some((end, _)) = open.pop_if(|(end, _)| *end <= place) {
            changes.push((end, open.last().map_or(outside, |(_, is_off)| *is_off)));
        }
    };
    for (range, is_off) in ranges {
        end_until(range.start, &mut open, &mut changes);
        changes.push((range.start, *is_off));
        open.push((range.end, *is_off));
    }
    end_until(usize::MAX, &mut open, &mut changes);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::directives::without_needless;

    /// For each `f()` of a text, whether the diagnostic is off there.
    fn off(code: &str) -> Vec<bool> {
        let code = code.replace("$off", "@diagnostic(off, subgroup_uniformity)");
        let code = code.replace("$error", "@diagnostic(error, subgroup_uniformity)");
        let code = without_needless(&code);
        let filters = Filters::of(&code);
        let places = code.match_indices("f()").map(|(at, _)| u32::try_from(at).unwrap());
        places.map(|at| filters.are_off_at(Span::new(at, at + 3))).collect()
    }

    #[test]
    fn the_innermost_filter_counts() {
        for (code, expected) in [
            ("fn main() { f(); }", &[false][..]),
            ("diagnostic(off, subgroup_uniformity); fn main() { f(); }", &[true]),
            ("diagnostic(warning, subgroup_uniformity,); fn main() { f(); }", &[true]),
            ("diagnostic(error, subgroup_uniformity); fn main() { f(); }", &[false]),
            ("diagnostic(off, derivative_uniformity); fn main() { f(); }", &[false]),
            (
                "diagnostic(off, subgroup_uniformity); fn main() { f(); $error { f(); } f(); }",
                &[true, false, true],
            ),
            ("$off @compute fn a() { f(); } fn b() { f(); }", &[true, false]),
            (
                "@compute @diagnostic(info, subgroup_uniformity,) fn a() { f(); } fn b() { f(); }",
                &[true, false],
            ),
            ("@diagnostic(off, derivative_uniformity) fn a() { f(); }", &[false]),
            (
                "fn a() { $off if f() { f(); } else if f() { f(); } else { f(); } f(); }",
                &[true, true, true, true, true, false],
            ),
            ("fn a() { if f() $off { f(); } else { f(); } f(); }", &[false, true, false, false]),
            ("fn a() { if f() { f(); } else $off { f(); } f(); }", &[false, false, true, false]),
            ("fn a() { $off for (f(); f(); f()) { f(); } f(); }", &[true, true, true, true, false]),
            ("fn a() { for (; f(); ) $off { { f(); } } f(); }", &[false, true, false]),
            ("fn a() { $off while f() { f(); } $off loop { f(); } f(); }", &[true, true, true, false]),
            ("fn a() { $off switch f() { default { f(); } } f(); }", &[true, true, false]),
            ("fn a() { switch f() $off { default $error { f(); } case 1 { f(); } } }", &[false, false, true]),
            (
                "fn a() { $off { f(); $error { f(); { f(); } } f(); } f(); }",
                &[true, false, false, true, false],
            ),
            ("fn a() { $off { $off { f(); } } { f(); } }", &[true, false]),
            // A comment is none, and neither is what has no block.
            ("fn a() { /* @diagnostic(off, subgroup_uniformity) */ { f(); } }", &[false]),
            ("fn a() { f(); $off }", &[false]),
        ] {
            assert_eq!(off(code), expected, "{code}");
        }
    }

    #[test]
    fn texts_that_need_no_check_have_no_filters() {
        assert_eq!(Filters::of_subgroups("fn main() { }"), None);
        assert_eq!(
            Filters::of_subgroups("diagnostic(off, subgroup_uniformity); fn a() { quadSwapX(1); }"),
            None
        );
        assert!(Filters::of_subgroups("fn a() { quadSwapX(1); }").is_some());
        let code = "diagnostic(off, subgroup_uniformity); @diagnostic(error, subgroup_uniformity) fn a() { }";
        assert!(Filters::of_subgroups(code).is_some());
    }
}
