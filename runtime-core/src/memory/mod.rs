//! Allocations, and blocking transfers between them and host memory.

pub(crate) mod blocking_copy;
pub(crate) mod buffer;
