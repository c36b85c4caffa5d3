//! Random portable kernels on every device, against an interpreter of WGSL.

#![allow(clippy::cast_possible_truncation, reason = "bit patterns are cut on purpose")]

pub mod case;
pub mod device;
pub mod device_process;
pub mod fuzz;
pub mod generate;
pub mod guarded_memory;
pub mod interpret;
mod opaque_constants;
pub mod shrink;
pub mod tree;
pub mod worker;
