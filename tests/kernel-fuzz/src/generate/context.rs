//! What the text being made can name.

use crate::tree::{Expression, Type};

/// Where a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// A `let`, or a parameter.
    Value,
    Function,
    Private,
    /// A tensor that is only read: there is no value of the whole.
    Tensor,
    /// An array in work-group memory of which each work-item has an element, or all read.
    Shared(usize),
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    /// How it is written: `v`, or `(*p)`.
    pub(super) text: String,
    /// The name that is declared, to tell what it hides.
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) space: Space,
    /// Whether a statement may write it.
    pub(super) writable: bool,
    /// Whether it is the same in all work-items, wherever it is read.
    pub(super) uniform: bool,
    pub(super) constant: bool,
}

impl Variable {
    pub(super) fn value(name: &str, ty: Type, uniform: bool) -> Self {
        let (text, name) = (name.to_owned(), name.to_owned());
        Self { text, name, ty, space: Space::Value, writable: false, uniform, constant: false }
    }

    pub(super) fn expression(&self) -> Expression {
        let mut expression = Expression::new(self.ty.clone(), &self.text, Vec::new());
        expression.constant = self.constant;
        expression
    }
}

/// What a barrier-separated phase lets work-items do with a shared array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedUse {
    /// Each work-item uses the element beside its own by this much.
    Own(usize),
    /// All read all.
    Read,
    /// Only the first work-item uses it.
    Leader,
}

/// What surrounds a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// All work-items are here.
    pub(super) uniform: bool,
    /// How much deeper statements may nest.
    pub(super) depth: usize,
    pub(super) loops: usize,
    /// `break` and `continue` may stand here.
    pub(super) breaks: bool,
    pub(super) continues: bool,
    /// `return` may stand here.
    pub(super) returns: bool,
    /// Barriers may stand here.
    pub(super) barriers: bool,
}

impl Context {
    /// The inside of what only some work-items take.
    pub(super) fn divergent(self) -> Self {
        Self { uniform: false, barriers: false, ..self }
    }
}
