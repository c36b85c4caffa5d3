//! Anything that has a Vulkan driver as a device, `vulkan:0`, `vulkan:1`, …: GPUs of every vendor, and processors.
//!
//! The loader is loaded, and asks its drivers, when devices are listed or opened for the first time. Where there is no
//! loader, no driver or a broken one, the device list says so and what to do about it; a device below Vulkan 1.2, or
//! without timeline semaphores, is listed with the reason. `VK_DRIVER_FILES` is honoured by the loader itself.
//! `RUNTIME_VULKAN_VALIDATION=1` turns on Khronos' validation layer, whose messages go to the log as
//! `vulkan::validation`; programs with raised rights ignore it.
//!
//! # Memory
//!
//! | space | what it is |
//! | --- | --- |
//! | `device` | the device's own |
//! | `pinned` | the host's, cached, which the device reads in place |
//! | `shared` | the device's own, where the program reaches it: not on every device |
//!
//! A kernel reaches at most `binding_bytes` bytes (a property of the device) of one tensor: of a larger one it is
//! launched on views. A view that begins where the device can bind none is copied for the launch, and back.
//!
//! # Queues
//!
//! Queues share those of the driver's best family for compute, each on the one with the fewest; large transfers go by a
//! family that does nothing else, where there is one. Priorities are ignored: the driver takes them for whole queues of its
//! own, when the device is opened. Queues on one queue of the driver run one behind the other where the driver sees to it
//! (lavapipe has one queue, and does).
//!
//! A program may exit with work in flight. On a processor its end waits for that, five seconds at most, since the driver's
//! compiler may be at it; under the validation layer a minute at most. Whatever is submitted from then on is refused.
//!
//! A large transfer of pageable memory is made by threads, which wait for what comes before it. What is submitted to its
//! queue behind it waits on the submitting thread until it has ended, and so does a submission elsewhere that depends on
//! that queue.
//!
//! # Code
//!
//! `spirv-shader`, with entry points for compute.
//!
//! | argument | what the kernel takes |
//! | --- | --- |
//! | tensor | a storage buffer: set 0, binding 0, 1, … in the order of the tensors |
//! | scalar, by-value bytes | a member of the push constants, in order |
//! | work-group memory | nothing: its size is a specialisation constant's |
//!
//! What the driver has compiled is kept in the user's cache folder, a file per device, for the next program
//! (`pipeline_cache`); programs with raised rights keep nothing.
//!
//! The size of a group is the code's. Specialisation constants get values by the load option `constant`.
//!
//! Every access to memory is checked by portable code itself, and native code is vouched for by whoever loads it: so the
//! device checks nothing, unless the option `robust` asks for it.

mod builtin;
mod cache;
mod capabilities;
mod context;
mod convert;
mod describe;
mod device;
mod driver;
mod fill;
mod graph;
mod launch;
mod lending;
mod memory;
mod module;
mod progress;
mod queue;
mod record;
mod ring;
mod slots;
mod spirv;
mod staging;
mod timer;

pub use device::VulkanDevice;
pub use graph::VulkanGraph;
pub use memory::VulkanBuffer;
pub use module::{VulkanKernel, VulkanModule};
pub use queue::VulkanQueue;

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use runtime_core::backend::{Backend, Level, LinkedBackend, Log};
use runtime_core::{DeviceInfo, Error, ErrorKind, OptionSpec, Options, Result};

use context::Context;
use driver::{Instance, Logical};
use staging::Tuning;

/// The backend's state.
#[derive(Debug)]
pub struct Vulkan {
    log: Log,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    instance: Option<Arc<Instance>>,
    /// The open devices.
    open: Vec<(u32, Weak<Context>)>,
}

impl State {
    fn instance(&mut self, log: Log) -> Result<Arc<Instance>> {
        if let Some(instance) = &self.instance {
            return Ok(Arc::clone(instance));
        }
        Ok(Arc::clone(self.instance.insert(Instance::open(log)?)))
    }
}

// SAFETY: buffers are objects of the driver, and progress is what its timeline semaphores say.
#[allow(unsafe_code, reason = "vouches for the backend")]
unsafe impl Backend for Vulkan {
    const NAME: &'static str = "vulkan";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = VulkanDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log, state: Mutex::default() })
    }

    fn options() -> Vec<OptionSpec> {
        device::options().into_iter().chain(staging::options()).chain(module::options()).collect()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let instance = self.state.lock().instance(self.log)?;
        let found = instance.physical()?;
        if found.is_empty() {
            let message =
                "no driver has a device; see VK_DRIVER_FILES, `vulkaninfo`, and the permissions of /dev/dri";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok((0..)
            .zip(found)
            .map(|(index, physical)| describe::device(index, &physical.facts(&instance)))
            .collect())
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<VulkanDevice> {
        let tuning = Tuning::of(options)?;
        let mut state = self.state.lock();
        let instance = state.instance(self.log)?;
        let found = instance.physical()?;
        let Some(&physical) = found.get(index as usize).filter(|_| sub.is_none()) else {
            let last = found.len().saturating_sub(1);
            let message = format!("there are vulkan:0 to vulkan:{last}, without sub-devices");
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        state.open.retain(|(_, context)| context.strong_count() > 0);
        let open = state.open.iter().find(|(known, _)| *known == index);
        if let Some(context) = open.and_then(|(_, context)| context.upgrade())
            && context.logical.check_alive().is_ok()
        {
            return Ok(VulkanDevice::new(context));
        }
        let facts = physical.facts(&instance);
        if let Some(reason) = &facts.unusable {
            return Err(Error::new(ErrorKind::Unavailable, format!("{}: {reason}", facts.name)));
        }
        let logical = Logical::open(&instance, physical, facts, device::choices(options))?;
        let context = Arc::new(Context::new(logical, tuning));
        state.open.retain(|(known, _)| *known != index);
        state.open.push((index, Arc::downgrade(&context)));
        self.log.write(Level::Debug, "vulkan", &format!("opened device {index}"));
        Ok(VulkanDevice::new(context))
    }
}

/// This backend, to register it in a program that links it in.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Vulkan>()
}
