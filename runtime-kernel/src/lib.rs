//! Portable kernels: one WGSL source, lowered to whatever code a device accepts.
//!
//! A program registers the lowering once; from then on loading WGSL is the same call as loading any other code.
//!
//! ```
//! use runtime_core::{Arg, Geometry, ModuleSource, Runtime, Tensor};
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
//!     .with_lowering(runtime_kernel::wgsl())
//!     # .discover(false).register(runtime_host::backend())
//!     .build();
//! let device = runtime.open("host")?;
//! let scale = device.kernel(&ModuleSource::wgsl(text).constant("GROUP", 4), "scale")?;
//! let x = device.tensor([5], &[1.0f32, 2.0, 3.0, 4.0, 5.0])?;
//! let queue = device.queue()?;
//! queue.call(&scale, Geometry::new([2, 1, 1], [4, 1, 1]), &[Arg::read_write(&x), Arg::scalar(2.0f32)])?;
//! assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0, 10.0]);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! `docs/kernels.md` is the guide for kernel authors: argument convention, constants, element types, and what is
//! checked.
//!
//! # The pipeline
//!
//! A kernel passes through a chain of steps over [`naga::Module`]; `pipeline` runs them in this order:
//!
//! ```text
//! text ─ parse/   limits, source_edits (element type), directives, subgroup_calls, half_bitcasts,
//!                 textures, limits and expansion_limits of the result, naga, specialise (overrides), naga again
//!      ─ check/   continuing (on naga's first module), cooperative, barriers
//!      ─ analysis/ interfaces, features
//!      ─> Program
//!
//! Program ─ transform/ coarsening, pointer_arguments, spirv_fixups, zeroing, bounds_checks, f16_push_constants ─ print/spirv ─> SPIR-V
//! Program ─ transform/ subgroups (where there are none), coarsening, pointer_arguments, zeroing ─ print/c ─> OpenCL C, CUDA C++
//! Program ─ transform/ subgroups, pointer_arguments, inline ─ print/c/host ─> C for the host, OpenCL C with groups as loops
//! ```
//!
//! | folder | what it does |
//! | --- | --- |
//! | `ir` | walks and edits of naga's IR, used by all others |
//! | `parse` | turns text into a validated module; limits hostile text and catches naga's panics |
//! | `analysis` | derives facts about a module without changing it: interface, features, uniformity, proofs that accesses are in range |
//! | `check` | enforces rules of WGSL that naga does not check |
//! | `transform` | rewrites a module into another module |
//! | `print` | writes code: C in three dialects, SPIR-V |
//! | `fuse` | makes one kernel of several launches, as WGSL text that goes through the pipeline like any other |
//!
//! A folder imports only from those above it in the table, with one exception: `check::barriers` inlines a kernel
//! (`transform::inline`) whose functions cannot be judged on their own. [`Program`] is the hand-over point: a
//! validated module without overrides, plus the interface of each entry point. No step panics, whatever the text: a
//! panic in naga becomes an error (`parse::panic_guard`).

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod analysis;
mod check;
mod fuse;
mod group_loops;
mod host_flags;
mod interface;
mod ir;
mod lowering;
mod parse;
mod pipeline;
mod print;
mod printed;
mod program;
#[cfg(test)]
mod tests;
mod transform;

pub use group_loops::GroupLoops;
pub use interface::{Interface, Layout, Override, Scalar, Tensor};
pub use lowering::wgsl;
pub use naga;
pub use parse::specialise::Specialisation;
pub use print::c::{CCode, REJECTED};
pub use printed::PrintedModule;
pub use program::{Checks, Dialect, Feature, Program};
