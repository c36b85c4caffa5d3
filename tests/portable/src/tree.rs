//! Expression trees: evaluation by WGSL's rules, and conversion to text.
//!
//! Floats are multiples of ½ up to some thousands, and every product is rounded and clamped before it is used. So all
//! results are exact, however a device rounds, fuses or reorders operations (§reassociation-and-fusion).

mod evaluate;
mod generate;
mod operation;
mod program;
mod text;

pub use evaluate::evaluate;
pub use generate::{Generator, tree};
pub use operation::{Group, Operation};
pub use program::{batch, inputs, parts, rows, values};
pub use text::text;

/// A component type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// `bool`: 0 or 1.
    Bool,
    /// `i32`.
    I32,
    /// `u32`.
    U32,
    /// `f32`.
    F32,
}

/// A scalar or vector type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// The component type.
    pub base: Base,
    /// The number of components, 1 to 4.
    pub width: usize,
}

/// A value: the bits of its components; only the first `width` are used.
pub type Value = [u32; 4];

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// Its type.
    pub ty: Type,
    /// The operation.
    pub operation: Operation,
    /// The operands.
    pub arguments: Vec<Self>,
}

/// A variable that expressions read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

impl Base {
    /// The name in WGSL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::F32 => "f32",
        }
    }
}

impl Type {
    /// A type with `width` components.
    #[must_use]
    pub const fn new(base: Base, width: usize) -> Self {
        Self { base, width }
    }

    /// A scalar type.
    #[must_use]
    pub const fn scalar(base: Base) -> Self {
        Self::new(base, 1)
    }

    /// The name in WGSL.
    #[must_use]
    pub fn name(self) -> String {
        match self.width {
            1 => self.base.name().to_owned(),
            width => format!("vec{width}<{}>", self.base.name()),
        }
    }
}

impl Tree {
    /// A variable.
    #[must_use]
    pub const fn input(index: usize, ty: Type) -> Self {
        Self { ty, operation: Operation::Input(index), arguments: Vec::new() }
    }

    /// A literal.
    #[must_use]
    pub const fn literal(value: Value, ty: Type) -> Self {
        Self { ty, operation: Operation::Literal(value), arguments: Vec::new() }
    }

    /// Whether it reads no variable: naga would evaluate it, and reject overflow.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        match self.operation {
            Operation::Input(_) => false,
            Operation::Literal(_) => true,
            _ => self.arguments.iter().all(Self::is_constant),
        }
    }

    /// The number of nodes.
    #[must_use]
    pub fn size(&self) -> usize {
        1 + self.arguments.iter().map(Self::size).sum::<usize>()
    }
}
