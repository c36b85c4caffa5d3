//! Portable kernels: one WGSL source, lowered to whatever code a device accepts.
//!
//! The way of a kernel is a chain of steps over [`naga::Module`], each in a file of its own:
//!
//! ```text
//! text ── source (element type) ── nesting ── parse ── specialise (overrides) ── reflect (interface) ──> Program
//! Program ── spirv ──> SPIR-V        Program ── c ──> OpenCL C, CUDA C++, host C
//! ```
//!
//! [`Program`] is what stands between: a validated module without overrides, with the interface of each entry point.

mod barriers;
mod c;
mod contain;
mod features;
mod halves;
mod immediates;
mod inline;
mod interface;
mod lowering;
mod nesting;
mod parse;
mod program;
mod reflect;
mod source;
mod specialise;
mod spirv;
mod tokens;
mod uniformity;

pub use c::CCode;
pub use features::Feature;
pub use interface::{Interface, Override, Scalar, Tensor};
pub use lowering::wgsl;
pub use naga;
pub use program::{Checks, Dialect, Program};
pub use specialise::Specialisation;
