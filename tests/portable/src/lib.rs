//! WGSL's semantics as data, and the executors that check them.
//!
//! - [`table`] and [`annotated`]: expressions and kernels with the values that the specification demands; a § in them
//!   is the anchor of a section of the WGSL specification.
//! - [`tree`] and [`lockstep`]: random expressions and random kernels with barriers, and interpreters for them.
//! - [`device`], [`tool`]: what runs and compiles the lowered code.

#![allow(
    clippy::cast_possible_truncation,
    clippy::missing_panics_doc,
    reason = "bit patterns are cut on purpose, and a test panics where its data is wrong"
)]

pub mod annotated;
pub mod batch;
pub mod device;
pub mod expect;
pub mod host_checks;
pub mod lockstep;
pub mod modified_lowering;
pub mod module;
pub mod nvrtc;
pub mod program;
pub mod programs;
pub mod properties;
pub mod random;
pub mod scalar;
pub mod shape;
pub mod shrink;
pub mod table;
pub mod tool;
pub mod tree;

pub use test_process::required;
