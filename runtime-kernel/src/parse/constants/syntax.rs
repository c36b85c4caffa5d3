//! Expressions of WGSL as trees. Reads more than WGSL allows: what it reads wrongly, naga refuses.

use std::ops::Range;

use super::literals;
use super::value::Value;
use crate::parse::tokens::{Token, text};

/// Nested expressions that are read.
const MAX_DEPTH: usize = 100;
/// Operators in an expression: each may nest the tree by one.
const MAX_OPERATORS: usize = 512;

/// An expression, and its tokens.
#[derive(Debug)]
pub(super) struct Expr<'a> {
    pub(super) kind: ExprKind<'a>,
    pub(super) range: Range<usize>,
}

#[derive(Debug)]
pub(super) enum ExprKind<'a> {
    /// The value, and whether naga does not read it.
    Literal(Value, bool),
    Name(&'a str),
    Unary(&'a str, Box<Expr<'a>>),
    Binary(&'static str, Box<[Expr<'a>; 2]>),
    Member(Box<Expr<'a>>, &'a str),
    Index(Box<[Expr<'a>; 2]>),
    /// The name, the type in angle brackets as tokens, and the arguments.
    Call(&'a str, Range<usize>, Vec<Expr<'a>>),
}

impl<'a> Expr<'a> {
    /// The parts of an expression.
    pub(super) fn parts(&self) -> &[Self] {
        match &self.kind {
            ExprKind::Literal(..) | ExprKind::Name(_) => &[],
            ExprKind::Unary(_, part) | ExprKind::Member(part, _) => std::slice::from_ref(&**part),
            ExprKind::Binary(_, parts) | ExprKind::Index(parts) => &parts[..],
            ExprKind::Call(_, _, arguments) => arguments,
        }
    }

    /// The expression that begins at a token; `None` if there is none. `templates` has the places of the brackets around
    /// template parameters.
    pub(super) fn at(tokens: &'a [Token<'a>], templates: &[usize], start: usize) -> Option<Self> {
        Parser { tokens, templates, at: start, depth: 0, operators: 0 }.binary(0)
    }
}

/// Binary operators by rank, the weakest first.
const OPERATORS: [&[&str]; 9] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!=", "<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The rank of comparisons.
const COMPARISONS: usize = 5;

struct Parser<'a, 't> {
    tokens: &'a [Token<'a>],
    templates: &'t [usize],
    at: usize,
    depth: usize,
    operators: usize,
}

