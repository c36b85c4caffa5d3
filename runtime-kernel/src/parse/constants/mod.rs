//! Evaluates constant expressions that naga does not: some built-in functions, and the side of `&&` and `||` that is not
//! used. Their values take their place in the text. Whatever is not known here stays, so that naga judges it.

#![allow(clippy::cast_possible_truncation, reason = "the bits of WGSL's types, and rounding to them")]

mod bits;
mod constant;
mod evaluate;
mod functions;
mod halves_of_overrides;
mod literals;
mod operators;
mod syntax;
mod text;
mod types;
mod value;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

use naga::front::wgsl;
use naga::{Module, Scalar, ScalarKind};

use self::constant::Constant;
use self::evaluate::Scopes;
use self::functions::MISSING;
pub(super) use self::literals::{abstract_integer, integer};
use self::syntax::{Expr, ExprKind};
pub(super) use self::text::result_name;
use self::value::Kind;
pub(super) use self::value::Value;
use super::lists::{Symbol, end_of_type};
use super::text_edits::{Edit, applied};
use super::tokens::{Token, declared_name, text, tokens};

/// What naga says of a function that it does not evaluate, before the function.
pub(super) const UNEVALUATED: &str = "Not implemented as constant expression: ";

/// What is wrong with a number that is too large for its type.
pub(super) const NO_HALF: &str = "this is no number of `f16`";

/// Bytes after a `>>` that are searched for its amount.
const MAX_AMOUNT: usize = 256;
/// Words of a declaration that are searched for its value.
const MAX_WORDS: usize = 16;

/// Whether naga may evaluate an expression of the text to a wrong value, without an error: an `atanh`, or a shift of an
/// abstract number by 64 or more.
pub(super) fn may_be_wrong(code: &str) -> bool {
    let constants = OnceCell::new();
    let is_constant = |name: &str| constants.get_or_init(|| names_of_constants(code)).contains(name);
    // Searching for one character is fast.
    let mut signs = code.match_indices('>').map(|(at, _)| &code[at + 1..]);
    code.contains("atanh")
        || signs.any(|rest| rest.strip_prefix('>').is_some_and(|rest| is_large_shift(rest, is_constant)))
}

/// The names of constants that may be 64 or more.
fn names_of_constants(code: &str) -> HashSet<&str> {
    let declared = |rest| {
        let words = tokens(rest).map(|token| token.text).take_while(|word| *word != ";").take(MAX_WORDS);
        match words.collect::<Vec<_>>()[..] {
            [_, .., "=", number] if literals::value(number).is_some() && !is_large(number) => None,
            [name, ..] => Some(name),
            [] => None,
        }
    };
    code.split("const").skip(1).filter_map(declared).collect()
}

fn is_large(number: &str) -> bool {
    integer(number).is_some_and(|number| number >= 64)
}

/// Whether the amount of a shift that begins a text may be a constant of 64 or more.
fn is_large_shift(rest: &str, is_constant: impl Fn(&str) -> bool) -> bool {
    let start = (0..4).find_map(|less| rest.get(..MAX_AMOUNT - less)).unwrap_or(rest);
    let words = amount(start);
    let is_word = |word: &str| word.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    let [first, rest @ ..] = &words[..] else { return false };
    if rest.is_empty() && !is_word(first) {
        return is_large(first);
    }
    words.iter().enumerate().all(|(at, word)| {
        let is_called = matches!(words.get(at + 1), Some(&("(" | "<")));
        let is_part = at > 0 && matches!(words[at - 1], "<" | ".");
        !is_word(word) || is_called || is_part || is_constant(word)
    })
}

/// The words of the amount of a shift, or of `>>=`, that begins a text: up to an operator or the end of the expression.
fn amount(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let words = tokens(text).map(|token| token.text).skip_while(|word| *word == "=");
    let is_inside = |word: &&str| {
        match *word {
            "(" | "[" => depth += 1,
            ")" | "]" if depth == 0 => return false,
            ")" | "]" => depth -= 1,
            ";" | "{" | "}" => return false,
            "," | "=" | "&" | "|" | "^" | "+" | "-" | "*" | "/" | "%" => return depth > 0,
            _ => {}
        }
        true
    };
    words.take_while(is_inside).collect()
}

/// The text with the values of constant expressions that naga does not evaluate; `None` if there are none. Lines stay the
/// same.
pub(crate) fn evaluated(code: &str) -> Option<String> {
    let tokens: Vec<_> = tokens(code).collect();
    let mut scan = Scan::of(&tokens, code);
    scan.all();
    let definitions = scan.scopes.definitions.take();
    let new = definitions.into_iter().map(|definition| format!("\n{definition}"));
    let new: String = new.filter(|definition| !code.contains(definition)).collect();
    (!scan.edits.is_empty()).then(|| applied(code, scan.edits) + &new)
}

