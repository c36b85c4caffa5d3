//! A fuzzer for portable kernels: random kernels on every device, compared with an interpreter of WGSL.

#![allow(clippy::cast_possible_truncation, reason = "truncates bit patterns")]

pub mod case;
pub mod device;
pub mod device_process;
pub mod fuzz;
pub mod generate;
pub mod guarded_memory;
pub mod interpret;
mod opaque_constants;
pub mod shrink;
pub mod transforms;
pub mod tree;
pub mod worker;
