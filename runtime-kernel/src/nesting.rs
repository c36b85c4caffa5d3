//! Bounds on how deep a text may be nested, since naga recurses over it: hostile text is refused, not a stack overflow.

use runtime_core::{Error, ErrorKind, Result};

use crate::program::place;
use crate::tokens::{Token, tokens};

const MOST_BYTES: usize = 4 << 20;
/// Operators and brackets around one another; an `else if` counts as one inside the other.
const MOST_LEVELS: usize = 1000;
/// Declarations, each of which may name the one before.
const MOST_DECLARATIONS: usize = 3000;
/// Up to here any thread's stack is enough.
const SHALLOW_LEVELS: usize = 50;
const SHALLOW_DECLARATIONS: usize = 500;

/// How much stack a text needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Any thread has enough.
    Shallow,
    /// It takes a thread with a large stack.
    Deep,
}

/// # Errors
/// `CompileFailed` for a text that is larger or nested deeper than any honest one.
pub(crate) fn depth(code: &str, path: &str) -> Result<Depth> {
    if code.len() > MOST_BYTES {
        return Err(failed(format!("the text has {} bytes, more than {MOST_BYTES}", code.len())));
    }
    let mut nest = Nest { open: vec![0], levels: 0, deepest: 0, declarations: 0 };
    let mut list = tokens(code).peekable();
    while let Some(token) = list.next() {
        nest.take(&token, list.peek().is_some_and(|next| next.text == "else"));
        if nest.levels > MOST_LEVELS || nest.declarations > MOST_DECLARATIONS {
            let place = place(code, path, token.span());
            let most = format!("{MOST_LEVELS} levels or {MOST_DECLARATIONS} declarations");
            return Err(failed(format!("{place}: nested too deep, or too long: more than {most}; split it")));
        }
    }
    let shallow = nest.deepest <= SHALLOW_LEVELS && nest.declarations <= SHALLOW_DECLARATIONS;
    Ok(if shallow { Depth::Shallow } else { Depth::Deep })
}

fn failed(message: String) -> Error {
    Error::new(ErrorKind::CompileFailed, message)
}

/// Per open bracket, the operators of the statement or operand so far: each may hold all before it as its operand.
struct Nest {
    open: Vec<usize>,
    levels: usize,
    deepest: usize,
    declarations: usize,
}

impl Nest {
    fn take(&mut self, token: &Token<'_>, before_else: bool) {
        match token.text {
            "(" | "[" | "{" => {
                self.open.push(0);
                self.levels += 1;
            }
            ")" => self.close(),
            "]" => {
                self.close();
                self.operator();
            }
            "}" if before_else => self.close(),
            "}" => {
                self.close();
                self.end_operand();
            }
            ";" | "," => self.end_operand(),
            "else" => self.operator(),
            text if text.starts_with(|first: char| first.is_ascii_punctuation() && first != '_') => {
                self.operator();
            }
            _ => {}
        }
        self.deepest = self.deepest.max(self.levels);
    }

    fn operator(&mut self) {
        self.levels += 1;
        if let Some(operators) = self.open.last_mut() {
            *operators += 1;
        }
    }

    fn close(&mut self) {
        if self.open.len() > 1 {
            self.levels -= 1 + self.open.pop().unwrap_or(0);
        }
    }

    fn end_operand(&mut self) {
        self.declarations += usize::from(self.open.len() == 1);
        if let Some(operators) = self.open.last_mut() {
            self.levels -= std::mem::take(operators);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str) -> Option<Depth> {
        depth(code, "").ok()
    }

    #[test]
    fn what_nests_counts_and_what_follows_does_not() {
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
    }

    #[test]
    fn the_message_has_the_place() {
        let error = depth(&format!("\n\n{}", "(".repeat(2000)), "a.wgsl").unwrap_err();
        assert!(error.to_string().starts_with("a.wgsl:3: nested too deep"), "{error}");
    }
}
