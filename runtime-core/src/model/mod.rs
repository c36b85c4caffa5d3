//! Plain data: what devices, element types, launches and options are described by.

pub(crate) mod device_info;
pub(crate) mod dtype;
pub(crate) mod geometry;
pub(crate) mod options;
