//! Evaluates constant expressions that naga does not: some built-in functions, and the side of `&&` and `||` that is not
//! used. Their values take their place in the text. Whatever is not known here stays, so that naga judges it.

#![allow(clippy::cast_possible_truncation, reason = "the bits of WGSL's types, and rounding to them")]

mod bits;
mod evaluate;
mod functions;
mod operators;
mod syntax;
mod value;

use self::evaluate::Scopes;
use self::functions::MISSING;
use self::syntax::{Expr, ExprKind};
use self::value::Value;
use super::text_edits::{Edit, applied};
use super::tokens::{Token, text, tokens};

/// Whether naga evaluates an expression of the text to a wrong value, without an error.
pub(super) fn may_be_wrong(code: &str) -> bool {
    code.contains("atanh")
}

/// The text with the values of constant expressions that naga does not evaluate; `None` if there are none. Lines stay the
/// same.
pub(super) fn evaluated(code: &str) -> Option<String> {
    let tokens: Vec<_> = tokens(code).collect();
    let mut scan = Scan { scopes: Scopes::of(&tokens), tokens: &tokens, edits: Vec::new() };
    scan.all();
    (!scan.edits.is_empty()).then(|| applied(code, scan.edits))
}

/// A walk over a text in its order.
struct Scan<'a> {
    tokens: &'a [Token<'a>],
    scopes: Scopes<'a>,
    edits: Vec<Edit>,
}

impl<'a> Scan<'a> {
    fn all(&mut self) {
        let (tokens, mut at) = (self.tokens, 0);
        let text = |at: usize| text(tokens, at);
        while at < tokens.len() {
            match text(at) {
                "{" => self.scopes.open(),
                "}" => self.scopes.close(),
                "fn" => self.scopes.hide_arguments(at),
                "let" | "var" | "const" if self.scopes.is_inside() => {
                    at = self.declaration(at);
                    continue;
                }
                "=" | "(" | "[" | "," | "return" | "if" | "while" | "switch" | "case" | "const_assert" => {
                    // What follows a comparison is only its right side.
                    let is_comparison =
                        text(at) == "=" && at > 0 && matches!(text(at - 1), "=" | "!" | "<" | ">");
                    if !is_comparison && let Some(end) = self.expression(at + 1) {
                        at = end;
                        continue;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Edits a declaration in a function, and makes its name known. Returns the end.
    fn declaration(&mut self, at: usize) -> usize {
        let word = text(self.tokens, at);
        let template = if text(self.tokens, at + 1) == "<" {
            self.tokens[at..].iter().position(|token| token.text == ">").unwrap_or(0)
        } else {
            0
        };
        let name = text(self.tokens, at + 1 + template);
        let rest = self.tokens[at..].iter().position(|token| matches!(token.text, "=" | ";"));
        let start = at + rest.unwrap_or(1);
        let end = if text(self.tokens, start) == "=" { self.expression(start + 1) } else { None };
        let value = if word == "const" { self.scopes.declared(at) } else { None };
        self.scopes.declare(name, value);
        end.unwrap_or(start + 1)
    }

    /// Edits the expression at a place, and returns its end; `None` if there is none.
    fn expression(&mut self, start: usize) -> Option<usize> {
        let expression = Expr::at(self.tokens, start)?;
        let end = expression.range.end;
        self.edit(&expression);
        Some(end)
    }

    /// Replaces an expression by its value, or its parts by theirs.
    fn edit(&mut self, expression: &Expr<'a>) {
        if !self.is_missing(expression) {
            return;
        }
        match self.scopes.value(expression) {
            Some(Value { second: Some(_), .. }) => self.edit_structure(expression),
            Some(value) => {
                if let Some(text) = value.text() {
                    self.replace(expression, text);
                }
            }
            None => expression.parts().iter().for_each(|part| self.edit(part)),
        }
    }

    fn replace(&mut self, expression: &Expr<'_>, text: String) {
        let [first, last] =
            [expression.range.start, expression.range.end - 1].map(|at| &self.tokens[at].range);
        self.edits.push((first.start..last.end, text));
    }

    /// A structure has no text: the declaration of a constant gets another value, since its members are replaced, and
    /// elsewhere the function is called with a concrete argument.
    fn edit_structure(&mut self, expression: &Expr<'a>) {
        let before = &self.tokens[..expression.range.start];
        let statement =
            before.iter().rposition(|token| matches!(token.text, ";" | "{" | "}")).map_or(0, |at| at + 1);
        if text(self.tokens, statement) == "const" {
            self.replace(expression, "0".to_owned());
        } else if let ExprKind::Call(_, _, arguments) = &expression.kind {
            for argument in arguments {
                let value =
                    self.scopes.value(argument).and_then(|value| value.automatic(value.kind.as_float()?));
                if let Some(text) = value.and_then(|value| value.concrete()?.text()) {
                    self.replace(argument, text);
                }
            }
        }
    }

    /// Whether naga does not evaluate an expression.
    fn is_missing(&self, expression: &Expr<'a>) -> bool {
        match &expression.kind {
            ExprKind::Call(name, ..) if MISSING.contains(name) => true,
            ExprKind::Binary("&&" | "||", _) => true,
            ExprKind::Name(name) => self.scopes.is_structure(name),
            _ => expression.parts().iter().any(|part| self.is_missing(part)),
        }
    }
}

#[cfg(test)]
mod tests;
