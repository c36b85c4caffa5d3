//! The null backend: a device that does nothing but what it is told, as a skeleton to copy and as the tests' double.
//!
//! # Add a backend in six steps
//!
//! 1. Copy this folder to `runtime-NAME`, rename both packages and the plugin's library, add both to the members of
//!    the workspace. Delete `arguments`, `builtins`, `embedded`, `fault`, `graph` and `timeline` (they simulate
//!    hardware and its failures) and whatever then fails to compile.
//! 2. Here: the name, and `options` that a device or a module accepts.
//! 3. `device`: what devices there are, with the reason for each that is unusable; how one is opened.
//! 4. `memory`: allocate, and the addresses that kernels and the program see.
//! 5. `module`: load code, list and find its entry points, say what the driver knows of them.
//! 6. `queue`: submissions, marks, `poll` and `wait`. Then build it and prove it:
//!    `cargo build -p runtime-NAME-plugin && runtime conformance target/debug/libruntime_NAME.so`.
//!
//! Everything is safe Rust but the few lines of `memory` that touch memory; `plugin` makes the dynamic library.
//!
//! # What there is
//!
//! | device | what it is |
//! | --- | --- |
//! | `null:0` | an accelerator with two sub-devices |
//! | `null:0.0` | one that runs a call on the caller's thread if its queue is idle |
//! | `null:0.1` | one whose queues cannot wait for each other: core waits on the program's thread |
//! | `null:1` | another one, which reaches the memory of the first and has native graphs |
//! | `null:2` | an embedded device |
//! | `null:3` | listed, but unusable |
//!
//! Code of format `null` is text: a line `NAME = BUILTIN`, or just `BUILTIN`, makes an entry point; `#` begins a
//! comment. The builtins are listed in [`builtins`]. Failures are injected by device options, see [`Null::options`].

mod arguments;
pub mod builtins;
mod device;
mod embedded;
mod fault;
mod graph;
mod memory;
mod module;
mod queue;
mod timeline;

pub use device::NullDevice;
pub use graph::NullGraph;
pub use memory::{NullBuffer, freed_in_use};
pub use module::{NullKernel, NullModule};
pub use queue::NullQueue;

use runtime_core::backend::{Backend, Level, LinkedBackend, Log};
use runtime_core::{DeviceInfo, OptionSpec, Options, Result};

/// The backend's state.
#[derive(Debug)]
pub struct Null {
    log: Log,
}

// SAFETY: buffers own their memory, and a queue does one thing after the other before it says so.
#[allow(unsafe_code, reason = "vouches for the backend")]
unsafe impl Backend for Null {
    const NAME: &'static str = "null";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = NullDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log })
    }

    fn options() -> Vec<OptionSpec> {
        let mut options = fault::options();
        options.push(OptionSpec::module("prefix", "", "Stands in front of the names of the entry points."));
        options
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(device::list())
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<NullDevice> {
        let device = NullDevice::open(index, sub, options)?;
        self.log.write(Level::Debug, "null", &format!("opened device {index}"));
        Ok(device)
    }
}

/// This backend, to register it in a program that links it in.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Null>()
}
