//! Allocations, and blocking transfers between them and the program.

pub(crate) mod blocking_copy;
pub(crate) mod buffer;