impl<'a> Parser<'a, '_> {
    fn text(&self, ahead: usize) -> &'a str {
        text(self.tokens, self.at + ahead)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let takes = self.text(0) == sign;
        self.at += usize::from(takes);
        takes
    }

    fn made(&self, start: usize, kind: ExprKind<'a>) -> Expr<'a> {
        Expr { kind, range: start..self.at }
    }

    /// Whether two tokens touch.
    fn is_joined(&self, ahead: usize) -> bool {
        let [first, second] = [self.at + ahead, self.at + ahead + 1].map(|at| self.tokens.get(at));
        first.zip(second).is_some_and(|(first, second)| first.range.end == second.range.start)
    }

    /// Counts an operator; `None` if there are too many.
    fn count(&mut self) -> Option<()> {
        self.operators += 1;
        (self.operators <= MAX_OPERATORS).then_some(())
    }

    fn has(&self, operator: &str) -> bool {
        let (first, second) = operator.split_at(1);
        self.text(0) == first && (second.is_empty() || self.text(1) == second && self.is_joined(0))
    }

    /// The other bracket, if one around template parameters is next; 0 otherwise.
    fn other_bracket(&self) -> usize {
        self.templates.get(self.at).copied().unwrap_or(0)
    }

    /// The binary operator that comes next, and its rank; an assignment is none.
    fn operator(&self) -> Option<(usize, &'static str)> {
        if self.other_bracket() > 0 {
            return None;
        }
        let ranked =
            OPERATORS.iter().enumerate().flat_map(|(rank, list)| list.iter().map(move |sign| (rank, *sign)));
        let (rank, found) = ranked.filter(|(_, sign)| self.has(sign)).max_by_key(|(_, sign)| sign.len())?;
        let assigns = self.text(found.len()) == "=" && self.is_joined(found.len() - 1);
        (rank == COMPARISONS || !assigns).then_some((rank, found))
    }

    /// An expression of operators of a rank and stronger ones.
    fn binary(&mut self, least: usize) -> Option<Expr<'a>> {
        let start = self.at;
        let mut left = self.unary()?;
        while let Some((rank, operator)) = self.operator().filter(|(rank, _)| *rank >= least) {
            self.count()?;
            self.at += operator.len();
            let right = self.binary(rank + 1)?;
            left = self.made(start, ExprKind::Binary(operator, Box::new([left, right])));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr<'a>> {
        let (start, sign) = (self.at, self.text(0));
        if !matches!(sign, "-" | "!" | "~" | "*" | "&") {
            return self.postfix();
        }
        self.at += 1;
        self.nested(|parser| {
            let operand = parser.unary()?;
            Some(parser.made(start, ExprKind::Unary(sign, Box::new(operand))))
        })
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let found = if self.depth < MAX_DEPTH { read(self) } else { None };
        self.depth -= 1;
        found
    }

    fn postfix(&mut self) -> Option<Expr<'a>> {
        let start = self.at;
        let mut base = self.primary()?;
        loop {
            if self.takes(".") {
                let name = self.tokens.get(self.at)?.text;
                self.at += 1;
                self.count()?;
                base = self.made(start, ExprKind::Member(Box::new(base), name));
            } else if self.takes("[") {
                self.count()?;
                let index = self.nested(|parser| parser.binary(0))?;
                self.takes("]").then_some(())?;
                base = self.made(start, ExprKind::Index(Box::new([base, index])));
            } else {
                return Some(base);
            }
        }
    }

    fn primary(&mut self) -> Option<Expr<'a>> {
        let (start, word) = (self.at, self.text(0));
        let first = word.chars().next()?;
        if first == '(' {
            self.at += 1;
            let inner = self.nested(|parser| parser.binary(0))?;
            self.takes(")").then_some(())?;
            return Some(Expr { kind: inner.kind, range: start..self.at });
        }
        if first.is_ascii_digit() || (first == '.' && self.text(1).starts_with(|c: char| c.is_ascii_digit()))
        {
            return self.number();
        }
        if !(first.is_alphabetic() || first == '_') {
            return None;
        }
        self.at += 1;
        let template = self.template();
        if !self.takes("(") {
            // A type is no expression.
            template.is_empty().then_some(())?;
            let kind = match word {
                "true" | "false" => ExprKind::Literal(Value::bool(word == "true"), false),
                // Begins a declaration.
                "var" | "let" | "const" => return None,
                _ => ExprKind::Name(word),
            };
            return Some(self.made(start, kind));
        }
        let arguments = self.nested(Self::arguments)?;
        Some(self.made(start, ExprKind::Call(word, template, arguments)))
    }

    /// The tokens in angle brackets after a word; empty if there are none.
    fn template(&mut self) -> Range<usize> {
        let (open, close) = (self.at, self.other_bracket());
        if close < open {
            return open..open;
        }
        self.at = close + 1;
        open + 1..close
    }

    /// Arguments, behind the opening parenthesis.
    fn arguments(&mut self) -> Option<Vec<Expr<'a>>> {
        let mut list = Vec::new();
        while !self.takes(")") {
            list.push(self.binary(0)?);
            if !self.takes(",") && self.text(0) != ")" {
                return None;
            }
        }
        Some(list)
    }

    /// A number, which is several tokens if its exponent has a sign, or if it begins with a point.
    fn number(&mut self) -> Option<Expr<'a>> {
        let start = self.at;
        let mut number = String::new();
        if self.takes(".") {
            number.push('.');
        }
        number += self.text(0);
        let exponent = if literals::hexadecimal(&number).is_some() { ['p', 'P'] } else { ['e', 'E'] };
        let ends_in_exponent = number.ends_with(exponent);
        if ends_in_exponent && matches!(self.text(1), "+" | "-") && self.is_joined(0) && self.is_joined(1) {
            number += self.text(1);
            number += self.text(2);
            self.at += 2;
        }
        self.at += 1;
        let kind = ExprKind::Literal(literals::value(&number)?, literals::is_missing(&number));
        Some(self.made(start, kind))
    }
}
