//! OpenCL devices, `opencl:0`, `opencl:1`, …, through the system's ICD loader or a vendor's library.
//!
//! The library is loaded when devices are first listed or opened. If it is missing or has no devices, the device list gives the
//! reason and the remedy. Every device of every platform is listed: GPUs first, then accelerators, then processors, and by
//! platform name within a kind. A device that two platforms offer is listed twice. The sub-devices of a device follow it:
//! `opencl:0.0`, `opencl:0.1`, …, partitioned by NUMA node, else equally. A device and its sub-devices share a context, so
//! waits and copies between them stay on the device; between other devices they go through the host.
//!
//! # Memory
//!
//! | space | what it is |
//! | --- | --- |
//! | `device` | `cl_mem` buffers |
//! | `pinned` | host memory that the device reads in place; on devices that cannot, mapped buffers, which a launch copies for the kernel |
//! | `shared` | memory for host and device: unified shared memory, or fine-grained shared virtual memory |
//!
//! On devices whose `pinned` memory is mapped buffers, several threads stage large transfers of pageable memory through such
//! buffers.
//!
//! A tensor with an offset into its buffer is passed as a pointer where the memory has one, else as a sub-buffer where the offset
//! is aligned (`view_alignment_bytes`), else as a copy, made before the launch and written back after it.
//!
//! # Code
//!
//! Formats, as far as the device accepts them: `opencl-binary` (what the driver compiled from other code, see option
//! `save_binary`), `spirv-kernel` and `opencl-c`. Compiler options pass through, e.g. `-cl-intel-256-GRF-per-thread`.
//!
//! | argument | kernel parameter |
//! | --- | --- |
//! | tensor | a pointer to global or constant memory |
//! | scalar | the value, in its own type |
//! | by-value bytes | a structure or vector of exactly that size |
//! | work-group memory | a pointer to local memory |
//!
//! Kernels with images, samplers or pipes are refused when they are looked up. Where the driver reports the parameters, a pointer
//! to `const` is only read; of a pointer without `const`, the argument says how it is used: `read`, `write` or `read_write`.
//!
//! Code is compiled without loading it, to an `opencl-binary` for an open device. Core keeps binaries, and loads them with the
//! options that they need. PoCL's contain a work-group function for any group size; PoCL compiles another for the size of a
//! launch at the first launch, and keeps it in a cache of its own. For `opencl:c`, without a device, OpenCL C and SPIR-V stay as they
//! are. For other architectures, the option `offline_compiler` is the command of a compiler, without a shell, for example
//!
//! ```text
//! ocloc compile -file {input} -spirv_input -device {device} -options {options} -output_no_suffix -output {output}
//! ```
//!
//! `{device}` is the architecture (`pvc` in `opencl:pvc`), and `{options}` are the build options, in one argument. Registers and
//! spills that Intel's compiler logs are reported of its kernels; it counts spills in registers of a sub-group, so the bytes of a work-item
//! are at least as many. The option `registers` selects the registers of a work-item on Intel's GPUs: `default`, `128`, `256` or `auto`.
//!
//! # Failure
//!
//! OpenCL continues after a failed command. This backend fails the queue permanently instead, so every command is watched through
//! an event of its own. On NVIDIA's platform a fault ends the whole context, and the device is lost; launches there need no events.
//!
//! # As a library
//!
//! A vendor's backend builds on [`OpenCl::with`]: a [`DeviceFilter`], and the [`Quirks`] of its driver.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod allocation;
mod build_failure;
mod built_program;
mod builtin;
mod compile_lock;
mod completion;
mod context;
mod convert;
mod debug;
mod deferred_release;
mod describe;
mod device;
mod device_caps;
mod device_filter;
mod device_state;
mod driver;
mod enqueuer;
mod enumeration;
mod formats;
mod graph;
mod grid_lock;
mod hold;
mod kernel;
mod kernel_binding;
mod launch;
mod memory;
mod module;
mod native_code;
mod offline;
mod parallel_copy;
mod placeholders;
mod program;
mod progress;
mod queue;
mod quirks;
mod registers;
mod signature;
mod space;
mod staging;
mod sub_buffers;
mod timer;
mod views;

pub use device::OpenClDevice;
pub use device_filter::DeviceFilter;
pub use graph::OpenClGraph;
pub use kernel::OpenClKernel;
pub use memory::OpenClBuffer;
pub use module::OpenClModule;
pub use placeholders::fill_placeholders;
pub use queue::OpenClQueue;
pub use quirks::{Partition, Quirks};

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{
    Backend, Level, LinkedBackend, Log, OpenDevices, OptionSpec, Source, StagingOptions,
};
use runtime_core::code::CompiledCode;
use runtime_core::{DeviceInfo, Error, ErrorKind, Options, Result};

