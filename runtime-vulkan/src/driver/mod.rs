//! The only module that uses `ash`: wraps the loader, the instance and their objects in types of the backend.

#![allow(unsafe_code, reason = "calls the driver")]

mod barrier;
mod command_buffer;
mod debug_messenger;
mod descriptor_sets;
mod device_caps;
mod enabled_features;
mod logical_device;
mod memory;
mod memory_pool;
mod native;
mod physical_device;
mod pipeline;
mod pipeline_cache;
mod process_exit;
mod query_pool;
mod semaphore;
mod shared_queue;
mod status;
mod submission;

pub(crate) use command_buffer::{CommandBuffer, CommandPool};
pub(crate) use device_caps::{DeviceCaps, Version};
pub(crate) use logical_device::{DeviceOptions, LogicalDevice};
pub(crate) use memory::{Memory, MemoryLocation};
pub(crate) use physical_device::PhysicalDevice;
pub(crate) use pipeline::{Binding, Pipeline, Shader};
pub(crate) use pipeline_cache::PipelineCache;
pub(crate) use process_exit::{wait_at_exit, warm_up_compiler};
pub(crate) use query_pool::QueryPool;
pub(crate) use semaphore::Semaphore;
pub(crate) use shared_queue::SharedQueue;
pub(crate) use submission::Submission;

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use ash::vk;
use once_cell::sync::OnceCell;
use runtime_core::backend::{Log, is_privileged, open_library};
use runtime_core::{Error, ErrorKind, Result};

use debug_messenger::DebugMessenger;

/// Oldest supported version of the loader and of a device.
pub(crate) const MIN_VERSION: Version = Version { major: 1, minor: 2, patch: 0 };
/// The loader's file name, as `ash` has it.
const LIBRARY: &str = "libvulkan.so.1";
/// Enables the validation layer.
const VALIDATION_VARIABLE: &str = "RUNTIME_VULKAN_VALIDATION";
const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The loader's functions. Loaded once per process, never unloaded.
fn loader() -> Result<&'static ash::Entry> {
    static LOADED: OnceCell<ash::Entry> = OnceCell::new();
    LOADED.get_or_try_init(open_loader)
}

fn open_loader() -> Result<ash::Entry> {
    // SAFETY: the Vulkan loader may be loaded at any time, on any thread, and is never unloaded.
    let opened = open_library(Path::new(LIBRARY), |path| unsafe { ash::Entry::load_from(path) });
    opened.map_err(|error| {
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "no Vulkan loader: {}; install it (Debian: libvulkan1) and a driver for the device",
                error.message()
            ),
        )
    })
}

/// A `VkInstance`, which has every driver that the loader found.
pub(crate) struct Instance {
    entry: &'static ash::Entry,
    handle: ash::Instance,
    messenger: Option<DebugMessenger>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("handle", &self.handle.handle()).finish_non_exhaustive()
    }
}

impl Instance {
    /// Creates an instance.
    ///
    /// # Errors
    /// `Unavailable`, with reason and remedy, if the loader is missing or too old, or no driver is installed.
    pub(crate) fn open(log: Log) -> Result<Arc<Self>> {
        let entry = loader()?;
        check_version(entry)?;
        let wanted = !is_privileged() && std::env::var(VALIDATION_VARIABLE).is_ok_and(|value| value == "1");
        let validated = wanted && has_layer(entry, VALIDATION_LAYER);
        if wanted && !validated {
            let message = format!(
                "{VALIDATION_VARIABLE} is set, but the layer is not installed; install it (Debian: vulkan-validationlayers)"
            );
            log.write(runtime_core::backend::Level::Warning, "vulkan", &message);
        }
        let handle = create(entry, validated)?;
        let messenger = validated.then(|| DebugMessenger::new(entry, &handle, log)).transpose();
        match messenger {
            Ok(messenger) => Ok(Arc::new(Self { entry, handle, messenger })),
            Err(error) => {
                // SAFETY: just created, without child objects.
                unsafe { handle.destroy_instance(None) };
                Err(error)
            }
        }
    }

