//! Walks over naga's IR, and edited copies of it. Imports no other folder.

pub(crate) mod blocks;
pub(crate) mod body_writer;
pub(crate) mod built_ins;
pub(crate) mod cooperative;
pub(crate) mod declare;
pub(crate) mod half_bits;
pub(crate) mod operands;
pub(crate) mod rebuild;
pub(crate) mod variables;

use naga::{Expression, GlobalVariable, Handle, LocalVariable};

/// A value or pointer of a function.
pub(crate) type Value = Handle<Expression>;

/// A variable of a function.
pub(crate) type Local = Handle<LocalVariable>;

/// A variable of a module.
pub(crate) type Global = Handle<GlobalVariable>;
