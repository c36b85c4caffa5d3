//! The null backend: simulated devices. It is the skeleton for new backends, and the test double of the tests.
//!
//! # Add a backend in six steps
//!
//! 1. Copy this folder to `runtime-NAME`, rename both packages and the plugin's library, add both to the members of
//!    the workspace. Delete `arguments`, `builtins`, `counters`, `disturbance`, `embedded`, `fault`, `graph` and `timeline` (they simulate
//!    hardware and its failures) and whatever then fails to compile.
//! 2. In this file: the name, and the `options` of devices and modules.
//! 3. `device`: list the devices, with the reason for each one that is unavailable, and open them.
//! 4. `memory`: allocate, and return the addresses for kernels and for the host.
//! 5. `module`: load code, list and look up its entry points, report what the driver knows about them.
//! 6. `queue`: submissions, `signal`, `poll` and `wait`. Then build and test it:
//!    `cargo build -p runtime-NAME-plugin && runtime conformance target/debug/libruntime_NAME.so`.
//!
//! Everything is safe Rust except the few lines of `memory` that access memory. `plugin` builds the dynamic library.
//!
//! # Devices
//!
//! | device | what it is |
//! | --- | --- |
//! | `null:0` | an accelerator with two sub-devices |
//! | `null:0.0` | runs a call on the caller's thread if its queue is idle |
//! | `null:0.1` | its queues cannot wait for each other, so core waits on the program's thread |
//! | `null:1` | another accelerator, with access to the memory of the first, and native graphs |
//! | `null:2` | an embedded device |
//! | `null:3` | listed, but unavailable |
//!
//! Code of format `null` is text: a line `NAME = BUILTIN`, or just `BUILTIN`, makes an entry point; `#` begins a
//! comment. The builtins are listed in [`builtins`]. Failures are injected by device options, see [`Null::options`].

mod arguments;
pub mod builtins;
mod counters;
mod device;
mod disturbance;
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

use runtime_core::backend::{Backend, Level, LinkedBackend, Log, OptionSpec, Source};
use runtime_core::code::CompiledCode;
use runtime_core::{DeviceInfo, Options, Result};

/// The backend's state.
#[derive(Debug)]
pub struct Null {
    log: Log,
}

// SAFETY: buffers own their memory, and a queue reports a ticket as completed only after its work has run.
#[allow(unsafe_code, reason = "guarantees that the backend is sound")]
unsafe impl Backend for Null {
    const NAME: &'static str = "null";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = NullDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log })
    }

    fn options() -> Vec<OptionSpec> {
        let mut options = fault::options();
        options.extend(disturbance::options());
        options.push(OptionSpec::device(
            "compiler",
            false,
            "Compile code before it is loaded, so that core keeps it.",
        ));
        options.push(OptionSpec::module("prefix", "", "Prefix of the names of the entry points."));
        options.push(OptionSpec::module(
            "debug",
            false,
            "Accepted, and without effect: builtins are not compiled.",
        ));
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

    fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        device::architecture(architecture)
    }

    fn compile_for(&self, architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
        device::architecture(architecture)?;
        module::compile(source)
    }

    /// A real backend reports the variables that it reads, and which libraries and tools of the driver it found.
    fn diagnose(&self) -> Result<Options> {
        Ok(Options::new().with("driver", "none: the devices are simulated"))
    }
}

/// This backend, for programs that link it statically and register it.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Null>()
}
