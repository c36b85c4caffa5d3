//! Kalray's offload library: memory, modules and execution on the clusters of a chip. **No device uses it yet.**
//!
//! The layouts of the library's structures are known only to its headers, so a small C file with a flat interface, [`Shim`], is
//! compiled on the machine that has the SDK. A block of [`Memory`] has two addresses: kernels use one, transfers the other. Calls to
//! a chip are made one after the other.

mod chip;
mod functions;
mod loaded_modules;
mod memory;
mod module;
mod shim;

pub use chip::Chip;
pub use loaded_modules::LoadedModules;
pub use memory::{Memory, Space};
pub use module::Module;
pub use shim::Shim;
