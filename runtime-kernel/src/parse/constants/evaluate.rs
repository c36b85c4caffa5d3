//! The values of expressions, and of the names in them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

use naga::{FastHashMap, FastHashSet};

use super::bits;
use super::constant::{Constant, Type, place_of_name};
use super::functions::call;
use super::operators::{binary, unary};
use super::syntax::{Expr, ExprKind};
use super::value::Value;
use crate::parse::lists::{end_of_type, templates};
use crate::parse::tokens::{Token, declared_name, text};

/// Nested expressions, also by way of constants, and types of types.
pub(super) const MAX_DEPTH: usize = 200;
/// Expressions that are evaluated in a text, and words of elements: a few declarations may stand for more than there is
/// memory.
const MAX_STEPS: usize = 1 << 24;
/// What an element of an array or a structure counts.
const ELEMENT: usize = 32;

/// What the names of a text stand for at a place.
pub(super) struct Scopes<'a> {
    pub(super) tokens: &'a [Token<'a>],
    /// The places of the brackets around template parameters.
    pub(super) templates: Vec<usize>,
    pub(super) has_f16: bool,
    /// By constant of the module: its declaration.
    constants: FastHashMap<&'a str, usize>,
    /// By alias: its type.
    pub(super) aliases: FastHashMap<&'a str, usize>,
    /// By structure: its declaration.
    pub(super) structures: FastHashMap<&'a str, usize>,
    /// By override: its declaration.
    overrides: FastHashMap<&'a str, usize>,
    /// The other declarations of the module whose names hide built-in functions and types.
    others: FastHashSet<&'a str>,
    /// All names that are declared anywhere.
    pub(super) declared: FastHashSet<&'a str>,
    /// The definitions of structures that values need.
    pub(super) definitions: RefCell<BTreeSet<String>>,
    /// By constant of the module: its value, once it was asked for.
    values: RefCell<FastHashMap<&'a str, Option<Constant<'a>>>>,
    /// By place of a count of elements: its value, once it was asked for.
    pub(super) counts: RefCell<FastHashMap<usize, Option<usize>>>,
    /// The tokens of the function that is read.
    pub(super) function: Range<usize>,
    /// By name declared in functions: what it stands for in each open block that declares it.
    locals: FastHashMap<&'a str, Vec<Option<Constant<'a>>>>,
    /// By open block: the names declared in it.
    blocks: Vec<Vec<&'a str>>,
    /// The names that belong to the block that comes next: arguments of a function, variables of a loop.
    next_block: Vec<&'a str>,
    pub(super) is_header: bool,
    depth: Cell<usize>,
    /// Of [`MAX_STEPS`].
    steps_left: Cell<usize>,
    /// In a declaration of the module, where the names inside a function mean nothing.
    pub(super) is_outside: Cell<bool>,
    pub(super) wanted: Cell<Wanted>,
}

/// What is wanted of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanted {
    Value,
    /// Any value of its type: the side of `&&` or `||` that is not evaluated.
    Type,
    /// The same of one that may depend on overrides.
    TypeWithOverrides,
}

