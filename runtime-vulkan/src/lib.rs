//! A backend for devices with a Vulkan driver, `vulkan:0`, `vulkan:1`, …: GPUs of every vendor, and CPUs.
//!
//! The loader is loaded, and enumerates its drivers, when devices are first listed or opened. If there is no loader, no
//! driver or a broken one, the device list gives the reason and a remedy; a device below Vulkan 1.2, or without timeline
//! semaphores, is listed with the reason. The loader itself honours `VK_DRIVER_FILES`.
//! `RUNTIME_VULKAN_VALIDATION=1` enables the Khronos validation layer, whose messages are logged as `vulkan::validation`;
//! processes with elevated privileges ignore it.
//!
//! # Memory
//!
//! | space | what it is |
//! | --- | --- |
//! | `device` | device memory |
//! | `pinned` | cached host memory, which the device accesses in place |
//! | `shared` | device memory that is mapped into the host's address space; not on every device |
//!
//! Freed memory of 16 MiB and more is kept for later tensors, until the device has no more: to allocate it takes 29 ms per GiB on an
//! H200 (driver 580.159). Devices that use the host's memory keep none.
//!
//! A kernel can access at most `binding_bytes` bytes (a device property) of one tensor: launch it on views of a larger one.
//! A view whose offset the device cannot bind is copied for the launch, and copied back.
//!
//! # Queues
//!
//! Queues share the `VkQueue`s of the driver's best compute family; new queues use the least-loaded one. Large transfers
//! use a transfer-only family, if there is one. Priorities are ignored: Vulkan sets them per `VkQueue`, when the device is
//! opened. Queues that share a `VkQueue` run one after the other on some drivers (lavapipe, which has a single one).
//!
//! A process may exit with work in flight. On a CPU device, exit waits for that work, at most five seconds, since the
//! driver's compiler may be running; under the validation layer, at most a minute. Later submissions fail.
//!
//! Large transfers of pageable memory are copied by threads, which wait for the transfer's dependencies. Until the transfer
//! has completed, later submissions to its queue block, and so do submissions elsewhere that depend on that queue.
//!
//! # Code
//!
//! The formats are `spirv-shader`, with compute entry points, and `vulkan-binary`: the same with what the driver compiled of
//! it, which no other driver or version uses.
//!
//! | argument | what the kernel takes |
//! | --- | --- |
//! | tensor | a storage buffer: set 0, binding 0, 1, … in the order of the tensors |
//! | scalar, by-value bytes | a member of the push constants, in order |
//! | work-group memory | not an argument: its size is a specialisation constant |
//!
//! The code fixes the group size. The load option `constant` sets specialisation constants. A binary has their values.
//!
//! `compile` makes a `vulkan-binary` for an open device, and SPIR-V for the architecture `vulkan` without one.
//!
//! Portable code bounds-checks its own memory accesses, and the caller is responsible for native code. So
//! `robustBufferAccess` is off, unless the option `robust` is set.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod barriers;
mod batches;
mod binary;
mod builtin;
mod compile;
mod convert;
mod describe;
mod device;
mod device_state;
mod driver;
mod fill;
mod graph;
mod launch;
mod memory;
mod module;
mod progress;
mod queue;
mod ring_allocator;
mod spirv;
mod spirv_capabilities;
mod staging;
mod timer;
mod transfer_ring;

pub use device::VulkanDevice;
pub use graph::VulkanGraph;
pub use memory::VulkanBuffer;
pub use module::{VulkanKernel, VulkanModule};
pub use queue::VulkanQueue;

use std::sync::Arc;

use once_cell::sync::OnceCell;
use runtime_core::backend::{Backend, Level, LinkedBackend, Log, OpenDevices, OptionSpec, Source};
use runtime_core::code::CompiledCode;
use runtime_core::{DeviceInfo, Error, ErrorKind, Options, Result};

use device_state::DeviceState;
use driver::{Instance, LogicalDevice};

/// The backend's state.
#[derive(Debug)]
pub struct Vulkan {
    log: Log,
    instance: OnceCell<Arc<Instance>>,
    open: OpenDevices<u32, DeviceState>,
}

impl Vulkan {
    fn instance(&self) -> Result<&Arc<Instance>> {
        self.instance.get_or_try_init(|| Instance::open(self.log))
    }
}

// SAFETY: buffers are driver objects, and progress is the value of a timeline semaphore.
#[allow(unsafe_code, reason = "guarantees that the backend is sound")]
unsafe impl Backend for Vulkan {
    const NAME: &'static str = "vulkan";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = VulkanDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log, instance: OnceCell::new(), open: OpenDevices::default() })
    }

    fn options() -> Vec<OptionSpec> {
        device::options().into_iter().chain(module::options()).collect()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let instance = self.instance()?;
        let found = instance.physical_devices()?;
        if found.is_empty() {
            let message = "no driver has a device; check VK_DRIVER_FILES, `vulkaninfo`, and the permissions of /dev/dri";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok((0..)
            .zip(found)
            .map(|(index, physical)| describe::device(index, &physical.query_caps(instance)))
            .collect())
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<VulkanDevice> {
        let staging = device::STAGING.parse(options)?;
        let instance = self.instance()?;
        let found = instance.physical_devices()?;
        let Some(&physical) = found.get(index as usize).filter(|_| sub.is_none()) else {
            let last = found.len().saturating_sub(1);
            let message = format!("there are only vulkan:0 to vulkan:{last}, without sub-devices");
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        let is_usable = |open: &DeviceState| Ok(open.logical.check_alive().is_ok());
        let shared = self.open.get_or_open(index, is_usable, || {
            let caps = physical.query_caps(instance);
            if let Some(reason) = &caps.unavailable_reason {
                return Err(Error::new(ErrorKind::Unavailable, format!("{}: {reason}", caps.name)));
            }
            let logical = LogicalDevice::open(instance, physical, caps, device::parse_options(options))?;
            self.log.write(Level::Debug, "vulkan", &format!("opened device {index}"));
            Ok(DeviceState::new(logical, staging))
        })?;
        Ok(VulkanDevice::new(shared))
    }

    fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        compile::architecture(architecture)
    }

    fn compile_for(&self, architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
        compile::for_architecture(architecture, source)
    }
}

/// This backend, for programs that link it in.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Vulkan>()
}
