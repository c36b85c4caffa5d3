//! Walks over naga's IR, and edited copies of it. Imports no other folder.

pub(crate) mod behaviors;
pub(crate) mod blocks;
pub(crate) mod body_writer;
pub(crate) mod built_ins;
pub(crate) mod cooperative;
pub(crate) mod declare;
pub(crate) mod half_bits;
pub(crate) mod operands;
pub(crate) mod rebuild;
pub(crate) mod variables;

use naga::front::Typifier;
use naga::proc::{ResolveContext, TypeResolution};
use naga::{Expression, Function, GlobalVariable, Handle, LocalVariable, Module};

/// A value or pointer of a function.
pub(crate) type Value = Handle<Expression>;

/// A variable of a function.
pub(crate) type Local = Handle<LocalVariable>;

/// A variable of a module.
pub(crate) type Global = Handle<GlobalVariable>;

/// The type of a value of a module that is not validated yet; `None` if naga finds none.
pub(crate) fn resolved(module: &Module, function: &Function, value: Value) -> Option<TypeResolution> {
    let mut types = Typifier::new();
    let context = ResolveContext::with_locals(module, &function.local_variables, &function.arguments);
    types.grow(value, &function.expressions, &context).ok()?;
    Some(types[value].clone())
}
