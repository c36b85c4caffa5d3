//! Portable kernels: one WGSL source, lowered to whatever code a device accepts.
//!
//! The way of a kernel is a chain of steps over [`naga::Module`], each in a file of its own:
//!
//! ```text
//! text ── source (element type) ── parse ── specialise (overrides) ── reflect (interface) ── barriers ──> Program
//! Program ── spirv ──> SPIR-V        Program ── c ──> OpenCL C, CUDA C++, host C
//! ```
//!
//! [`Program`] is what stands between: a validated module without overrides, with the interface of each entry point.

mod barriers;
mod c;
mod contain;
mod inline;
mod interface;
mod parse;
mod program;
mod specialise;
mod uniformity;

pub use c::CCode;
pub use interface::{Feature, Interface, Override, Scalar, Tensor};
pub use naga;
pub use program::{Checks, Dialect, Program};
pub use specialise::Specialisation;
