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
    pub(super) elements: Vec<Constant<'a>>,
    /// A call that returns the structure where the kernel runs.
    pub(super) call: Option<String>,
    /// Whether naga cannot have such a constant: it is what a built-in function returns, or has it inside.
    pub(super) is_missing: bool,
}

impl<'a> Constant<'a> {
    pub(super) fn composite(names: Vec<&'a str>, elements: Vec<Self>) -> Self {
        let is_missing = elements.iter().any(Self::is_missing);
        Self::Composite(Rc::new(Composite { names, elements, call: None, is_missing }))
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Composite(composite) if composite.is_missing)
    }

    pub(super) const fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Composite(_) => None,
        }
    }

    /// Text that naga evaluates to it; `None` if there is none.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Value(value) => Some(value.text()),
            Self::Composite(composite) => composite.call.clone(),
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
        let place = |letter: char| "xyzw".find(letter).or_else(|| "rgba".find(letter));
        let parts: Option<Vec<_>> =
            name.chars().map(|letter| value.parts.get(place(letter)?).copied()).collect();
        let parts = parts.filter(|parts| (1..=4).contains(&parts.len()))?;
        Value::new(value.kind, (1, parts.len()), parts).map(Self::Value)
    }

    /// An element of an array or a vector, or a column of a matrix.
    pub(super) fn element(&self, index: usize) -> Option<Self> {
        let value = match self {
            Self::Composite(composite) if composite.names.is_empty() => {
                return composite.elements.get(index).cloned();
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
    /// By member: its name, and the place of its type.
    Structure(Vec<(&'a str, usize)>),
}

/// Where a type or its name is, by the range of what is in its angle brackets.
pub(super) const fn place_of_name(template: &Range<usize>) -> usize {
    // The name is before the types and their `<`.
    template.start - if template.start == template.end { 1 } else { 2 }
}
