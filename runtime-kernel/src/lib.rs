//! Portable kernels: one WGSL source, lowered to whatever code a device accepts.
//!
//! A program registers the lowering once; from then on loading WGSL is the same call as loading any other code.
//!
//! ```
//! use runtime_core::{Arg, Geometry, ModuleSource, QueueOptions, Runtime, Tensor};
//!
//! let text = "
//!     struct Scalars { factor: f32 }
//!     var<immediate> scalars: Scalars;
//!     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
//!     override GROUP: u32 = 64;
//!     @compute @workgroup_size(GROUP) fn scale(@builtin(global_invocation_id) id: vec3u) {
//!         x[id.x] *= scalars.factor; // out of range it does nothing
//!     }";
//! let runtime = Runtime::builder()
//!     .lower_with(runtime_kernel::wgsl())
//!     # .discover(false).register(runtime_host::backend())
//!     .build();
//! let device = runtime.open("host")?;
//! let scale = device.load(&ModuleSource::wgsl(text).constant("GROUP", 4))?.kernel("scale")?;
//! let x = Tensor::from_slice(&*device, &[5], &[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
//! let queue = device.open_queue(&QueueOptions::default())?;
//! queue.call(&scale, &Geometry::new([2, 1, 1], [4, 1, 1]), &[Arg::read_write(&x), Arg::scalar(2.0f32)])?;
//! assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0, 10.0]);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! `docs/kernels.md` is the author's guide: the convention of arguments, constants, element types, what is checked.
//!
//! # The steps
//!
//! The way of a kernel is a chain of steps over [`naga::Module`], each in a file of its own:
//!
//! ```text
//! text ── source (element type) ── nesting, members ── parse ── continuing ── specialise (overrides) ── parse ── reflect (interface)
//!      ── barriers ──> Program
//! Program ── pointers ── mend ── guard (checks) ── halves ── spirv ──> SPIR-V
//! Program ── pointers ── inline ── c ──> OpenCL C, CUDA C++, host C
//! ```
//!
//! [`Program`] is what stands between: a validated module without overrides, with the interface of each entry point. No step
//! panics, whatever the text: what naga panics on is an error too (`contain`).

mod analysis;
mod check;
mod interface;
mod ir;
mod lowering;
mod parse;
mod pipeline;
mod print;
mod program;
#[cfg(test)]
mod test_programs;
mod transform;

pub use analysis::features::Feature;
pub use interface::{Interface, Override, Scalar, Tensor};
pub use lowering::wgsl;
pub use naga;
pub use parse::specialise::Specialisation;
pub use print::c::{CCode, REJECTED};
pub use program::{Checks, Dialect, Program};
