//! Finding backends and opening their devices.

pub(crate) mod device_string;
mod registry;

pub use registry::{Runtime, RuntimeBuilder, Target};
