//! WGSL's grammar has no precedence between most operators (§expression-grammar): operands of `&`, `|`, `^`, `<<` and `>>` are
//! unary expressions, comparisons do not chain, and `&&` and `||` do not mix. naga reads such expressions as C does.

use super::Violation;
use crate::parse::tokens::{Token, text};

/// What precedes an expression: `-`, `&` and `*` behind it have one operand.
const KEYWORDS: [&str; 6] = ["return", "if", "while", "switch", "case", "const_assert"];

/// The operators that lack parentheses.
pub(super) fn missing(tokens: &[Token<'_>]) -> Vec<Violation> {
    let mut templates = template_brackets(tokens).into_iter().peekable();
    let mut found = Vec::new();
    let mut open = vec![Operators::default()];
    // Whether the token before ends an operand.
    let mut is_operand = false;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let mut length = 1;
        while templates.next_if(|bracket| *bracket < at).is_some() {}
        if templates.next_if_eq(&at).is_some() {
            is_operand = token.text == ">";
            bracket(is_operand, &mut open);
        } else {
            match token.text.as_bytes() {
                [b'(' | b'['] | [b')' | b']'] => {
                    is_operand = matches!(token.text, ")" | "]");
                    bracket(is_operand, &mut open);
                }
                [first, ..] if first.is_ascii_alphanumeric() || *first == b'_' || !first.is_ascii() => {
                    is_operand = !KEYWORDS.contains(&token.text);
                }
                _ => {
                    let symbol = Symbol::of(tokens, at);
                    length = symbol.length;
                    if let Some(operators) = open.last_mut() {
                        match symbol.kind {
                            Some(kind) if is_operand => {
                                let other = operators.add(kind, token.text, symbol.length);
                                found.extend(other.map(|other| violation(token, &other)));
                            }
                            None if symbol.ends => *operators = Operators::default(),
                            _ => {}
                        }
                    }
                    is_operand = false;
                }
            }
        }
        at += length;
    }
    found
}

fn bracket(closes: bool, open: &mut Vec<Operators>) {
    match closes {
        true if open.len() > 1 => drop(open.pop()),
        true => {}
        false => open.push(Operators::default()),
    }
}

fn violation(token: &Token<'_>, (before, this): &(String, String)) -> Violation {
    let text = format!(
        "`{this}` follows `{before}` without parentheses; WGSL has no order of the two: put one of them in parentheses"
    );
    Violation { place: token.span(), text }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Logical,
    Relational,
    Bitwise,
    Shift,
    Arithmetic,
}

/// An operator or another symbol.
struct Symbol {
    length: usize,
    /// The kind of an operator with two operands.
    kind: Option<Kind>,
    /// Whether an expression ends here.
    ends: bool,
}

impl Symbol {
    /// The longest symbol at a token.
    fn of(tokens: &[Token<'_>], at: usize) -> Self {
        let is_next =
            |at: usize| tokens.get(at + 1).is_some_and(|next| tokens[at].range.end == next.range.start);
        let first = tokens[at].text;
        let second = if is_next(at) { text(tokens, at + 1) } else { "" };
        let third = if !second.is_empty() && is_next(at + 1) { text(tokens, at + 2) } else { "" };
        let (length, kind) = match (first, second, third) {
            ("<", "<", "=") | (">", ">", "=") => (3, None),
            ("<", "<", _) | (">", ">", _) => (2, Some(Kind::Shift)),
            ("<" | ">" | "=" | "!", "=", _) => (2, Some(Kind::Relational)),
            ("&", "&", _) | ("|", "|", _) => (2, Some(Kind::Logical)),
            ("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", "=", _) | ("+", "+", _) | ("-", "-" | ">", _) => {
                (2, None)
            }
            ("<" | ">", ..) => (1, Some(Kind::Relational)),
            ("&" | "|" | "^", ..) => (1, Some(Kind::Bitwise)),
            ("+" | "-" | "*" | "/" | "%", ..) => (1, Some(Kind::Arithmetic)),
            _ => (1, None),
        };
        Self { length, kind, ends: kind.is_none() && !matches!(first, "." | "!" | "~") }
    }
}

/// The operators of an expression so far, as text where they matter.
#[derive(Default)]
struct Operators {
    logical: Option<String>,
    bitwise: Option<String>,
    /// In the operand of `&&` or `||`.
    relational: Option<String>,
    /// In the operand of a comparison.
    shift: Option<String>,
    arithmetic: Option<String>,
}

impl Operators {
    /// Adds an operator, and returns the earlier one that it conflicts with, and itself.
    fn add(&mut self, kind: Kind, symbol: &str, length: usize) -> Option<(String, String)> {
        let own = match (kind, symbol, length) {
            (Kind::Relational, _, 2) => format!("{symbol}="),
            (_, _, 2) => symbol.repeat(2),
            _ => symbol.to_owned(),
        };
        let differs = |other: &Option<String>| other.clone().filter(|other| *other != own);
        let of_operand =
            || self.relational.clone().or_else(|| self.shift.clone()).or_else(|| self.arithmetic.clone());
        let conflict = match kind {
            Kind::Logical => self.bitwise.clone().or_else(|| differs(&self.logical)),
            Kind::Relational => self.bitwise.clone().or_else(|| self.relational.clone()),
            Kind::Bitwise => differs(&self.bitwise).or_else(|| self.logical.clone()).or_else(of_operand),
            Kind::Shift => {
                self.bitwise.clone().or_else(|| self.shift.clone()).or_else(|| self.arithmetic.clone())
            }
            Kind::Arithmetic => self.bitwise.clone().or_else(|| self.shift.clone()),
        };
        if matches!(kind, Kind::Logical | Kind::Relational) {
            (self.shift, self.arithmetic) = (None, None);
        }
        let conflict = conflict.map(|other| (other, own.clone()));
        match kind {
            Kind::Logical => (self.relational, self.logical) = (None, Some(own)),
            Kind::Relational => self.relational = Some(own),
            Kind::Bitwise => self.bitwise = Some(own),
            Kind::Shift => self.shift = Some(own),
            Kind::Arithmetic => self.arithmetic = Some(own),
        }
        conflict
    }
}

/// The tokens `<` and `>` that enclose template parameters, in order (§template-list-discovery).
fn template_brackets(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut found = Vec::new();
    // Each `<` that may open a list, with its depth in brackets.
    let mut pending: Vec<(usize, usize)> = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let symbol = Symbol::of(tokens, at);
        if token.text == ">"
            && let Some((open, _)) = pending.pop_if(|(_, of)| *of == depth)
        {
            found.extend([open, at]);
            at += 1;
            continue;
        }
        match (token.text, symbol.length) {
            ("<", 1) if at > 0 && is_name(tokens[at - 1].text) => pending.push((at, depth)),
            ("(" | "[", _) => depth += 1,
            (")" | "]", _) => {
                while pending.pop_if(|(_, of)| *of >= depth).is_some() {}
                depth = depth.saturating_sub(1);
            }
            ("{" | "}" | ";" | ":", _) | ("=", 1) => {
                depth = 0;
                pending.clear();
            }
            ("&" | "|", 2) if symbol.kind == Some(Kind::Logical) => {
                while pending.pop_if(|(_, of)| *of >= depth).is_some() {}
            }
            _ => {}
        }
        at += symbol.length;
    }
    found.sort_unstable();
    found
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    fn found(code: &str) -> Vec<String> {
        missing(&tokens(code).collect::<Vec<_>>()).into_iter().map(|violation| violation.text).collect()
    }

