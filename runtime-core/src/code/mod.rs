//! Loaded code: modules, their kernels, and the lowering of portable code.

pub(crate) mod kernel;
pub(crate) mod lowering;
pub(crate) mod module;
