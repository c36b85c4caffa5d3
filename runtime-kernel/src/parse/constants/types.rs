//! The types that a text names, and the values of their constructors.

use std::ops::Range;

use super::constant::{Constant, Origin, Type, place_of_name};
use super::evaluate::{MAX_DEPTH, Scopes, Wanted};
use super::value::{Kind, Shape, Value};
use crate::parse::lists::List;
use crate::parse::tokens::text;

impl<'a> Scopes<'a> {
    /// The type at a place.
    pub(super) fn ty(&self, at: usize, left: usize) -> Option<Type<'a>> {
        let (name, left) = (text(self.tokens, at), left.checked_sub(1)?);
        self.element()?;
        if let Some(definition) = self.aliases.get(name) {
            return self.ty(*definition, left);
        }
        if let Some(place) = self.structures.get(name) {
            return Some(Type::Structure(*place, self.members(*place)));
        }
        let open = Some(at + 1).filter(|open| self.templates.get(*open).is_some_and(|close| close > open));
        let parameters = open.and_then(|open| List::at(self.tokens, open));
        let parameters = parameters.map(|list| list.elements).unwrap_or_default();
        if name == "array" {
            return match &parameters[..] {
                [] => Some(Type::Array(None)),
                [element, count] => Some(Type::Array(Some([element.start, count.start]))),
                _ => None,
            };
        }
        if let Some(kind) = Kind::of_name(name).filter(|_| parameters.is_empty()) {
            return self.has_kind(kind).then_some(Type::Value(Some(kind), (1, 1)));
        }
        let (shape, rest) = shape_of(name)?;
        let kind = match (rest, &parameters[..]) {
            ("", []) => None,
            ("", [scalar]) => match self.ty(scalar.start, left)? {
                Type::Value(kind, (1, 1)) => Some(kind?),
                _ => return None,
            },
            (suffix, []) => Some(Kind::of_suffix(suffix)?),
            _ => return None,
        };
        let is_kind = kind.is_none_or(|kind| self.has_kind(kind) && (shape.0 == 1 || kind.is_float()));
        is_kind.then_some(Type::Value(kind, shape))
    }

    /// Whether the word before a place of template parameters is `f16`, or a vector or matrix of it.
    pub(super) fn is_half(&self, template: &Range<usize>) -> bool {
        matches!(self.ty(place_of_name(template), MAX_DEPTH), Some(Type::Value(Some(Kind::F16), _)))
    }

    /// Whether the text may use a scalar type.
    pub(super) fn has_kind(&self, kind: Kind) -> bool {
        kind != Kind::F16 || self.has_f16
    }

    /// The members of the structure that is declared at a place.
    fn members(&self, structure: usize) -> Vec<(&'a str, usize)> {
        let rest = structure..self.tokens.len();
        let body = rest.take_while(|&at| text(self.tokens, at) != "}" && self.element().is_some());
        body.filter(|&at| text(self.tokens, at + 1) == ":")
            .map(|at| (text(self.tokens, at), at + 2))
            .collect()
    }

    /// The value of a constructor.
    pub(super) fn constructed(
        &self,
        ty: &Type<'a>,
        arguments: &[Constant<'a>],
        left: usize,
    ) -> Option<Constant<'a>> {
        let left = left.checked_sub(1)?;
        self.element()?;
        match ty {
            Type::Value(kind, shape) => {
                let values: Option<Vec<_>> = arguments.iter().map(Constant::value).collect();
                of_values(*kind, *shape, &values?).map(Constant::Value)
            }
            Type::Array(None) => inferred(arguments),
            Type::Array(Some([element, count])) => {
                let (element, count) = (self.ty(*element, left)?, self.count(*count)?);
                if arguments.is_empty() {
                    return Some(Constant::array(vec![self.constructed(&element, &[], left)?], count));
                }
                let elements = arguments.iter().map(|argument| self.automatic(argument, &element, left));
                let elements: Vec<_> = elements.collect::<Option<_>>()?;
                (elements.len() == count).then(|| Constant::array(elements, count))
            }
            Type::Structure(place, members) => {
                let types: Option<Vec<_>> = members.iter().map(|(_, ty)| self.ty(*ty, left)).collect();
                let types = types?;
                let elements: Option<Vec<_>> = if arguments.is_empty() {
                    types.iter().map(|ty| self.constructed(ty, &[], left)).collect()
                } else {
                    let pairs = arguments.iter().zip(&types);
                    pairs.map(|(argument, ty)| self.automatic(argument, ty, left)).collect()
                };
                let elements = elements.filter(|elements| elements.len() == members.len())?;
                let names = members.iter().map(|(name, _)| *name).collect();
                Some(Constant::composite(Origin::Declared(*place), names, elements))
            }
        }
    }

    /// The count of elements in a type.
    fn count(&self, at: usize) -> Option<usize> {
        if let Some(count) = self.counts.borrow().get(&at) {
            return *count;
        }
        // Also what is not evaluated has types, and those of the module are made of its constants.
        let is_outside = self.is_outside.get() || !self.function.contains(&at);
        let was_outside = self.is_outside.replace(is_outside);
        let wanted = self.wanted.replace(Wanted::Value);
        let count = self.expression(at).and_then(|count| self.value(&count)?.value()?.as_int());
        self.wanted.set(wanted);
        self.is_outside.set(was_outside);
        let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        self.counts.borrow_mut().insert(at, count);
        count
    }

    /// A constant after an automatic conversion to a type.
    pub(super) fn automatic(
        &self,
        constant: &Constant<'a>,
        ty: &Type<'a>,
        left: usize,
    ) -> Option<Constant<'a>> {
        self.element()?;
        match (constant, ty) {
            (Constant::Value(value), Type::Value(kind, shape)) => {
                let converted = value.automatic(kind.unwrap_or(value.kind))?;
                (value.shape == *shape).then_some(Constant::Value(converted))
            }
            (Constant::Composite(composite), Type::Array(Some([element, count])))
                if composite.origin == Origin::Array =>
            {
                let (left, element) = (left.checked_sub(1)?, self.ty(*element, left)?);
                let elements = composite.elements.iter().map(|part| self.automatic(part, &element, left));
                let elements = elements.collect::<Option<_>>()?;
                (self.count(*count)? == composite.count).then(|| Constant::array(elements, composite.count))
            }
            (Constant::Composite(composite), Type::Structure(place, _)) => {
                (composite.origin == Origin::Declared(*place)).then(|| constant.clone())
            }
            _ => None,
        }
    }
}

