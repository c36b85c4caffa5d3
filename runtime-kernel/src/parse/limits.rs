//! Limits the nesting depth and length of a text. naga recurses over it and takes time quadratic in the length of
//! a function, so hostile text is rejected instead of causing a stack overflow or minutes of work.

use runtime_core::Result;

use super::diagnostics::{failed, location};
use super::tokens::{Token, tokens};

const MAX_BYTES: usize = 4 << 20;
/// Nested operators and brackets; an `else if` nests inside the branch before it.
const MAX_LEVELS: usize = 1000;
/// Nested braces: as many as WGSL requires of every implementation, and as naga accepts.
const MAX_BRACES: usize = 127;
/// Nested brackets of other kinds; naga accepts fewer than 200 of all kinds.
const MAX_BRACKETS: usize = 120;
/// Declarations, each of which may name the previous one.
const MAX_DECLARATIONS: usize = 3000;
/// Tokens of a function, if it is the only one: each expression costs time for all before it. Everything outside
/// functions counts as one function.
const MAX_TOKENS: usize = 150_000;
/// Tokens of a function before its constants are evaluated.
const MAX_LONG_TOKENS: usize = 400_000;
/// Most texts have at least as many bytes per token, with the blanks around it.
const BYTES_PER_TOKEN: usize = 3;
/// Up to here the stack of any thread suffices.
const SHALLOW_LEVELS: usize = 50;
const SHALLOW_DECLARATIONS: usize = 500;

/// How much stack a text needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The stack of any thread suffices.
    Shallow,
    /// It needs a thread with a large stack.
    Deep,
}

/// Checks a text against the limits, and returns its stack need and its tokens.
///
/// # Errors
/// `CompileFailed` for a text that is larger or nested deeper than any realistic one.
pub(crate) fn check<'a>(code: &'a str, path: &str) -> Result<(Depth, Vec<Token<'a>>)> {
    check_up_to(code, path, MAX_TOKENS)
}

/// As [`check`], for a text that naga does not get as it is.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_long<'a>(code: &'a str, path: &str) -> Result<(Depth, Vec<Token<'a>>)> {
    check_up_to(code, path, MAX_LONG_TOKENS)
}

fn check_up_to<'a>(code: &'a str, path: &str, max_tokens: usize) -> Result<(Depth, Vec<Token<'a>>)> {
    if code.len() > MAX_BYTES {
        return Err(failed(format!("too long: {} bytes of text, more than {MAX_BYTES}", code.len())));
    }
    let open = vec![Nesting::default()];
    let mut counter = NestingCounter { open, max_tokens, ..NestingCounter::default() };
    let mut all: Vec<Token<'_>> = Vec::with_capacity(code.len() / BYTES_PER_TOKEN);
    for token in tokens(code) {
        counter.visit(&token, code);
        if let Some(what) = counter.exceeded() {
            return Err(failed(format!("{}: {what}; split it", location(code, path, token.span()))));
        }
        all.push(token);
    }
    let shallow = counter.deepest <= SHALLOW_LEVELS && counter.declarations <= SHALLOW_DECLARATIONS;
    Ok((if shallow { Depth::Shallow } else { Depth::Deep }, all))
}

/// An open bracket.
#[derive(Default)]
struct Nesting {
    is_brace: bool,
    /// Operators in the current statement or operand: each may take all before it as its operand.
    operators: usize,
}

#[derive(Default)]
struct NestingCounter {
    /// The text, and the open brackets in it.
    open: Vec<Nesting>,
    braces: usize,
    levels: usize,
    deepest: usize,
    declarations: usize,
    /// Tokens of the current declaration, of earlier declarations other than functions, and the sum of the squares
    /// of the functions' tokens.
    tokens: usize,
    outside: usize,
    function_squares: usize,
    max_tokens: usize,
    is_function: bool,
}

impl NestingCounter {
    /// The limit that is exceeded, as a message.
    fn exceeded(&self) -> Option<String> {
        let own = if self.is_function { self.tokens } else { self.outside + self.tokens };
        if self.levels > MAX_LEVELS {
            Some(format!("nested too deep: more than {MAX_LEVELS} nested operators and brackets"))
        } else if self.braces > MAX_BRACES {
            Some(format!("nested too deep: more than {MAX_BRACES} nested braces"))
        } else if self.open.len() - self.braces > MAX_BRACKETS + 1 {
            Some(format!("nested too deep: more than {MAX_BRACKETS} nested brackets"))
        } else if self.declarations > MAX_DECLARATIONS {
            Some(format!("too long: more than {MAX_DECLARATIONS} declarations"))
        } else if self.function_squares + own * own > self.max_tokens * self.max_tokens {
            Some(format!("too long: a function of {own} words and symbols, more than {}", self.max_tokens))
        } else {
            None
        }
    }

