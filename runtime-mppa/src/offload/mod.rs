//! Kalray's offload library: memory, modules and execution on the clusters of a chip.
//!
//! The layouts of the library's structures are known only to its headers, so a small C file with a flat interface, [`Shim`], is
//! compiled on the machine that has the SDK. A block of [`Memory`] has two addresses: kernels use one, transfers the other. Calls to
//! a chip are made one after the other, by a thread of its own, so that a call that never returns holds up no other thread.

mod arguments;
mod call_thread;
mod call_timeout;
mod call_watch;
mod chip;
mod command;
mod counting;
mod device;
mod functions;
mod host_arguments;
mod host_module;
mod kernel;
mod loaded_modules;
mod memory;
mod module;
mod open_chip;
mod queue;
mod shim;
mod simulator;
mod simulator_folder;
mod simulator_variables;

pub use chip::Chip;
pub use command::Command;
pub use host_module::HostCode;
pub use kernel::{OffloadKernel, OffloadModule};
pub use loaded_modules::{Code, LoadedModules};
pub use memory::{Memory, OffloadBuffer, Space};
pub use module::Module;
pub use queue::OffloadQueue;
pub use shim::Shim;

pub(crate) use call_timeout::{Limits, option as timeout_option};
pub(crate) use device::{OffloadDevice, module_options};
pub(crate) use host_arguments::extended;
pub(crate) use host_module::HOST_MODULE;
pub(crate) use memory::MIN_ALIGNMENT_BYTES;
pub(crate) use open_chip::{BuildLog, OPEN_CHIPS, Wanted};
pub(crate) use shim::{HEADER, has_header, try_compile};
pub(crate) use simulator::{SimulatorPlan, obstacle, tool};
pub(crate) use simulator_variables::simulator_variables;