/// The constants that are errors although naga has found a value for them, and what is wrong with each.
pub(super) fn wrong(code: &str) -> Vec<(Range<usize>, &'static str)> {
    let tokens: Vec<_> = tokens(code).collect();
    let mut scan = Scan { judges: true, ..Scan::of(&tokens, code) };
    scan.all();
    scan.wrong
}

/// Whether a text writes a number that `f16` does not have.
pub(super) fn is_beyond_half(text: &str) -> bool {
    let digits = text.strip_suffix('h').unwrap_or(text);
    literals::value(digits).is_some_and(|value| value.parts[0].fit(Kind::F16).is_none())
}

/// The module of a text, or of the text with its constants evaluated, if naga reads one of them; and this text.
pub(super) fn module_of(code: &str) -> Option<(Module, Cow<'_, str>)> {
    if let Ok(module) = wgsl::parse_str(code) {
        return Some((module, Cow::Borrowed(code)));
    }
    let text = evaluated(code)?;
    Some((wgsl::parse_str(&text).ok()?, Cow::Owned(text)))
}

/// Whether a call of constants that naga does not evaluate is an error.
pub(super) fn is_valueless(function: &str, arguments: &[Value]) -> bool {
    MISSING.contains(&function) && functions::call(function, arguments).is_none()
}

/// Whether the bits of a constant are those of no number of a type.
pub(super) fn is_valueless_cast(to: ScalarKind, value: &Value) -> bool {
    let kind = Kind::of_scalar(Scalar { kind: to, width: (value.kind.width() / 8) as u8 });
    kind.is_some_and(|kind| bits::bitcast(kind, value.parts.len(), value).is_none())
}

/// A walk over a text in its order.
struct Scan<'a> {
    code: &'a str,
    tokens: &'a [Token<'a>],
    scopes: Scopes<'a>,
    /// Whether there may be `f64`, which naga evaluates no function of.
    has_doubles: bool,
    edits: Vec<Edit>,
    /// Whether a declaration or statement is read that has constants only.
    is_constant: bool,
    /// Whether also those functions are looked at that naga evaluates, but may find a value for where there is none.
    judges: bool,
    wrong: Vec<(Range<usize>, &'static str)>,
}

