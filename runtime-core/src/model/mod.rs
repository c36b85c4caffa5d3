//! Plain data: what devices, element types, launches and options are described by.

pub(crate) mod access;
pub(crate) mod device_info;
pub(crate) mod dtype;
pub(crate) mod geometry;
pub(crate) mod kernel_info;
pub(crate) mod options;
pub(crate) mod placement;
