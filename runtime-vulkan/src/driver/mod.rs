//! The one module that knows `ash`: the loader, an instance, and what is made of it, as types of our own.

#![allow(unsafe_code, reason = "calls the driver")]

mod barriers;
mod cache;
mod commands;
mod facts;
mod farewell;
mod lane;
mod logical;
mod memory;
mod messages;
mod physical;
mod pipeline;
mod semaphore;
mod stamps;
mod status;
mod wanted;

pub(crate) use commands::{Commands, Pool};
pub(crate) use facts::{Facts, Version};
pub(crate) use farewell::before_code;
pub(crate) use lane::{Batch, Lane};
pub(crate) use logical::{Choices, Logical};
pub(crate) use memory::{Home, Memory};
pub(crate) use physical::Physical;
pub(crate) use pipeline::{Binding, Pipeline, Shader, Specialised};
pub(crate) use semaphore::Semaphore;
pub(crate) use stamps::Stamps;

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;
use runtime_core::backend::{Log, is_privileged, open_library};
use runtime_core::{Error, ErrorKind, Result};

use messages::Messenger;

/// The oldest version of the loader and of a device that is of use.
pub(crate) const FLOOR: Version = Version { major: 1, minor: 2, patch: 0 };
/// The loader, as `ash` looks for it.
const LIBRARY: &str = if cfg!(target_os = "macos") { "libvulkan.dylib" } else { "libvulkan.so.1" };
/// Asks for the validation layer.
const VALIDATION: &str = "RUNTIME_VULKAN_VALIDATION";
const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The loader's functions. Loaded once per process and never unloaded.
fn loader() -> Result<&'static ash::Entry> {
    static LOADED: Mutex<Option<&'static ash::Entry>> = Mutex::new(None);
    let mut loaded = LOADED.lock();
    if let Some(entry) = *loaded {
        return Ok(entry);
    }
    // SAFETY: the Vulkan loader may be loaded at any time, on any thread; it is never unloaded.
    let opened = open_library(Path::new(LIBRARY), |path| unsafe { ash::Entry::load_from(path) });
    let entry = opened.map_err(|error| {
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "no Vulkan loader: {}; install it (Debian: libvulkan1) and a driver for the device",
                error.message()
            ),
        )
    })?;
    Ok(*loaded.insert(Box::leak(Box::new(entry))))
}

/// An instance of the loader, with every driver that it found.
pub(crate) struct Instance {
    entry: &'static ash::Entry,
    handle: ash::Instance,
    messenger: Option<Messenger>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("handle", &self.handle.handle()).finish_non_exhaustive()
    }
}

impl Instance {
    /// Makes an instance.
    ///
    /// # Errors
    /// `Unavailable`, with the reason and the remedy, where there is no loader, an old one, or no driver.
    pub(crate) fn open(log: Log) -> Result<Arc<Self>> {
        let entry = loader()?;
        check_version(entry)?;
        let wanted = !is_privileged() && std::env::var(VALIDATION).is_ok_and(|value| value == "1");
        let validated = wanted && has_layer(entry, VALIDATION_LAYER);
        if wanted && !validated {
            let message = format!(
                "{VALIDATION} is set, but the layer is missing; install it (Debian: vulkan-validationlayers)"
            );
            log.write(runtime_core::backend::Level::Warning, "vulkan", &message);
        }
        let handle = create(entry, validated)?;
        let messenger = validated.then(|| Messenger::new(entry, &handle, log)).transpose();
        match messenger {
            Ok(messenger) => Ok(Arc::new(Self { entry, handle, messenger })),
            Err(error) => {
                // SAFETY: just made, and nothing was made of it.
                unsafe { handle.destroy_instance(None) };
                Err(error)
            }
        }
    }

    /// Every device of every driver, in the loader's order.
    ///
    /// # Errors
    /// `Unavailable` where a driver cannot be asked.
    pub(crate) fn physical(&self) -> Result<Vec<Physical>> {
        // SAFETY: the instance is alive.
        let found = unsafe { self.handle.enumerate_physical_devices() };
        let found = found.map_err(|code| unavailable("vkEnumeratePhysicalDevices", code))?;
        Ok(found.into_iter().map(Physical).collect())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.messenger.take());
        // SAFETY: whatever was made of the instance holds it, so nothing is left.
        unsafe { self.handle.destroy_instance(None) };
    }
}

fn check_version(entry: &ash::Entry) -> Result<()> {
    // SAFETY: the loader is loaded.
    let version = unsafe { entry.try_enumerate_instance_version() };
    let version = version.map_err(|code| unavailable("vkEnumerateInstanceVersion", code))?;
    let version = Version::of(version.unwrap_or(vk::API_VERSION_1_0));
    if version < FLOOR {
        let message = format!("the Vulkan loader is of version {version}, {FLOOR} is needed; update it");
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
    // Drivers that leave out part of Vulkan, MoltenVK among them, are only listed to whoever asks.
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
        // The layer itself has both extensions.
        extensions.push(ash::ext::debug_utils::NAME.as_ptr());
        extensions.push(ash::ext::validation_features::NAME.as_ptr());
        info = info.push_next(&mut features);
    }
    let info = info.enabled_layer_names(&layers).enabled_extension_names(&extensions);
    // SAFETY: the loader is loaded, and the description lives during the call.
    unsafe { entry.create_instance(&info, None) }.map_err(|code| unavailable("vkCreateInstance", code))
}

/// What keeps Vulkan from being used at all.
fn unavailable(function: &str, code: vk::Result) -> Error {
    let remedy = match code {
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            "no driver was found; install one, and see VK_DRIVER_FILES and `vulkaninfo`"
        }
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            "a driver is broken or cannot reach its device; see VK_DRIVER_FILES, `vulkaninfo`, and the permissions of /dev/dri"
        }
        vk::Result::ERROR_LAYER_NOT_PRESENT | vk::Result::ERROR_EXTENSION_NOT_PRESENT => {
            "a layer or extension that the environment asks for is missing; see VK_INSTANCE_LAYERS"
        }
        _ => "see `vulkaninfo`; the driver may need to be reinstalled",
    };
    Error::new(ErrorKind::Unavailable, remedy)
        .with_driver(status::name(code), i64::from(code.as_raw()))
        .in_operation(function)
}