    #[test]
    fn what_the_grammar_allows() {
        let valid = [
            "a + b * c - d / e % f",
            "a & b & c",
            "a | b | c",
            "a ^ -b ^ ~c",
            "a && b && c",
            "a || !b || c",
            "a < b && c >= d + e && f != g << 2u",
            "a << b == c",
            "a << 2u > b >> 3u",
            "(a - b) << c",
            "a[i - 1] << b[j + 2]",
            "(a & b) | c",
            "(p && q) || r",
            "f(a + b, c & d) << 3u",
            "x = a << b; y = a + b",
            "x <<= a + b; y >>= a & b; z &= a + b",
            "i < n; i++) { j << 2u",
            "return -a << b",
            "if -a < b && c { *p = a << b; }",
            "case -1, 2: { x = a << b; }",
            "array<vec2<f32>>(a) << b",
            "vec2<u32>(a, b) & c",
            "bitcast<vec2<u32>>(a) & b & c",
            "var<storage, read_write> x: array<atomic<u32>>; const y = a & b",
            "var<private> x: array<u32, n + 1> = y; a & b",
            "array<u32, (a & b)>() ",
            "a < b && c > d",
            "f(a < b, c > d)",
            "a < (b) && c > (d)",
            "fn f(a: ptr<function, array<u32, 4>>) -> u32 { return a & b; }",
            "let x: vec2<f32>= y << 2u",
            "*p & *q & *r",
            "a / -b",
            "x = &a; y = a & b",
            "a & b // | c",
            "x++; y--; a << b",
        ];
        for code in valid {
            assert_eq!(found(code), <[String; 0]>::default(), "{code}");
        }
    }

    #[test]
    fn what_it_does_not_allow() {
        let invalid = [
            "a - b << c",
            "a << b + c",
            "a << b << c",
            "a << b >> c",
            "a & b | c",
            "a | b & c",
            "a ^ b | c",
            "a & b == c",
            "a == b & c",
            "a & b + c",
            "a + b & c",
            "a & b << c",
            "a << b & c",
            "a & b && c",
            "a && b & c",
            "p && q || r",
            "p || q && r",
            "a < b && c || d",
            "a == b == c",
            "a < b != c",
            "a < b <= c",
            "a * b >> c",
            "vec2<u32>(a, b) + c << d",
            "x[a + b << c]",
            "f(a, b | c ^ d)",
            "x += a - b << c",
            "x <<= a - b << c",
            "if a & b | c { }",
            "array<u32, (a & b | c)>()",
        ];
        for code in invalid {
            assert_eq!(found(code).len(), 1, "{code}");
        }
        assert!(found("a - b << c")[0].starts_with("`<<` follows `-` without parentheses"));
        assert!(found("p && q || r")[0].starts_with("`||` follows `&&` without parentheses"));
        assert!(found("a == b != c")[0].starts_with("`!=` follows `==` without parentheses"));
    }
}
