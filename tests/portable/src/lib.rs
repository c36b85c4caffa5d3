//! Tests of WGSL's semantics as data, and the executors that run them.
//!
//! - [`table`] and [`annotated`]: expressions and kernels with the results that the specification requires; a § in them
//!   is the anchor of a section of the WGSL specification.
//! - [`tree`] and [`lockstep`]: random expressions and random kernels with barriers, and their interpreters.
//! - [`device`], [`tool`]: run and compile the lowered code.

#![allow(
    clippy::cast_possible_truncation,
    clippy::missing_panics_doc,
    reason = "truncates bit patterns, and panics on invalid test data"
)]

pub mod annotated;
pub mod batch;
pub mod corpus;
pub mod corpus_data;
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
