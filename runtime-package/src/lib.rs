//! Packages: kernels that are compiled ahead of time, for several targets, in one file.
//!
//! A package (`.rtpkg`) is a zip archive with native code, a portable fallback, and a manifest that describes them;
//! `docs/packages.md` documents it. `runtime compile` and the crate `runtime-build` write packages, with
//! [`PackageBuilder`]; a program ships one as a file or in its executable, and loads what fits its device best:
//!
//! ```no_run
//! use runtime_core::Runtime;
//! use runtime_package::Package;
//!
//! # fn main() -> runtime_core::Result<()> {
//! let runtime = Runtime::builder().build(); // with a lowering, if the fallback is WGSL
//! let device = runtime.open("cuda:0")?;
//! let package = Package::open("kernels.rtpkg")?; // or from_bytes(include_bytes!("kernels.rtpkg"))
//! // SAFETY: we made this package.
//! let (module, choice) = unsafe { package.load(&*device, "saxpy") }?;
//! println!("{}", choice.why); // code for cuda:sm_90 is optimal for cuda:0
//! # Ok(()) }
//! ```
//!
//! **Trust.** Reading, listing, verifying and extracting a package is safe, whatever its content: damage and malice are errors,
//! and memory is limited by what is read. Its code can do anything, so loading it is `unsafe`. The checksums detect damage,
//! not forgery.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod archive;
mod builder;
mod choose;
mod extract;
mod manifest;
mod package;
mod target;

pub use builder::{KernelFile, PackageBuilder};
pub use choose::{Choice, PassedOver, Reason, Taken};
pub use manifest::{CodeFile, Fallback, Manifest, PackagedCode, PackagedKernel};
pub use package::Package;
pub use target::CompileTarget;
