//! Lists in brackets, also in the `<` and `>` around template parameters.

use std::ops::Range;

use super::tokens::{Token, text};

/// What an operator with two operands does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Logical,
    Relational,
    Bitwise,
    Shift,
    Arithmetic,
}

/// An operator or another symbol.
pub(super) struct Symbol {
    /// In tokens.
    pub(super) length: usize,
    /// What an operator with two operands does.
    pub(super) operation: Option<Operation>,
}

impl Symbol {
    /// The longest symbol at a token.
    pub(super) fn of(tokens: &[Token<'_>], at: usize) -> Self {
        let is_next =
            |at: usize| tokens.get(at + 1).is_some_and(|next| tokens[at].range.end == next.range.start);
        let first = tokens[at].text;
        let second = if is_next(at) { text(tokens, at + 1) } else { "" };
        let third = if !second.is_empty() && is_next(at + 1) { text(tokens, at + 2) } else { "" };
        let (length, operation) = match (first, second, third) {
            ("<", "<", "=") | (">", ">", "=") => (3, None),
            ("<", "<", _) | (">", ">", _) => (2, Some(Operation::Shift)),
            ("<" | ">" | "=" | "!", "=", _) => (2, Some(Operation::Relational)),
            ("&", "&", _) | ("|", "|", _) => (2, Some(Operation::Logical)),
            ("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", "=", _) | ("+", "+", _) | ("-", "-" | ">", _) => {
                (2, None)
            }
            ("<" | ">", ..) => (1, Some(Operation::Relational)),
            ("&" | "|" | "^", ..) => (1, Some(Operation::Bitwise)),
            ("+" | "-" | "*" | "/" | "%", ..) => (1, Some(Operation::Arithmetic)),
            _ => (1, None),
        };
        Self { length, operation }
    }
}

/// Finds template parameters while tokens are read one by one (§template-list-discovery).
#[derive(Default)]
struct Templates {
    /// Each `<` that may open a list, with its depth in brackets.
    pending: Vec<(usize, usize)>,
    /// Open `(` and `[`.
    depth: usize,
}

impl Templates {
    /// Reads the symbol at a token. Returns its length, and if it is the `>` of a list, the place of its `<`.
    fn read(&mut self, tokens: &[Token<'_>], at: usize) -> (usize, Option<usize>) {
        let word = tokens[at].text;
        if word == ">"
            && let Some((open, _)) = self.pending.pop_if(|(_, depth)| *depth == self.depth)
        {
            return (1, Some(open));
        }
        let symbol = Symbol::of(tokens, at);
        match (word, symbol.length) {
            ("<", 1) if at > 0 && is_name(tokens[at - 1].text) => self.pending.push((at, self.depth)),
            ("(" | "[", _) => self.depth += 1,
            (")" | "]", _) => {
                self.drop_pending();
                self.depth = self.depth.saturating_sub(1);
            }
            ("{" | "}" | ";" | ":", _) | ("=", 1) => *self = Self::default(),
            ("&" | "|", 2) if symbol.operation == Some(Operation::Logical) => self.drop_pending(),
            _ => {}
        }
        (symbol.length, None)
    }

    fn drop_pending(&mut self) {
        while self.pending.pop_if(|(_, depth)| *depth >= self.depth).is_some() {}
    }
}

/// By token: if it is a `<` or `>` around template parameters, the place of the other one; 0 otherwise.
pub(super) fn templates(tokens: &[Token<'_>]) -> Vec<usize> {
    let (mut others, mut templates, mut at) = (vec![0; tokens.len()], Templates::default(), 0);
    while at < tokens.len() {
        let (length, open) = templates.read(tokens, at);
        if let Some(open) = open {
            (others[open], others[at]) = (at, open);
        }
        at += length;
    }
    others
}

/// What is between two brackets.
pub(super) struct List {
    /// The elements between the commas.
    pub(super) elements: Vec<Range<usize>>,
    /// The closing bracket.
    pub(super) close: usize,
}

impl List {
    /// The list behind the `(`, `[` or `<` at a token; `None` if it has no end, or if the `<` is an operator.
    pub(super) fn at(tokens: &[Token<'_>], open: usize) -> Option<Self> {
        let is_template = match tokens.get(open)?.text {
            "(" | "[" => false,
            "<" => true,
            _ => return None,
        };
        let mut templates = Templates::default();
        let mut at = open + templates.read(tokens, open).0;
        let depth = templates.depth;
        let mut commas = Vec::new();
        loop {
            let word = tokens.get(at)?.text;
            let (length, opened) = templates.read(tokens, at);
            if opened == Some(open) || (templates.depth < depth && matches!(word, ")" | "]")) {
                return Some(Self::between(open, &commas, at));
            }
            if templates.depth < depth || (is_template && templates.pending.is_empty()) {
                return None;
            }
            match opened {
                // These were between the parameters.
                Some(inner) => commas.retain(|comma| *comma < inner),
                None if word == "," && templates.depth == depth => commas.push(at),
                None => {}
            }
            at += length;
        }
    }

    fn between(open: usize, commas: &[usize], close: usize) -> Self {
        let starts = std::iter::once(open).chain(commas.iter().copied()).map(|before| before + 1);
        let ends = commas.iter().copied().chain([close]);
        let elements = starts.zip(ends).map(|(start, end)| start..end).filter(|element| !element.is_empty());
        Self { elements: elements.collect(), close }
    }
}

/// The token behind the type at a token.
pub(super) fn end_of_type(tokens: &[Token<'_>], at: usize) -> usize {
    List::at(tokens, at + 1).map_or(at, |parameters| parameters.close) + 1
}

/// The token behind the list of attributes at a token.
pub(super) fn end_of_attributes(tokens: &[Token<'_>], mut at: usize) -> usize {
    while text(tokens, at) == "@" {
        at = List::at(tokens, at + 2).map_or(at + 1, |list| list.close) + 1;
    }
    at.min(tokens.len())
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    #[test]
    fn types_end_behind_their_parameters() {
        for (code, end) in [("u32, a", 1), ("array<vec2<f32>, (1 > 2)> = a", 13), ("a < b;", 1), ("", 1)] {
            assert_eq!(end_of_type(&tokens(code).collect::<Vec<_>>(), 0), end, "{code}");
        }
    }

    #[test]
    fn elements_are_what_commas_part() {
        for (code, expected) in [
            ("(a, b[c, d], f(e, f),) g", Some("a|b [ c , d ]|f ( e , f )")),
            ("(array<u32, 2>(1, 2)[0], b)", Some("array < u32 , 2 > ( 1 , 2 ) [ 0 ]|b")),
            ("(a < b && c, d > e)", Some("a < b & & c|d > e")),
            ("()", Some("")),
            ("vec2<u32, (a > b), c<d,>>>= e", Some("u32|( a > b )|c < d , >")),
            ("a < b, c)", None),
            ("a < b; c >", None),
            ("a << b >", None),
            ("(a; b)", None),
            ("(a, b", None),
        ] {
            let tokens: Vec<_> = tokens(code).collect();
            let open = tokens.iter().position(|token| matches!(token.text, "(" | "<")).unwrap();
            let words = |element: &Range<usize>| {
                tokens[element.clone()].iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
            };
            let found = List::at(&tokens, open);
            let found = found.map(|list| list.elements.iter().map(words).collect::<Vec<_>>().join("|"));
            assert_eq!(found.as_deref(), expected, "{code}");
        }
    }
}
