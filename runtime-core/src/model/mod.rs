//! Plain data that describes devices, element types, code, launches and options.

pub(crate) mod access;
pub(crate) mod byte_range;
pub(crate) mod code_format;
pub(crate) mod code_load;
pub(crate) mod compiled;
pub(crate) mod counted;
pub(crate) mod counters;
pub(crate) mod device_info;
pub(crate) mod dtype;
pub(crate) mod fusion;
pub(crate) mod geometry;
pub(crate) mod kernel_info;
pub(crate) mod lowering;
pub(crate) mod native;
pub(crate) mod options;
pub(crate) mod pitched;
pub(crate) mod placement;
pub(crate) mod portable_source;
pub(crate) mod signature;
pub(crate) mod throttle_reasons;
