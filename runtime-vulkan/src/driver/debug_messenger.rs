//! Forwards messages of the validation layer to the log (`VK_EXT_debug_utils`).

use std::ffi::{CStr, c_void};

use ash::vk;
use runtime_core::Result;
use runtime_core::backend::{Level, Log};

use super::status;

/// A `VkDebugUtilsMessengerEXT`.
pub(super) struct DebugMessenger {
    calls: ash::ext::debug_utils::Instance,
    handle: vk::DebugUtilsMessengerEXT,
    /// The callback's user data.
    _log: Box<Log>,
}

impl DebugMessenger {
    /// Starts forwarding messages.
    ///
    /// # Errors
    /// The driver's error.
    pub(super) fn new(entry: &ash::Entry, instance: &ash::Instance, log: Log) -> Result<Self> {
        use vk::DebugUtilsMessageSeverityFlagsEXT as Severity;
        use vk::DebugUtilsMessageTypeFlagsEXT as Type;
        let calls = ash::ext::debug_utils::Instance::new(entry, instance);
        let mut log = Box::new(log);
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(Severity::ERROR | Severity::WARNING)
            .message_type(Type::VALIDATION | Type::PERFORMANCE | Type::GENERAL)
            .pfn_user_callback(Some(log_message))
            .user_data((&raw mut *log).cast());
        // SAFETY: the instance has the extension, and the log lives as long as the messenger.
        let created = unsafe { calls.create_debug_utils_messenger(&info, None) };
        let handle = created.map_err(|code| status::error("vkCreateDebugUtilsMessengerEXT", code))?;
        Ok(Self { calls, handle, _log: log })
    }
}

impl Drop for DebugMessenger {
    fn drop(&mut self) {
        // SAFETY: ours, and the instance is still alive.
        unsafe { self.calls.destroy_debug_utils_messenger(self.handle, None) };
    }
}

unsafe extern "system" fn log_message(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    log: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: `DebugMessenger::new` passed a log that outlives the messenger.
    let log = unsafe { log.cast::<Log>().as_ref() };
    // SAFETY: the layer passes null or data that outlive the call.
    let data = unsafe { data.as_ref() };
    let (Some(log), Some(data)) = (log, data) else { return vk::FALSE };
    let (id, words) = (text(data.p_message_id_name), text(data.p_message));
    // The loader's reports about drivers that it skips are not errors of this program.
    let general = types == vk::DebugUtilsMessageTypeFlagsEXT::GENERAL;
    let level = match severity {
        _ if general => Level::Info,
        vk::DebugUtilsMessageSeverityFlagsEXT::ERROR => Level::Error,
        _ => Level::Warning,
    };
    let target = if general { "vulkan::loader" } else { "vulkan::validation" };
    log.write(level, target, &format!("{id}: {words}"));
    vk::FALSE
}

fn text(words: *const std::ffi::c_char) -> String {
    if words.is_null() {
        return String::new();
    }
    // SAFETY: not null; the layer's strings are null-terminated and outlive the call.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}
