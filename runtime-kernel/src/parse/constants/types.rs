//! The types that a text names, and the values of their constructors.

use super::constant::{Constant, Type};
use super::evaluate::Scopes;
use super::syntax::{Expr, ExprKind, MAX_TYPE};
use super::value::{Kind, Shape, Value};
use crate::parse::tokens::text;

impl<'a> Scopes<'a> {
    /// The type at a place.
    pub(super) fn ty(&self, at: usize, left: usize) -> Option<Type<'a>> {
        let (name, left) = (text(self.tokens, at), left.checked_sub(1)?);
        if let Some(definition) = self.aliases.get(name) {
            return self.ty(*definition, left);
        }
        if let Some(place) = self.structures.get(name) {
            return Some(Type::Structure(self.members(*place)));
        }
        let has_types = text(self.tokens, at + 1) == "<";
        if name == "array" {
            let places = if has_types { Some([at + 2, self.second_type(at + 2)?]) } else { None };
            return Some(Type::Array(places));
        }
        if let Some(kind) = Kind::of_name(name) {
            return Some(Type::Value(Some(kind), (1, 1)));
        }
        let digit = |at: usize| name.get(at..=at)?.parse().ok().filter(|size| (2..=4).contains(size));
        let (shape, rest) = match name {
            _ if name.starts_with("vec") => ((1, digit(3)?), &name[4..]),
            _ if name.starts_with("mat") && name.get(4..5) == Some("x") => {
                ((digit(3)?, digit(5)?), &name[6..])
            }
            _ => return None,
        };
        let kind = match rest {
            "" if has_types => match self.ty(at + 2, left)? {
                Type::Value(kind, (1, 1)) => Some(kind?),
                _ => return None,
            },
            "" => None,
            suffix => Some(Kind::of_suffix(suffix)?),
        };
        Some(Type::Value(kind, shape))
    }

    /// The place behind the comma after a type.
    pub(super) fn second_type(&self, first: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(first).take(MAX_TYPE) {
            match token.text {
                "," if depth == 0 => return Some(at + 1),
                "<" | "(" => depth += 1,
                ">" | ")" => depth = depth.checked_sub(1)?,
                ";" | "{" => return None,
                _ => {}
            }
        }
        None
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
                let element = self.ty(*element, left)?;
                let elements: Option<Vec<_>> = if arguments.is_empty() {
                    let zero = self.constructed(&element, &[], left)?;
                    let count = self.count(*count)?;
                    (0..count).map(|_| self.element().map(|()| zero.clone())).collect()
                } else {
                    arguments.iter().map(|argument| self.automatic(argument, &element, left)).collect()
                };
                Some(Constant::composite(Vec::new(), elements?))
            }
            Type::Structure(members) => {
                let types: Option<Vec<_>> = members.iter().map(|(_, ty)| self.ty(*ty, left)).collect();
                let types = types?;
                let elements: Option<Vec<_>> = if arguments.is_empty() {
                    types.iter().map(|ty| self.constructed(ty, &[], left)).collect()
                } else {
                    let pairs = arguments.iter().zip(&types);
                    pairs.map(|(argument, ty)| self.automatic(argument, ty, left)).collect()
                };
                let elements = elements.filter(|elements| elements.len() == members.len())?;
                Some(Constant::composite(members.iter().map(|(name, _)| *name).collect(), elements))
            }
        }
    }

    /// The count of elements in a type.
    fn count(&self, at: usize) -> Option<i128> {
        let end = matches!(text(self.tokens, at + 1), ">" | ",");
        let expression = Expr::at(self.tokens.get(..=at)?, at).filter(|_| end)?;
        match expression.kind {
            ExprKind::Literal(..) | ExprKind::Name(_) => self.value(&expression)?.value()?.as_int(),
            _ => None,
        }
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
            (Constant::Value(_), _) | (_, Type::Value(..)) => None,
            (Constant::Composite(composite), Type::Array(Some(_))) => {
                self.constructed(ty, &composite.elements, left)
            }
            _ => Some(constant.clone()),
        }
    }
}

/// An array of elements that are converted to their common type.
fn inferred<'a>(elements: &[Constant<'a>]) -> Option<Constant<'a>> {
    let kinds: Option<Vec<_>> = elements.iter().map(|element| Some(element.value()?.kind)).collect();
    let Some(kinds) = kinds else { return Some(Constant::composite(Vec::new(), elements.to_vec())) };
    let (first, rest) = kinds.split_first()?;
    let kind = rest.iter().try_fold(*first, |kind, other| kind.common(*other))?;
    let elements: Option<Vec<_>> =
        elements.iter().map(|element| element.value()?.automatic(kind).map(Constant::Value)).collect();
    Some(Constant::composite(Vec::new(), elements?))
}

/// The value of a constructor of a scalar, vector or matrix.
fn of_values(kind: Option<Kind>, shape: Shape, arguments: &[&Value]) -> Option<Value> {
    let Some(first) = arguments.first() else { return Value::zero(kind.unwrap_or(Kind::AbstractInt), shape) };
    let converts = arguments.len() == 1 && (first.shape == shape || first.is_scalar());
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