    fn visit(&mut self, token: &Token<'_>, code: &str) {
        self.tokens += 1;
        match token.text.as_bytes() {
            b"fn" => self.is_function |= self.open.len() == 1,
            [bracket @ (b'(' | b'[' | b'{')] => {
                let is_brace = *bracket == b'{';
                self.open.push(Nesting { is_brace, operators: 0 });
                self.braces += usize::from(is_brace);
                self.levels += 1;
            }
            [b')'] => self.close(),
            [b']'] => {
                self.close();
                self.operator();
            }
            [b'}'] if is_else(&code[token.range.end..]) => self.close(),
            [b'}'] => {
                self.close();
                self.end_operand();
            }
            [b';' | b','] => self.end_operand(),
            b"else" => self.operator(),
            [first, ..] if first.is_ascii_punctuation() && *first != b'_' => self.operator(),
            _ => {}
        }
        self.deepest = self.deepest.max(self.levels);
    }

    fn end_declaration(&mut self) {
        self.declarations += 1;
        let tokens = std::mem::take(&mut self.tokens);
        if std::mem::take(&mut self.is_function) {
            self.function_squares += tokens * tokens;
        } else {
            self.outside += tokens;
        }
    }

    fn operator(&mut self) {
        self.levels += 1;
        if let Some(nesting) = self.open.last_mut() {
            nesting.operators += 1;
        }
    }

    fn close(&mut self) {
        if self.open.len() > 1
            && let Some(closed) = self.open.pop()
        {
            self.levels -= 1 + closed.operators;
            self.braces -= usize::from(closed.is_brace);
        }
    }

    fn end_operand(&mut self) {
        if self.open.len() == 1 {
            self.end_declaration();
        }
        if let Some(nesting) = self.open.last_mut() {
            self.levels -= std::mem::take(&mut nesting.operators);
        }
    }
}

/// Whether the next token is `else`.
fn is_else(rest: &str) -> bool {
    tokens(rest).next().is_some_and(|next| next.text == "else")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str) -> Option<Depth> {
        check(code, "").ok().map(|(depth, _)| depth)
    }

    #[test]
    fn nesting_counts_and_sequence_does_not() {
        assert_eq!(
            of(&"fn f() { let a = (1 + 2) * 3; if a > 2 { return; } }\n".repeat(400)),
            Some(Depth::Shallow)
        );
        assert_eq!(of(&format!("const a = {}1;", "1 + ".repeat(900))), Some(Depth::Deep));
        for opener in ["(", "[", "{", "-", "a + ", "a[0]", "a.b", "else if a {} ", "array<"] {
            assert_eq!(of(&format!("fn f() {{ {} }}", opener.repeat(2000))), None, "{opener}");
        }
        assert_eq!(of(&"alias a = b;".repeat(600)), Some(Depth::Deep));
        assert_eq!(of(&"alias a = b;".repeat(20_000)), None);
        assert_eq!(of("}}}}))))"), Some(Depth::Shallow));
        for (open, close, most) in [("(", ")", 120), ("[", "]", 120), ("{", "}", 126), ("f(g[", "])", 60)] {
            let many = |count: usize| format!("fn f() {{ {}{} }}", open.repeat(count), close.repeat(count));
            assert!(of(&many(most)).is_some(), "{open}");
            assert_eq!(of(&many(most + 1)), None, "{open}");
        }
    }

    #[test]
    fn one_long_function_counts_more_than_many_short_ones() {
        let function = |statements: usize| format!("fn f() {{ {} }}\n", "x = x + 1;".repeat(statements));
        assert!(of(&function(20_000)).is_some());
        assert_eq!(of(&function(25_001)), None);
        assert!(of(&function(1000).repeat(60)).is_some());
        assert_eq!(of(&function(12_000).repeat(6)), None);
        let constant = format!("const a = array({});\n", "1, ".repeat(30_000));
        assert!(of(&constant).is_some());
        assert_eq!(of(&constant.repeat(3)), None);
    }

    #[test]
    fn the_message_has_the_location() {
        let error = check(&format!("\n\n{}", "(".repeat(2000)), "a.wgsl").unwrap_err();
        assert!(error.to_string().starts_with("a.wgsl:3: nested too deep"), "{error}");
    }
}
