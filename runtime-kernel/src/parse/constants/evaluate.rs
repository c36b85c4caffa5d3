//! The values of expressions, and of the names in them.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use naga::{FastHashMap, FastHashSet};

use super::functions::call;
use super::operators::{binary, unary};
use super::syntax::{Expr, ExprKind};
use super::value::{Kind, Number, Shape, Value};
use super::{bits, text};
use crate::parse::tokens::Token;

/// Nested expressions, also by way of constants, and aliases of aliases.
const MAX_DEPTH: usize = 200;

/// What the names of a text stand for at a place.
pub(super) struct Scopes<'a> {
    tokens: &'a [Token<'a>],
    /// By constant of the module: its declaration.
    constants: FastHashMap<&'a str, usize>,
    /// By alias: its type.
    aliases: FastHashMap<&'a str, usize>,
    functions: FastHashSet<&'a str>,
    /// By constant of the module: its value, once it was asked for.
    values: RefCell<FastHashMap<&'a str, Option<Value>>>,
    /// By block: the names declared in it, with the values of constants.
    blocks: Vec<Vec<(&'a str, Option<Value>)>>,
    /// The arguments of the function whose body comes next.
    arguments: Vec<(&'a str, Option<Value>)>,
    depth: Cell<usize>,
    /// In a declaration of the module, where the names inside a function mean nothing.
    is_outside: Cell<bool>,
}

impl<'a> Scopes<'a> {
    /// The names outside of functions.
    pub(super) fn of(tokens: &'a [Token<'a>]) -> Self {
        let (mut constants, mut aliases) = (FastHashMap::default(), FastHashMap::default());
        let (mut functions, mut braces) = (FastHashSet::default(), 0_usize);
        for (at, token) in tokens.iter().enumerate() {
            match token.text {
                "{" => braces += 1,
                "}" => braces = braces.saturating_sub(1),
                "const" if braces == 0 => {
                    constants.insert(text(tokens, at + 1), at);
                }
                "fn" => {
                    functions.insert(text(tokens, at + 1));
                }
                "alias" if braces == 0 => {
                    aliases.insert(text(tokens, at + 1), at + 3);
                }
                _ => {}
            }
        }
        let values = RefCell::default();
        let (blocks, arguments) = (Vec::new(), Vec::new());
        let (depth, is_outside) = (Cell::new(0), Cell::new(false));
        Self { tokens, constants, aliases, functions, values, blocks, arguments, depth, is_outside }
    }

    pub(super) fn open(&mut self) {
        self.blocks.push(std::mem::take(&mut self.arguments));
    }

    pub(super) fn close(&mut self) {
        self.blocks.pop();
    }

    pub(super) const fn is_inside(&self) -> bool {
        !self.blocks.is_empty()
    }

    pub(super) fn declare(&mut self, name: &'a str, value: Option<Value>) {
        if let Some(block) = self.blocks.last_mut() {
            block.push((name, value));
        }
    }

    /// Notes the arguments of a function, which hide constants of the module.
    pub(super) fn hide_arguments(&mut self, function: usize) {
        let header = (function..self.tokens.len()).take_while(|&at| text(self.tokens, at) != "{");
        let names = header.filter(|&at| text(self.tokens, at + 1) == ":");
        self.arguments = names.map(|at| (text(self.tokens, at), None)).collect();
    }

    /// Whether a name is that of a constant structure.
    pub(super) fn is_structure(&self, name: &str) -> bool {
        self.named(name).is_some_and(|value| value.second.is_some())
    }

    /// The value of the constant that is declared at a place.
    pub(super) fn declared(&self, at: usize) -> Option<Value> {
        let is_typed = text(self.tokens, at + 2) == ":";
        let mut equals = at + 2;
        while text(self.tokens, equals) != "=" {
            if matches!(text(self.tokens, equals), "" | ";") {
                return None;
            }
            equals += 1;
        }
        let value = self.value(&Expr::at(self.tokens, equals + 1)?)?;
        if !is_typed {
            return Some(value);
        }
        let (kind, shape) = self.ty(at + 3, MAX_DEPTH)?;
        (shape == value.shape).then(|| value.automatic(kind?))?
    }

    /// The value of a name.
    fn named(&self, name: &str) -> Option<Value> {
        let mut local = self.blocks.iter().rev().flat_map(|block| block.iter().rev());
        if let Some((_, value)) = local.find(|(local, _)| *local == name && !self.is_outside.get()) {
            return value.clone();
        }
        let (&name, &place) = self.constants.get_key_value(name)?;
        if let Some(value) = self.values.borrow().get(name) {
            return value.clone();
        }
        let was_outside = self.is_outside.replace(true);
        let value = self.declared(place);
        self.is_outside.set(was_outside);
        self.values.borrow_mut().insert(name, value.clone());
        value
    }

    /// The type at a place: its scalar type and shape, as far as it names them.
    fn ty(&self, at: usize, left: usize) -> Option<(Option<Kind>, Shape)> {
        let (name, left) = (text(self.tokens, at), left.checked_sub(1)?);
        if let Some(definition) = self.aliases.get(name) {
            return self.ty(*definition, left);
        }
        if let Some(kind) = Kind::of_name(name).filter(|_| name.len() > 1) {
            return Some((Some(kind), (1, 1)));
        }
        let digit = |at: usize| {
            name[at..]
                .chars()
                .next()?
                .to_digit(10)
                .map(|digit| digit as usize)
                .filter(|n| (2..=4).contains(n))
        };
        let (shape, rest) = match name {
            _ if name.starts_with("vec") => ((1, digit(3)?), &name[4..]),
            _ if name.starts_with("mat") && name.get(4..5) == Some("x") => {
                ((digit(3)?, digit(5)?), &name[6..])
            }
            _ => return None,
        };
        let kind = match rest {
            "" if text(self.tokens, at + 1) == "<" => Some(self.ty(at + 2, left)?.0?),
            "" => None,
            suffix => Some(Kind::of_name(suffix)?),
        };
        Some((kind, shape))
    }

    /// The value of a constant expression.
    pub(super) fn value(&self, expression: &Expr<'a>) -> Option<Value> {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        let value = if depth < MAX_DEPTH { self.value_of(expression) } else { None };
        self.depth.set(depth);
        value
    }

    fn value_of(&self, expression: &Expr<'a>) -> Option<Value> {
        match &expression.kind {
            ExprKind::Literal(value) => Some(value.clone()),
            ExprKind::Name(name) => self.named(name),
            ExprKind::Unary(operator, operand) => unary(operator, &self.value(operand)?),
            ExprKind::Binary(operator @ ("&&" | "||"), parts) => {
                let left = self.value(&parts[0])?.as_bool()?;
                // The other side is not evaluated.
                if left == (*operator == "||") {
                    return Some(Value::bool(left));
                }
                self.value(&parts[1])?.as_bool().map(Value::bool)
            }
            ExprKind::Binary(operator, parts) => {
                binary(operator, &self.value(&parts[0])?, &self.value(&parts[1])?)
            }
            ExprKind::Member(base, name) => member(self.value(base)?, name),
            ExprKind::Index(parts) => {
                let (base, index) = (self.value(&parts[0])?, self.value(&parts[1])?.as_int()?);
                element(&base, usize::try_from(index).ok()?)
            }
            ExprKind::Call(name, template, arguments) => {
                let arguments: Option<Vec<_>> =
                    arguments.iter().map(|argument| self.value(argument)).collect();
                self.call(name, template, &arguments?)
            }
        }
    }

    fn call(&self, name: &str, template: &Range<usize>, arguments: &[Value]) -> Option<Value> {
        if let ("bitcast", [value]) = (name, arguments) {
            let (kind, shape) = self.ty(template.start, MAX_DEPTH)?;
            return bits::bitcast(kind?, shape.1, value);
        }
        // The name is before the types and their `<`.
        let at = template.start - if template.is_empty() { 1 } else { 2 };
        match self.ty(at, MAX_DEPTH) {
            Some((kind, shape)) => constructed(kind, shape, arguments),
            None if self.functions.contains(name) => None,
            None => call(name, arguments),
        }
    }
}

