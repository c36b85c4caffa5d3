//! WGSL's grammar has no precedence between most operators (§expression-grammar): operands of `&`, `|`, `^`, `<<` and `>>` are
//! unary expressions, comparisons do not chain, and `&&` and `||` do not mix. naga reads such expressions as C does.

use super::Violation;
use crate::parse::lists::{Operation, Symbol, templates};
use crate::parse::tokens::Token;

/// What precedes an expression: `-`, `&` and `*` behind it have one operand.
const KEYWORDS: [&str; 6] = ["return", "if", "while", "switch", "case", "const_assert"];

/// The operators that lack parentheses.
pub(super) fn missing(tokens: &[Token<'_>]) -> Vec<Violation> {
    let templates = templates(tokens);
    let mut found = Vec::new();
    let mut open = vec![Operators::default()];
    // Whether the token before ends an operand.
    let mut is_operand = false;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let mut length = 1;
        if templates[at] > 0 {
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
                        match symbol.operation {
                            Some(operation) if is_operand => {
                                let other = operators.add(operation, token.text, symbol.length);
                                found.extend(other.map(|other| violation(token, &other)));
                            }
                            None if !matches!(token.text, "." | "!" | "~") => {
                                *operators = Operators::default();
                            }
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
    fn add(&mut self, operation: Operation, symbol: &str, length: usize) -> Option<(String, String)> {
        let own = match (operation, symbol, length) {
            (Operation::Relational, _, 2) => format!("{symbol}="),
            (_, _, 2) => symbol.repeat(2),
            _ => symbol.to_owned(),
        };
        let differs = |other: &Option<String>| other.clone().filter(|other| *other != own);
        let of_operand =
            || self.relational.clone().or_else(|| self.shift.clone()).or_else(|| self.arithmetic.clone());
        let conflict = match operation {
            Operation::Logical => self.bitwise.clone().or_else(|| differs(&self.logical)),
            Operation::Relational => self.bitwise.clone().or_else(|| self.relational.clone()),
            Operation::Bitwise => differs(&self.bitwise).or_else(|| self.logical.clone()).or_else(of_operand),
            Operation::Shift => {
                self.bitwise.clone().or_else(|| self.shift.clone()).or_else(|| self.arithmetic.clone())
            }
            Operation::Arithmetic => self.bitwise.clone().or_else(|| self.shift.clone()),
        };
        if matches!(operation, Operation::Logical | Operation::Relational) {
            (self.shift, self.arithmetic) = (None, None);
        }
        let conflict = conflict.map(|other| (other, own.clone()));
        match operation {
            Operation::Logical => (self.relational, self.logical) = (None, Some(own)),
            Operation::Relational => self.relational = Some(own),
            Operation::Bitwise => self.bitwise = Some(own),
            Operation::Shift => self.shift = Some(own),
            Operation::Arithmetic => self.arithmetic = Some(own),
        }
        conflict
    }
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
