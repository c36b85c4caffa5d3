//! OpenCL devices, `opencl:0`, `opencl:1`, …, through the system's loader or a vendor's library.
//!
//! The library is loaded when devices are listed or opened for the first time. Where there is none, or it has no device, the
//! device list says so and what to do about it. Every device of every platform is listed, GPUs first, then accelerators, then
//! processors, and those of one sort by the name of their platform; a device that two platforms offer is listed twice. Where a
//! device can be cut, its sub-devices follow it: `opencl:0.0`, `opencl:0.1`, …, by NUMA node, else equally. A device and its
//! sub-devices share a context, so they wait for each other, and copy, on the device; others do by way of the program.
//!
//! # Memory
//!
//! | space | what it is |
//! | --- | --- |
//! | `device` | buffers of the driver |
//! | `pinned` | host memory that the device reads in place; where it cannot, mapped buffers, which kernels get copies of |
//! | `shared` | memory that both use: unified shared memory, or fine-grained shared virtual memory |
//!
//! Where `pinned` is mapped buffers, threads copy large pieces of the program's own memory through others of that sort.
//!
//! A tensor that does not begin where its buffer does is passed as a pointer where the memory has one, else as a sub-buffer
//! where its offset is aligned (`view_alignment_bytes`), else as a copy, made in front of the launch and written back behind it.
//!
//! # Code
//!
//! `opencl-binary` (what the driver made of other code: option `save_binary`), `spirv-kernel` and `opencl-c`, as far as a
//! device takes them. Options of the driver's compiler pass through, e.g. `-cl-intel-256-GRF-per-thread`.
//!
//! | argument | what the kernel takes |
//! | --- | --- |
//! | tensor | a pointer to global or constant memory |
//! | scalar | the value, in its own type |
//! | by-value bytes | a structure or vector of exactly that size |
//! | work-group memory | a pointer to local memory |
//!
//! Images, samplers and pipes are refused when the kernel is looked up. Where the driver tells the parameters, a pointer that is
//! not `const` counts as written: name such an argument written, or read and written. `Geometry::shared_bytes` gives a kernel
//! nothing: it sees what its arguments name.
//!
//! # Failure
//!
//! OpenCL goes on behind a command that has failed; here it fails its queue for good, so every command is watched by an event of
//! its own. On NVIDIA's platform a fault ends the whole context: there launches go without, and a fault loses the device.
//!
//! # As a library
//!
//! A backend of one vendor stands on [`OpenCl::with`]: a [`DeviceFilter`] of its devices, and the [`Quirks`] of its driver.

mod builtin;
mod compile_lock;
mod context;
mod convert;
mod deferred_release;
mod describe;
mod device;
mod device_caps;
mod device_filter;
mod driver;
mod enqueuer;
mod enumeration;
mod graph;
mod kernel;
mod launch;
mod memory;
mod module;
mod parallel_copy;
mod progress;
mod queue;
mod signature;
mod staging;
mod sub_buffers;
mod timer;

pub use device::OpenClDevice;
pub use device_filter::{DeviceFilter, Partition, Quirks};
pub use graph::OpenClGraph;
pub use kernel::OpenClKernel;
pub use memory::OpenClBuffer;
pub use module::OpenClModule;
pub use queue::OpenClQueue;

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use runtime_core::backend::{Backend, Level, LinkedBackend, Log};
use runtime_core::{DeviceInfo, Error, ErrorKind, OptionSpec, Options, Result};

use context::SharedContext;
use device_caps::DeviceCaps;
use driver::Driver;
use enumeration::ListedDevice;

/// The backend's state: the devices of a library, and the contexts of those that are open.
#[derive(Debug)]
pub struct OpenCl {
    log: Log,
    filter: DeviceFilter,
    quirks: Quirks,
    devices: Mutex<Option<Arc<[ListedDevice]>>>,
    /// By index of the device, and the quirks that it was opened with.
    contexts: Mutex<Vec<(u32, Quirks, Weak<SharedContext>)>>,
}

impl OpenCl {
    /// Offers the selected devices of a library. Nothing is loaded yet.
    ///
    /// # Safety
    /// The library of the filter is an implementation of OpenCL, and the quirks are true of its devices. The caller
    /// keeps to what [`Backend::open`] asks for.
    #[allow(unsafe_code, reason = "names a library to load")]
    #[must_use]
    pub unsafe fn with(filter: DeviceFilter, quirks: Quirks, log: Log) -> Self {
        Self { log, filter, quirks, devices: Mutex::default(), contexts: Mutex::default() }
    }

    fn driver(&self) -> Result<&'static Driver> {
        Driver::load(self.filter.library.as_deref(), self.quirks.serial)
    }

    /// The devices, listed once: their order stays.
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

    /// The context of a device, one for all its openings and those of its sub-devices.
    fn context(
        &self,
        driver: &'static Driver,
        index: u32,
        listed: &ListedDevice,
        quirks: Quirks,
    ) -> Result<Arc<SharedContext>> {
        let mut contexts = self.contexts.lock();
        contexts.retain(|(_, _, context)| context.strong_count() > 0);
        let mut open = contexts.iter().filter(|(known, with, _)| *known == index && *with == quirks);
        if let Some(context) = open.find_map(|(_, _, context)| context.upgrade())
            && context.check_alive().is_ok()
        {
            return Ok(context);
        }
        let driver = if listed.needs_serial_calls() {
            Driver::load(self.filter.library.as_deref(), true)?
        } else {
            driver
        };
        let caps = DeviceCaps::query(driver, listed, &quirks);
        let context = Arc::new(SharedContext::open(driver, listed.clone(), caps, &quirks)?);
        contexts.push((index, quirks, Arc::downgrade(&context)));
        Ok(context)
    }
}

// SAFETY: buffers are objects of the driver, queues are its command queues, and progress is what its events say.
#[allow(unsafe_code, reason = "vouches for the backend")]
unsafe impl Backend for OpenCl {
    const NAME: &'static str = "opencl";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = OpenClDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        // SAFETY: the system's loader of drivers; the rest is the caller's promise.
        Ok(unsafe { Self::with(DeviceFilter::default(), Quirks::default(), log) })
    }

    fn options() -> Vec<OptionSpec> {
        let pointers = OptionSpec::device(
            "pointers",
            true,
            "Use shared virtual memory and unified shared memory where the device has them; else buffers alone.",
        );
        std::iter::once(pointers).chain(module::options()).collect()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let driver = self.driver()?;
        Ok(describe::describe_all(driver, &self.devices(driver)?, &self.quirks))
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<OpenClDevice> {
        let driver = self.driver()?;
        let devices = self.devices(driver)?;
        let listed = devices.get(index as usize).ok_or_else(|| {
            let message = format!("there are devices 0 to {}, not {index}", devices.len().saturating_sub(1));
            Error::new(ErrorKind::NotFound, message)
        })?;
        let device = match sub {
            None => listed.device,
            Some(sub) => *listed.sub_devices.get(sub as usize).ok_or_else(|| {
                let message =
                    format!("device {index} has {} sub-devices, no number {sub}", listed.sub_devices.len());
                Error::new(ErrorKind::NotFound, message)
            })?,
        };
        let mut quirks = self.quirks.clone();
        if options.value("pointers").is_some() && !options.flag("pointers") {
            (quirks.svm, quirks.usm) = (false, false);
        }
        let context = self.context(driver, index, listed, quirks)?;
        self.log.write(Level::Debug, "opencl", &format!("opened device {index}"));
        Ok(OpenClDevice::new(context, device))
    }
}

/// This backend, to register it in a program that links it in.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<OpenCl>()
}