    /// All devices of all drivers, in the loader's order.
    ///
    /// # Errors
    /// `Unavailable` if a driver cannot list its devices.
    pub(crate) fn physical_devices(&self) -> Result<Vec<PhysicalDevice>> {
        // SAFETY: the instance is alive.
        let found = unsafe { self.handle.enumerate_physical_devices() };
        let found = found.map_err(|code| unavailable("vkEnumeratePhysicalDevices", code))?;
        Ok(found.into_iter().map(PhysicalDevice).collect())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.messenger.take());
        // SAFETY: every child object keeps the instance alive, so none is left.
        unsafe { self.handle.destroy_instance(None) };
    }
}

fn check_version(entry: &ash::Entry) -> Result<()> {
    // SAFETY: the loader is loaded.
    let version = unsafe { entry.try_enumerate_instance_version() };
    let version = version.map_err(|code| unavailable("vkEnumerateInstanceVersion", code))?;
    let version = Version::from_packed(version.unwrap_or(vk::API_VERSION_1_0));
    if version < MIN_VERSION {
        let message =
            format!("the Vulkan loader has version {version}, but {MIN_VERSION} is required; update it");
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    Ok(())
}

fn has_layer(entry: &ash::Entry, name: &CStr) -> bool {
    // SAFETY: the loader is loaded.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }.unwrap_or_default();
    layers.iter().any(|layer| layer.layer_name_as_c_str() == Ok(name))
}

fn has_extension(entry: &ash::Entry, name: &CStr) -> bool {
    // SAFETY: the loader is loaded.
    let extensions = unsafe { entry.enumerate_instance_extension_properties(None) }.unwrap_or_default();
    extensions.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

fn create(entry: &ash::Entry, validated: bool) -> Result<ash::Instance> {
    let application = vk::ApplicationInfo::default().engine_name(c"runtime").api_version(vk::API_VERSION_1_3);
    let mut extensions = Vec::new();
    let mut flags = vk::InstanceCreateFlags::empty();
    // Non-conformant drivers, such as MoltenVK, are listed only with this flag.
    if has_extension(entry, ash::khr::portability_enumeration::NAME) {
        extensions.push(ash::khr::portability_enumeration::NAME.as_ptr());
        flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
    }
    let mut layers = Vec::new();
    let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
    let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
    let mut info = vk::InstanceCreateInfo::default().application_info(&application).flags(flags);
    if validated {
        layers.push(VALIDATION_LAYER.as_ptr());
        // The layer provides both extensions.
        extensions.push(ash::ext::debug_utils::NAME.as_ptr());
        extensions.push(ash::ext::validation_features::NAME.as_ptr());
        info = info.push_next(&mut features);
    }
    let info = info.enabled_layer_names(&layers).enabled_extension_names(&extensions);
    // SAFETY: the loader is loaded, and `info` outlives the call.
    unsafe { entry.create_instance(&info, None) }.map_err(|code| unavailable("vkCreateInstance", code))
}

/// An error that makes Vulkan unavailable altogether, with a remedy.
fn unavailable(function: &str, code: vk::Result) -> Error {
    let remedy = match code {
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            "no driver was found; install one, or check VK_DRIVER_FILES and `vulkaninfo`"
        }
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            "a driver is broken or cannot access its device; check VK_DRIVER_FILES, `vulkaninfo`, and the permissions of /dev/dri"
        }
        vk::Result::ERROR_LAYER_NOT_PRESENT | vk::Result::ERROR_EXTENSION_NOT_PRESENT => {
            "a layer or extension that the environment requests is missing; check VK_INSTANCE_LAYERS"
        }
        _ => "check `vulkaninfo`; the driver may need to be reinstalled",
    };
    Error::new(ErrorKind::Unavailable, remedy)
        .with_driver(status::name(code), i64::from(code.as_raw()))
        .in_operation(function)
}