/// The size that the name of a vector or matrix says, and the rest of the name.
fn shape_of(name: &str) -> Option<(Shape, &str)> {
    let digit = |at: usize| name.get(at..=at)?.parse().ok().filter(|size| (2..=4).contains(size));
    match name {
        _ if name.starts_with("vec") => Some(((1, digit(3)?), &name[4..])),
        _ if name.starts_with("mat") && name.get(4..5) == Some("x") => {
            Some(((digit(3)?, digit(5)?), &name[6..]))
        }
        _ => None,
    }
}

/// An array of elements that are converted to their common type.
fn inferred<'a>(elements: &[Constant<'a>]) -> Option<Constant<'a>> {
    let kinds: Option<Vec<_>> = elements.iter().map(|element| Some(element.value()?.kind)).collect();
    let elements: Option<Vec<_>> = match kinds {
        None => Some(elements.to_vec()),
        Some(kinds) => {
            let (first, rest) = kinds.split_first()?;
            let kind = rest.iter().try_fold(*first, |kind, other| kind.common(*other))?;
            let convert = |element: &Constant<'a>| element.value()?.automatic(kind).map(Constant::Value);
            elements.iter().map(convert).collect()
        }
    };
    let elements = elements.filter(|list| list.iter().all(|element| element.is_like(&list[0])))?;
    let count = elements.len();
    Some(Constant::array(elements, count))
}

/// The value of a constructor of a scalar, vector or matrix.
fn of_values(kind: Option<Kind>, shape: Shape, arguments: &[&Value]) -> Option<Value> {
    let Some(first) = arguments.first() else { return Value::zero(kind.unwrap_or(Kind::AbstractInt), shape) };
    let converts = arguments.len() == 1 && first.shape == shape;
    // The parts of vectors are scalars and vectors; those of matrices are all scalars, or all columns.
    let is_part = |argument: &&Value| match shape.0 {
        1 => argument.shape.0 == 1,
        _ => argument.shape == first.shape && (argument.is_scalar() || argument.shape == (1, shape.1)),
    };
    if !converts && !arguments.iter().all(is_part) {
        return None;
    }
    let kind = match kind {
        Some(kind) => kind,
        None => {
            let kind = arguments[1..].iter().try_fold(first.kind, |kind, other| kind.common(other.kind))?;
            if shape.0 > 1 { kind.as_float()? } else { kind }
        }
    };
    let convert = |argument: &&Value| match converts {
        true => argument.converted(kind),
        false => argument.automatic(kind),
    };
    let parts: Option<Vec<_>> = arguments.iter().map(convert).collect();
    let parts: Vec<_> = parts?.into_iter().flat_map(|argument| argument.parts).collect();
    match parts[..] {
        [part] if shape.0 == 1 => Value::new(kind, shape, vec![part; shape.1]),
        _ => Value::new(kind, shape, parts),
    }
}
