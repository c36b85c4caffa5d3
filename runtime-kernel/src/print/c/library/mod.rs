//! Small functions with WGSL's semantics, each defined on first use.

pub(crate) mod convert;
pub(crate) mod cooperative;
pub(crate) mod float;
pub(crate) mod integer;
pub(crate) mod math;
pub(crate) mod matrix;
pub(crate) mod packing;
pub(crate) mod padding;
mod templates;
pub(crate) mod vector;
pub(crate) mod vector_moves;
