//! The values of expressions, and of the names in them.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use naga::{FastHashMap, FastHashSet};

use super::bits;
use super::constant::{Constant, Type, place_of_name};
use super::functions::call;
use super::operators::{binary, unary};
use super::syntax::{Expr, ExprKind};
use super::value::Value;
use crate::parse::tokens::{Token, text};

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
    /// By constant of the module: its declaration.
    constants: FastHashMap<&'a str, usize>,
    /// By alias: its type.
    pub(super) aliases: FastHashMap<&'a str, usize>,
    /// By structure: its declaration.
    pub(super) structures: FastHashMap<&'a str, usize>,
    functions: FastHashSet<&'a str>,
    /// By constant of the module: its value, once it was asked for.
    values: RefCell<FastHashMap<&'a str, Option<Constant<'a>>>>,
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
    is_outside: Cell<bool>,
}

impl<'a> Scopes<'a> {
    /// The names outside of functions.
    pub(super) fn of(tokens: &'a [Token<'a>]) -> Self {
        let mut scopes = Self {
            tokens,
            constants: FastHashMap::default(),
            aliases: FastHashMap::default(),
            structures: FastHashMap::default(),
            functions: FastHashSet::default(),
            values: RefCell::default(),
            locals: FastHashMap::default(),
            blocks: Vec::new(),
            next_block: Vec::new(),
            is_header: false,
            depth: Cell::new(0),
            steps_left: Cell::new(MAX_STEPS),
            is_outside: Cell::new(false),
        };
        let mut braces = 0_usize;
        for (at, token) in tokens.iter().enumerate() {
            let name = text(tokens, at + 1);
            match token.text {
                "{" => braces += 1,
                "}" => braces = braces.saturating_sub(1),
                "const" if braces == 0 => _ = scopes.constants.insert(name, at),
                "fn" => _ = scopes.functions.insert(name),
                "alias" => _ = scopes.aliases.insert(name, at + 3),
                "struct" => _ = scopes.structures.insert(name, at),
                _ => {}
            }
        }
        scopes
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

    /// Notes the arguments of a function, which hide constants of the module.
    pub(super) fn hide_arguments(&mut self, function: usize) {
        self.begin_header();
        let tokens = self.tokens;
        let header = (function..tokens.len()).take_while(|&at| !matches!(text(tokens, at), "{" | ";"));
        for at in header.filter(|&at| text(tokens, at + 1) == ":") {
            self.declare(text(tokens, at), None);
        }
    }

    /// The value of the constant that is declared at a place.
    pub(super) fn declared(&self, at: usize) -> Option<Constant<'a>> {
        let rest = at + 2..self.tokens.len();
        let mut signs = rest.filter(|&at| matches!(text(self.tokens, at), "=" | ";"));
        let equals = signs.next().filter(|&at| text(self.tokens, at) == "=")?;
        let value = self.value(&Expr::at(self.tokens, equals + 1)?)?;
        if text(self.tokens, at + 2) != ":" {
            return Some(value);
        }
        self.automatic(&value, &self.ty(at + 3, MAX_DEPTH)?, MAX_DEPTH)
    }

    /// What a name stands for.
    pub(super) fn named(&self, name: &str) -> Option<Constant<'a>> {
        if let Some(local) = self.local(name) {
            return local.clone();
        }
        let (&name, &place) = self.constants.get_key_value(name)?;
        if let Some(value) = self.values.borrow().get(name) {
            return value.clone();
        }
        // None while it is computed: it may not depend on itself.
        self.values.borrow_mut().insert(name, None);
        let was_outside = self.is_outside.replace(true);
        let value = self.declared(place);
        self.is_outside.set(was_outside);
        self.values.borrow_mut().insert(name, value.clone());
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
            ExprKind::Literal(value, _) => Some(value.clone()),
            ExprKind::Name(name) => return self.named(name),
            ExprKind::Unary(operator, operand) => unary(operator, &plain(operand)?),
            ExprKind::Binary(operator @ ("&&" | "||"), parts) => {
                let left = plain(&parts[0])?.as_bool()?;
                let right = self.value(&parts[1]);
                // The other side is not evaluated, but is a constant with a type.
                let is_known = left == (*operator == "||") && self.may_be_bool(right.as_ref(), &parts[1]);
                Some(Value::bool(if is_known { left } else { right?.value()?.as_bool()? }))
            }
            ExprKind::Binary(operator, parts) => binary(operator, &plain(&parts[0])?, &plain(&parts[1])?),
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

    /// Whether an expression, which may have no value, is a constant boolean as far as this is known.
    fn may_be_bool(&self, value: Option<&Constant<'a>>, expression: &Expr<'a>) -> bool {
        let is_bool = |value: &Constant<'_>| value.value().is_some_and(|value| value.as_bool().is_some());
        value.is_none_or(is_bool) && self.is_constant(expression)
    }

    /// Whether an expression has only constants and types that are valid.
    fn is_constant(&self, expression: &Expr<'a>) -> bool {
        let is_constant = match &expression.kind {
            ExprKind::Name(name) => match self.local(name) {
                Some(value) => value.is_some(),
                None => self.constants.contains_key(name),
            },
            ExprKind::Call("array", types, _) => self.second_type(types.start).is_none_or(|count| {
                let count = Expr::at(&self.tokens[..types.end], count).and_then(|count| self.value(&count));
                let count = count.and_then(|count| count.value()?.as_int());
                count.is_some_and(|count| count > 0)
            }),
            ExprKind::Call(name, ..) => !self.functions.contains(name),
            _ => true,
        };
        is_constant && expression.parts().iter().all(|part| self.is_constant(part))
    }

    /// What a name that is declared in a function stands for.
    fn local(&self, name: &str) -> Option<&Option<Constant<'a>>> {
        if self.is_outside.get() { None } else { self.locals.get(name)?.last() }
    }

    fn call(&self, name: &str, template: &Range<usize>, arguments: &[Constant<'a>]) -> Option<Constant<'a>> {
        if self.functions.contains(name) {
            return None;
        }
        if let ("bitcast", [Constant::Value(value)]) = (name, arguments) {
            let Type::Value(Some(kind), (1, size)) = self.ty(template.start, MAX_DEPTH)? else { return None };
            return bits::bitcast(kind, size, value).map(Constant::Value);
        }
        match self.ty(place_of_name(template), MAX_DEPTH) {
            Some(ty) => self.constructed(&ty, arguments, MAX_DEPTH),
            None => {
                let values: Option<Vec<_>> = arguments.iter().map(|value| value.value().cloned()).collect();
                call(name, &values?)
            }
        }
    }
}