use context::SharedContext;
use device_caps::DeviceCaps;
use device_state::DeviceState;
use driver::Driver;
use enumeration::ListedDevice;

/// The backend's state: the devices of a library, and the contexts of the open ones.
#[derive(Debug)]
pub struct OpenCl {
    log: Log,
    filter: DeviceFilter,
    quirks: Quirks,
    devices: Mutex<Option<Arc<[ListedDevice]>>>,
    /// By index, and the quirks that the device was opened with.
    open: OpenDevices<(u32, Quirks), DeviceState>,
}

impl OpenCl {
    /// Offers the devices of a library that match `filter`. Loads nothing yet.
    ///
    /// # Safety
    /// The filter's library is an implementation of OpenCL, and the quirks are true of its devices. The caller upholds the
    /// contract of [`Backend::open`].
    #[allow(unsafe_code, reason = "names a library to load")]
    #[must_use]
    pub unsafe fn with(filter: DeviceFilter, quirks: Quirks, log: Log) -> Self {
        Self { log, filter, quirks, devices: Mutex::default(), open: OpenDevices::default() }
    }

    fn driver(&self) -> Result<&'static Driver> {
        Driver::load(self.filter.library.as_deref(), self.quirks.serial)
    }

    /// The devices, enumerated once, so that their indices are stable.
    fn devices(&self, driver: &Driver) -> Result<Arc<[ListedDevice]>> {
        let mut devices = self.devices.lock();
        match &*devices {
            Some(known) => Ok(Arc::clone(known)),
            None => {
                let listed: Arc<[ListedDevice]> =
                    enumeration::list_devices(driver, &self.filter, &self.quirks)?.into();
                Ok(Arc::clone(devices.insert(listed)))
            }
        }
    }

    /// The state of a device, shared by all open handles of the device and its sub-devices.
    fn state(
        &self,
        driver: &'static Driver,
        index: u32,
        listed: &ListedDevice,
        (quirks, staging): (Quirks, StagingOptions),
    ) -> Result<Arc<DeviceState>> {
        let is_usable = |state: &DeviceState| Ok(state.context.check_alive().is_ok());
        self.open.get_or_open((index, quirks.clone()), is_usable, || {
            let driver = match listed.needs_serial_calls() {
                true => Driver::load(self.filter.library.as_deref(), true)?,
                false => driver,
            };
            let caps = DeviceCaps::query(driver, listed, &quirks);
            Ok(DeviceState::new(SharedContext::open(driver, listed.clone(), caps, quirks)?, staging))
        })
    }
}

// SAFETY: buffers are driver objects, queues are its command queues, and progress is read from its events.
#[allow(unsafe_code, reason = "guarantees that the backend is sound")]
unsafe impl Backend for OpenCl {
    const NAME: &'static str = "opencl";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = OpenClDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        // SAFETY: the system's ICD loader; the rest is the caller's promise.
        Ok(unsafe { Self::with(DeviceFilter::default(), Quirks::default(), log) })
    }

    fn options() -> Vec<OptionSpec> {
        let pointers = OptionSpec::device(
            "pointers",
            true,
            "Use shared virtual memory and unified shared memory where available; false: buffers only.",
        );
        [pointers].into_iter().chain(staging::DEFAULTS.declare()).chain(module::options()).collect()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let driver = self.driver()?;
        Ok(describe::describe_all(driver, &self.devices(driver)?, &self.quirks))
    }

    fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        Ok(offline::architecture(architecture))
    }

    fn compile_for(&self, architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
        offline::compile_for(architecture, source)
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<OpenClDevice> {
        let driver = self.driver()?;
        let devices = self.devices(driver)?;
        let listed = devices.get(index as usize).ok_or_else(|| {
            let message = format!("no device {index}; valid: 0 to {}", devices.len().saturating_sub(1));
            Error::new(ErrorKind::NotFound, message)
        })?;
        let device = match sub {
            None => listed.device,
            Some(sub) => *listed.sub_devices.get(sub as usize).ok_or_else(|| {
                let message = format!("no sub-device {sub}; device {index} has {}", listed.sub_devices.len());
                Error::new(ErrorKind::NotFound, message)
            })?,
        };
        let mut quirks = self.quirks.clone();
        if options.value("pointers").is_some() && !options.flag("pointers") {
            (quirks.svm, quirks.usm) = (false, false);
        }
        let staging = staging::DEFAULTS.parse(options)?;
        let shared = self.state(driver, index, listed, (quirks, staging))?;
        self.log.write(Level::Debug, "opencl", &format!("opened device {index}"));
        Ok(OpenClDevice::new(shared, device))
    }
}

/// This backend, for a program that links it in and registers it.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<OpenCl>()
}
