//! Constants of all types.

use std::ops::Range;
use std::rc::Rc;

use super::value::{Kind, Shape, Value};

/// What a constant expression stands for.
#[derive(Clone, Debug)]
pub(super) enum Constant<'a> {
    Value(Value),
    Composite(Rc<Composite<'a>>),
}

/// An array or a structure.
#[derive(Debug)]
pub(super) struct Composite<'a> {
    /// The names of members; none for an array.
    pub(super) names: Vec<&'a str>,
    /// Those of an array may be one that stands for all.
    pub(super) elements: Vec<Constant<'a>>,
    pub(super) count: usize,
    pub(super) origin: Origin,
    /// Whether naga cannot have such a constant: it is what a built-in function returns, or has it inside.
    pub(super) is_missing: bool,
}

/// What made an array or a structure; two structures of the same origin and members have the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Array,
    /// The structure that is declared at a place.
    Declared(usize),
    /// `frexp` or `modf`.
    BuiltIn(&'static str),
}

impl<'a> Constant<'a> {
    pub(super) fn composite(origin: Origin, names: Vec<&'a str>, elements: Vec<Self>) -> Self {
        let is_missing = matches!(origin, Origin::BuiltIn(_)) || elements.iter().any(Self::is_missing);
        let count = elements.len();
        Self::Composite(Rc::new(Composite { names, elements, count, origin, is_missing }))
    }

    /// An array of so many elements, which are the given ones, or all the given one.
    pub(super) fn array(elements: Vec<Self>, count: usize) -> Self {
        let is_missing = elements.iter().any(Self::is_missing);
        let names = Vec::new();
        Self::Composite(Rc::new(Composite { names, elements, count, origin: Origin::Array, is_missing }))
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Composite(composite) if composite.is_missing)
    }

    /// Whether it is what a built-in function returns.
    pub(super) fn is_built_in(&self) -> bool {
        matches!(self, Self::Composite(composite) if matches!(composite.origin, Origin::BuiltIn(_)))
    }

    pub(super) const fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Composite(_) => None,
        }
    }

    /// Whether two constants have the same type.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(one), Self::Value(other)) => one.kind == other.kind && one.shape == other.shape,
            (Self::Composite(one), Self::Composite(other)) => {
                // The elements of an array have one type, and the members of a structure of the text have theirs.
                let compared = match one.origin {
                    Origin::Array => 1,
                    Origin::Declared(_) => 0,
                    Origin::BuiltIn(_) => one.elements.len(),
                };
                let mut pairs = one.elements.iter().zip(&other.elements).take(compared);
                one.origin == other.origin
                    && one.count == other.count
                    && pairs.all(|(one, other)| one.is_like(other))
            }
            _ => false,
        }
    }

    /// A member of a structure, or components of a vector.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        let value = match self {
            Self::Composite(composite) => {
                let at = composite.names.iter().position(|other| *other == name)?;
                return composite.elements.get(at).cloned();
            }
            Self::Value(value) => value,
        };
        if value.shape.0 != 1 || value.is_scalar() {
            return None;
        }
        let letters =
            ["xyzw", "rgba"].into_iter().find(|set| name.chars().all(|letter| set.contains(letter)))?;
        let parts: Option<Vec<_>> =
            name.chars().map(|letter| value.parts.get(letters.find(letter)?).copied()).collect();
        let parts = parts.filter(|parts| (1..=4).contains(&parts.len()))?;
        Value::new(value.kind, (1, parts.len()), parts).map(Self::Value)
    }

    /// An element of an array or a vector, or a column of a matrix.
    pub(super) fn element(&self, index: usize) -> Option<Self> {
        let value = match self {
            Self::Composite(composite) if composite.origin == Origin::Array && index < composite.count => {
                return composite.elements.get(index).or(composite.elements.first()).cloned();
            }
            Self::Value(value) if !value.is_scalar() => value,
            _ => return None,
        };
        let element = if value.shape.0 == 1 {
            Value::scalar(value.kind, *value.parts.get(index)?)
        } else {
            let column = value.parts.chunks(value.shape.1).nth(index)?;
            Value::new(value.kind, (1, value.shape.1), column.iter().copied())
        };
        element.map(Self::Value)
    }
}

/// What the name of a type says; the arguments of its constructor tell the rest.
#[derive(Debug)]
pub(super) enum Type<'a> {
    Value(Option<Kind>, Shape),
    /// The place of the type of elements, and that of their count.
    Array(Option<[usize; 2]>),
    /// The place of its declaration; by member: its name, and the place of its type.
    Structure(usize, Vec<(&'a str, usize)>),
}

/// Where a type or its name is, by the range of what is in its angle brackets.
pub(super) const fn place_of_name(template: &Range<usize>) -> usize {
    // The name is before the types and their `<`.
    template.start - if template.start == template.end { 1 } else { 2 }
}