/// The value of a constructor.
fn constructed(kind: Option<Kind>, shape: Shape, arguments: &[Value]) -> Option<Value> {
    if arguments.iter().any(|argument| argument.second.is_some()) {
        return None;
    }
    let count = shape.0 * shape.1;
    let Some(first) = arguments.first() else {
        let kind = kind?;
        let zero = if kind.is_float() { Number::Float(0.0) } else { Number::Int(0) };
        return Value::new(kind, shape, vec![zero; count]);
    };
    let converts = arguments.len() == 1 && (first.shape == shape || first.is_scalar());
    let kind = match kind {
        Some(kind) => kind,
        None => {
            let kind = arguments[1..].iter().try_fold(first.kind, |kind, other| kind.common(other.kind))?;
            if shape.0 > 1 { kind.as_float()? } else { kind }
        }
    };
    let parts: Option<Vec<_>> = arguments
        .iter()
        .map(|argument| match converts {
            true => argument.converted(kind),
            false => argument.automatic(kind),
        })
        .collect();
    let parts: Vec<_> = parts?.into_iter().flat_map(|argument| argument.parts).collect();
    match parts[..] {
        [part] if shape.0 == 1 => Value::new(kind, shape, vec![part; count]),
        _ => Value::new(kind, shape, parts),
    }
}

/// A member of a structure, or components of a vector.
fn member(mut base: Value, name: &str) -> Option<Value> {
    if let Some(([first, second], other)) = base.second.take() {
        return match name {
            _ if name == first => Some(base),
            _ if name == second => Some(*other),
            _ => None,
        };
    }
    if base.shape.0 != 1 || base.is_scalar() {
        return None;
    }
    let place = |letter: char| "xyzw".find(letter).or_else(|| "rgba".find(letter));
    let parts: Option<Vec<_>> = name.chars().map(|letter| base.parts.get(place(letter)?).copied()).collect();
    let parts = parts.filter(|parts| (1..=4).contains(&parts.len()))?;
    Value::new(base.kind, (1, parts.len()), parts)
}

/// An element of a vector, or a column of a matrix.
fn element(base: &Value, index: usize) -> Option<Value> {
    if base.second.is_some() || base.is_scalar() {
        return None;
    }
    if base.shape.0 == 1 {
        return Value::scalar(base.kind, *base.parts.get(index)?);
    }
    let column = base.parts.chunks(base.shape.1).nth(index)?;
    Value::new(base.kind, (1, base.shape.1), column.iter().copied())
}
