//! Small functions with the semantics of WGSL, printed where they are used.

pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod math;
pub(crate) mod matrix;
pub(crate) mod packing;
pub(crate) mod vector;
