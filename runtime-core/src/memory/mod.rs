//! Allocations, views of them for the host, and blocking transfers.

pub(crate) mod blocking_copy;
pub(crate) mod buffer;
pub(crate) mod host_view;