impl<'a> Scopes<'a> {
    /// The names outside of functions.
    pub(super) fn of(tokens: &'a [Token<'a>]) -> Self {
        let mut scopes = Self {
            tokens,
            templates: templates(tokens),
            has_f16: false,
            constants: FastHashMap::default(),
            overrides: FastHashMap::default(),
            aliases: FastHashMap::default(),
            structures: FastHashMap::default(),
            others: FastHashSet::default(),
            declared: FastHashSet::default(),
            definitions: RefCell::default(),
            values: RefCell::default(),
            counts: RefCell::default(),
            function: 0..0,
            locals: FastHashMap::default(),
            blocks: Vec::new(),
            next_block: Vec::new(),
            is_header: false,
            depth: Cell::new(0),
            steps_left: Cell::new(MAX_STEPS),
            is_outside: Cell::new(false),
            wanted: Cell::new(Wanted::Value),
        };
        scopes.find_names();
        scopes
    }

    fn find_names(&mut self) {
        let tokens = self.tokens;
        let (mut braces, mut enables) = (0_usize, false);
        for (at, token) in tokens.iter().enumerate() {
            let name = match token.text {
                ":" => text(tokens, at.wrapping_sub(1)),
                "const" | "fn" | "override" | "let" | "alias" | "struct" => text(tokens, at + 1),
                "var" => text(tokens, declared_name(tokens, at)),
                sign => {
                    match sign {
                        "{" => braces += 1,
                        "}" => braces = braces.saturating_sub(1),
                        "enable" => enables = true,
                        ";" => enables = false,
                        "f16" => self.has_f16 |= enables,
                        _ => {}
                    }
                    continue;
                }
            };
            match token.text {
                "const" if braces == 0 => _ = self.constants.insert(name, at),
                "fn" => _ = self.others.insert(name),
                "override" => {
                    self.others.insert(name);
                    self.overrides.insert(name, at);
                }
                "var" if braces == 0 => _ = self.others.insert(name),
                "alias" => _ = self.aliases.insert(name, at + 3),
                "struct" => _ = self.structures.insert(name, at),
                _ => {}
            }
            self.declared.insert(name);
        }
    }

    pub(super) fn open(&mut self) {
        self.is_header = false;
        self.blocks.push(std::mem::take(&mut self.next_block));
    }

    pub(super) fn close(&mut self) {
        for name in self.blocks.pop().unwrap_or_default() {
            if let Some(values) = self.locals.get_mut(name) {
                values.pop();
            }
        }
    }

    /// Notes that declarations up to the next `{` belong to the block after it.
    pub(super) fn begin_header(&mut self) {
        self.is_header = true;
    }

    pub(super) const fn is_inside(&self) -> bool {
        !self.blocks.is_empty()
    }

    pub(super) fn declare(&mut self, name: &'a str, value: Option<Constant<'a>>) {
        let block = match self.blocks.last_mut() {
            Some(block) if !self.is_header => block,
            _ => &mut self.next_block,
        };
        block.push(name);
        self.locals.entry(name).or_default().push(value);
    }

    /// Notes the function that begins at a place, and its arguments, which hide constants of the module.
    pub(super) fn begin_function(&mut self, function: usize) {
        self.begin_header();
        let tokens = self.tokens;
        let mut braces = 0_usize;
        let body = (function..tokens.len()).take_while(|&at| {
            let closes = text(tokens, at) == "}";
            braces = (braces + usize::from(text(tokens, at) == "{")).saturating_sub(usize::from(closes));
            !closes || braces > 0
        });
        self.function = function..function + body.count();
        let header = (function..tokens.len()).take_while(|&at| !matches!(text(tokens, at), "{" | ";"));
        for at in header.filter(|&at| text(tokens, at + 1) == ":") {
            self.declare(text(tokens, at), None);
        }
    }

    /// The value of the constant that is declared at a place.
    pub(super) fn declared(&self, at: usize) -> Option<Constant<'a>> {
        let has_type = text(self.tokens, at + 2) == ":";
        let equals = if has_type { end_of_type(self.tokens, at + 3) } else { at + 2 };
        if text(self.tokens, equals) != "=" {
            return None;
        }
        let value = self.value(&self.expression(equals + 1)?)?;
        match has_type {
            true => self.automatic(&value, &self.ty(at + 3, MAX_DEPTH)?, MAX_DEPTH),
            false => Some(value),
        }
    }

    /// Some value of the override that is declared at a place.
    fn some_value(&self, place: usize) -> Option<Constant<'a>> {
        if text(self.tokens, place + 2) == ":" {
            return self.constructed(&self.ty(place + 3, MAX_DEPTH)?, &[], MAX_DEPTH);
        }
        Some(Constant::Value(self.declared(place)?.value()?.concrete()?))
    }

    /// Some value of the type of an expression that may depend on overrides.
    pub(super) fn with_overrides(&self, expression: &Expr<'a>) -> Option<Constant<'a>> {
        let wanted = self.wanted.replace(Wanted::TypeWithOverrides);
        let value = self.value(expression);
        self.wanted.set(wanted);
        value
    }

    /// The expression that begins at a token.
    pub(super) fn expression(&self, start: usize) -> Option<Expr<'a>> {
        Expr::at(self.tokens, &self.templates, start)
    }

    /// What a name stands for.
    pub(super) fn named(&self, name: &str) -> Option<Constant<'a>> {
        if let Some(local) = self.local(name) {
            return local.clone();
        }
        if self.wanted.get() == Wanted::TypeWithOverrides
            && let Some(place) = self.overrides.get(name)
        {
            return self.some_value(*place);
        }
        let (&name, _) = self.constants.get_key_value(name)?;
        // First those that it depends on: a chain of constants may be longer than the stack is deep.
        let mut pending = vec![(name, false)];
        while let Some((name, is_next)) = pending.pop() {
            let place = *self.constants.get(name)?;
            if is_next {
                let value = self.of_module(place);
                self.values.borrow_mut().insert(name, value);
            } else if !self.values.borrow().contains_key(name) {
                // None while it is computed: it may not depend on itself.
                self.values.borrow_mut().insert(name, None);
                pending.push((name, true));
                pending.extend(self.dependencies(place).map(|name| (name, false)));
            }
        }
        self.values.borrow().get(name)?.clone()
    }

    /// The constants of the module that the declaration of one names.
    fn dependencies(&self, place: usize) -> impl Iterator<Item = &'a str> {
        let rest = (place + 2..self.tokens.len()).take_while(|&at| text(self.tokens, at) != ";");
        let names = rest.filter(|&at| text(self.tokens, at - 1) != ".").map(|at| text(self.tokens, at));
        names.filter(|name| self.constants.contains_key(name))
    }

    /// The value of a constant of the module that is declared at a place.
    fn of_module(&self, place: usize) -> Option<Constant<'a>> {
        let (was_outside, wanted) = (self.is_outside.replace(true), self.wanted.replace(Wanted::Value));
        let value = self.declared(place);
        self.is_outside.set(was_outside);
        self.wanted.set(wanted);
        value
    }

    /// The value of a constant expression; `None` if it is not known, or an error.
    pub(super) fn value(&self, expression: &Expr<'a>) -> Option<Constant<'a>> {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        let value =
            if depth < MAX_DEPTH { self.spend(1).and_then(|()| self.value_of(expression)) } else { None };
        self.depth.set(depth);
        value
    }

    /// Counts an element; `None` if there were too many.
    pub(super) fn element(&self) -> Option<()> {
        self.spend(ELEMENT)
    }

    fn spend(&self, steps: usize) -> Option<()> {
        self.steps_left.set(self.steps_left.get().checked_sub(steps)?);
        Some(())
    }

    fn value_of(&self, expression: &Expr<'a>) -> Option<Constant<'a>> {
        let plain = |part: &Expr<'a>| match self.value(part)? {
            Constant::Value(value) => Some(value),
            Constant::Composite(_) => None,
        };
        let value = match &expression.kind {
            ExprKind::Literal(value, _) => Some(value.clone()).filter(|value| self.has_kind(value.kind)),
            ExprKind::Name(name) => return self.named(name),
            ExprKind::Unary(operator, operand) => {
                self.typical(&[plain(operand)?], |operands| unary(operator, &operands[0]))
            }
            ExprKind::Binary(operator @ ("&&" | "||"), parts) => {
                let left = plain(&parts[0])?.as_bool()?;
                let decides = left == (*operator == "||");
                let wanted = self.wanted.get();
                self.wanted.set(if decides { wanted.max(Wanted::Type) } else { wanted });
                let right = plain(&parts[1]).and_then(|right| right.as_bool());
                self.wanted.set(wanted);
                right.map(|right| Value::bool(if decides { left } else { right }))
            }
            ExprKind::Binary(operator, parts) => {
                let operands = [plain(&parts[0])?, plain(&parts[1])?];
                self.typical(&operands, |operands| binary(operator, &operands[0], &operands[1]))
            }
            ExprKind::Member(base, name) => return self.value(base)?.member(name),
            ExprKind::Index(parts) => {
                let index = plain(&parts[1])?.as_int()?;
                return self.value(&parts[0])?.element(usize::try_from(index).ok()?);
            }
            ExprKind::Call(name, template, arguments) => {
                let arguments: Option<Vec<_>> =
                    arguments.iter().map(|argument| self.value(argument)).collect();
                return self.call(name, template, &arguments?);
            }
        };
        value.map(Constant::Value)
    }

    /// What comes of some values. Where only its type counts, and these values are an error, what comes of other ones.
    fn typical<T>(&self, values: &[Value], of: impl Fn(&[Value]) -> Option<T>) -> Option<T> {
        let found = of(values);
        if found.is_some() || self.wanted.get() == Wanted::Value {
            return found;
        }
        let numbers: [fn(f64) -> f64; 2] = [|at| at / 8.0, |_| 1.0];
        numbers.iter().find_map(|number| {
            let others = (1_i8..).zip(values).map(|(at, value)| value.filled(number(at.into())));
            of(&others.collect::<Vec<_>>())
        })
    }

    /// What a name that is declared in a function stands for.
    fn local(&self, name: &str) -> Option<&Option<Constant<'a>>> {
        if self.is_outside.get() { None } else { self.locals.get(name)?.last() }
    }

    fn call(&self, name: &str, template: &Range<usize>, arguments: &[Constant<'a>]) -> Option<Constant<'a>> {
        if self.others.contains(name) || self.constants.contains_key(name) || self.local(name).is_some() {
            return None;
        }
        let values: Option<Vec<_>> = arguments.iter().map(|value| value.value().cloned()).collect();
        if let ("bitcast", [Constant::Value(value)]) = (name, arguments) {
            let Type::Value(Some(kind), (1, size)) = self.ty(template.start, MAX_DEPTH)? else { return None };
            let cast = |values: &[Value]| bits::bitcast(kind, size, &values[0]);
            return self.typical(std::slice::from_ref(value), cast).map(Constant::Value);
        }
        match (self.ty(place_of_name(template), MAX_DEPTH), values) {
            (Some(ty @ Type::Value(..)), Some(values)) => self.typical(&values, |values| {
                let arguments: Vec<_> = values.iter().cloned().map(Constant::Value).collect();
                self.constructed(&ty, &arguments, MAX_DEPTH)
            }),
            (Some(ty), _) => self.constructed(&ty, arguments, MAX_DEPTH),
            (None, Some(values)) if template.is_empty() => self.typical(&values, |values| call(name, values)),
            _ => None,
        }
    }
}
