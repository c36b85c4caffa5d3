//! The variables in scope, and the context of a statement.

use crate::tree::{Expression, Type};

/// The address space of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// A `let` or a parameter.
    Value,
    Function,
    Private,
    /// A read-only tensor, which has no value as a whole.
    Tensor,
    /// An array in work-group memory with one element per work-item; its index into `shared_uses`.
    Shared(usize),
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    /// How it is accessed: `v`, or `(*p)`.
    pub(super) text: String,
    /// The declared name, to detect shadowing.
    pub(super) name: String,
    /// The name of the variable that it is or points into.
    pub(super) root: String,
    pub(super) ty: Type,
    pub(super) space: Space,
    /// Whether statements may write it.
    pub(super) writable: bool,
    /// Whether its value is the same in all work-items.
    pub(super) uniform: bool,
    pub(super) constant: bool,
}

impl Variable {
    pub(super) fn value(name: &str, ty: Type, uniform: bool) -> Self {
        let (text, name, root) = (name.to_owned(), name.to_owned(), name.to_owned());
        Self { text, name, root, ty, space: Space::Value, writable: false, uniform, constant: false }
    }

    pub(super) fn expression(&self) -> Expression {
        let mut expression = Expression::new(self.ty.clone(), &self.text, Vec::new());
        expression.constant = self.constant;
        expression
    }
}

/// How work-items may use a shared array until the next barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedUse {
    /// Each work-item uses the element at this offset from its own.
    Own(usize),
    /// All work-items read all elements.
    Read,
    /// Only the first work-item uses it.
    Leader,
}

/// The context of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// Whether all work-items reach it.
    pub(super) uniform: bool,
    /// How much deeper statements may nest.
    pub(super) depth: usize,
    pub(super) loops: usize,
    /// Whether `break` is allowed.
    pub(super) breaks: bool,
    pub(super) continues: bool,
    /// Whether `return` is allowed.
    pub(super) returns: bool,
    /// Whether barriers are allowed.
    pub(super) barriers: bool,
}

impl Context {
    /// The context inside divergent control flow.
    pub(super) fn divergent(self) -> Self {
        Self { uniform: false, barriers: false, ..self }
    }
}