impl<'a> Scan<'a> {
    fn of(tokens: &'a [Token<'a>], code: &'a str) -> Self {
        let has_doubles = code.contains("lf") || code.contains("f64");
        let scopes = Scopes::of(tokens);
        Self {
            code,
            tokens,
            scopes,
            has_doubles,
            edits: Vec::new(),
            is_constant: false,
            judges: false,
            wrong: Vec::new(),
        }
    }

    fn all(&mut self) {
        let (tokens, mut at) = (self.tokens, 0);
        let text = |at: usize| text(tokens, at);
        while at < tokens.len() {
            let symbol = Symbol::of(tokens, at);
            let is_template = self.scopes.templates[at] > 0;
            let length = if is_template { 1 } else { symbol.length };
            match text(at) {
                "const" | "const_assert" => self.is_constant = true,
                ";" | "{" | "}" => self.is_constant = false,
                _ => {}
            }
            match text(at + length - 1) {
                "{" => self.scopes.open(),
                "}" => self.scopes.close(),
                "fn" => self.scopes.begin_function(at),
                "for" => self.scopes.begin_header(),
                "let" | "var" | "const" if self.scopes.is_inside() => {
                    at = self.declaration(at);
                    continue;
                }
                "=" if symbol.operation.is_some() => {}
                ";" if !self.scopes.is_header => {}
                "=" | "(" | "[" | "," | "return" | "if" | "while" | "switch" | "case" | "const_assert"
                | ";" => {
                    if let Some(end) = self.expression(at + length) {
                        at = end;
                        continue;
                    }
                }
                _ => {}
            }
            at += length;
        }
    }

    /// Edits a declaration in a function, and makes its name known. Returns the end.
    fn declaration(&mut self, at: usize) -> usize {
        let (word, name) = (text(self.tokens, at), declared_name(self.tokens, at));
        let mut start = name + 1;
        if text(self.tokens, start) == ":" {
            start = end_of_type(self.tokens, start + 1);
            self.parameters(name..start).for_each(|at| _ = self.expression(at));
        }
        let end = if text(self.tokens, start) == "=" { self.expression(start + 1) } else { None };
        let value = if word == "const" { self.scopes.declared(at) } else { None };
        self.scopes.declare(text(self.tokens, name), value);
        end.unwrap_or(start)
    }

    /// Edits the expression at a place, and returns its end; `None` if there is none.
    fn expression(&mut self, start: usize) -> Option<usize> {
        let expression = self.scopes.expression(start)?;
        let end = expression.range.end;
        self.edit(&expression);
        Some(end)
    }

    /// Replaces an expression by its value, or its parts by theirs.
    fn edit(&mut self, expression: &Expr<'a>) {
        if !self.is_missing(expression) {
            return;
        }
        let value = self.scopes.value(expression);
        if value.is_none()
            && let Some(wrong) = self.judged(expression)
        {
            self.wrong.push(wrong);
        }
        // What is beyond all types has no text, and needs none: each use of a member is replaced by its value.
        let is_left_out =
            value.as_ref().is_some_and(Constant::is_built_in) && self.is_whole_constant(&expression.range);
        let text = value.and_then(|value| self.scopes.text(&value));
        let text = text.or_else(|| is_left_out.then(|| "0".to_owned()));
        match text.or_else(|| self.halves_of_overrides(expression)) {
            // Without a blank, the word before `(` would go on.
            Some(text) if self.tokens[expression.range.start].text == "(" && !text.starts_with('(') => {
                self.edits.push((self.place(expression), format!("({text})")));
            }
            Some(text) => self.edits.push((self.place(expression), text)),
            None => {
                self.types(expression).for_each(|at| _ = self.expression(at));
                expression.parts().iter().for_each(|part| self.edit(part));
            }
        }
    }

    /// The places behind commas in the angle brackets of a call, if there are calls.
    fn types(&self, expression: &Expr<'a>) -> impl Iterator<Item = usize> + use<'a> {
        let (tokens, mut range) = (self.tokens, 0..0);
        if let ExprKind::Call(_, types, _) = &expression.kind
            && tokens[types.clone()].iter().any(|token| token.text == "(")
        {
            range = types.clone();
        }
        self.parameters(range)
    }

    /// The places behind commas.
    fn parameters(&self, range: Range<usize>) -> impl Iterator<Item = usize> + use<'a> {
        let tokens = self.tokens;
        range.filter(|at| text(tokens, *at) == ",").map(|at| at + 1)
    }

    /// What is wrong with an expression without a value, and where.
    fn judged(&self, expression: &Expr<'a>) -> Option<(Range<usize>, &'static str)> {
        match &expression.kind {
            ExprKind::Call(name, template, arguments) => {
                let what = self.rule_of_call(name, template)?;
                let has_values = arguments.iter().all(|argument| self.scopes.value(argument).is_some());
                has_values.then(|| (self.place(expression), what))
            }
            ExprKind::Binary(operator @ ("&&" | "||"), parts) if self.is_constant => {
                let left = self.scopes.value(&parts[0])?.value()?.as_bool()?;
                let what = "although this side is not evaluated, it must be a constant of type `bool`";
                (left == (*operator == "||")).then(|| (self.place(&parts[1]), what))
            }
            _ => None,
        }
    }

    /// What the arguments of a call do not fulfil that naga evaluates nevertheless.
    fn rule_of_call(&self, name: &str, template: &Range<usize>) -> Option<&'static str> {
        match name {
            "fma" | "cross" => Some("the product is out of range"),
            "inverseSqrt" => Some("the argument must be above 0"),
            "bitcast" => Some("the number is beyond `i32` and `u32`, or its bits are no number"),
            _ => self.scopes.is_half(template).then_some(NO_HALF),
        }
    }

    /// Whether an expression is all of the value of a constant without a type.
    fn is_whole_constant(&self, expression: &Range<usize>) -> bool {
        let before = |distance: usize| expression.start.checked_sub(distance).map(|at| text(self.tokens, at));
        before(1) == Some("=") && before(3) == Some("const") && text(self.tokens, expression.end) == ";"
    }

    fn place(&self, expression: &Expr<'_>) -> Range<usize> {
        let [first, last] =
            [expression.range.start, expression.range.end - 1].map(|at| &self.tokens[at].range);
        first.start..last.end
    }
    /// Whether naga does not evaluate an expression.
    fn is_missing(&self, expression: &Expr<'a>) -> bool {
        match &expression.kind {
            ExprKind::Call(name, ..) if MISSING.contains(name) => true,
            ExprKind::Call(name, template, _)
                if self.judges && self.rule_of_call(name, template).is_some() =>
            {
                true
            }
            ExprKind::Call(..) if self.has_doubles && self.is_double(expression) => true,
            ExprKind::Binary("&&" | "||", _) | ExprKind::Literal(_, true) => true,
            ExprKind::Binary("<<" | ">>", parts) if self.is_large(&parts[1]) => true,
            ExprKind::Call(..) if self.types(expression).next().is_some() => true,
            ExprKind::Name(name) => self.scopes.named(name).is_some_and(|value| value.is_missing()),
            _ => expression.parts().iter().any(|part| self.is_missing(part)),
        }
    }

    fn is_double(&self, expression: &Expr<'a>) -> bool {
        let value = self.scopes.value(expression);
        value.is_some_and(|value| value.value().is_some_and(|value| value.kind == Kind::F64))
    }

    /// Whether naga shifts by this amount as if the sign were not to fill all bits, and refuses `0 << 64u`.
    fn is_large(&self, amount: &Expr<'a>) -> bool {
        let value = self.scopes.value(amount);
        let is_large = |value: &Value| value.parts.iter().any(|part| part.float() >= 64.0);
        value.is_some_and(|value| value.value().is_some_and(is_large))
    }
}

#[cfg(test)]
mod tests;
