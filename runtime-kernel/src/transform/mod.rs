//! Transforms from module to module, between the checks and the writers.

pub(crate) mod guard;
pub(crate) mod halves;
pub(crate) mod inline;
pub(crate) mod mend;
pub(crate) mod pointers;
pub(crate) mod zeroing;
