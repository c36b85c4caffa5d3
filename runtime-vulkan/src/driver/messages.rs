//! Messages of the validation layer, on their way to the log.

use std::ffi::{CStr, c_void};

use ash::vk;
use runtime_core::Result;
use runtime_core::backend::{Level, Log};

use super::status;

/// Passes messages on as long as it lives.
pub(super) struct Messenger {
    calls: ash::ext::debug_utils::Instance,
    handle: vk::DebugUtilsMessengerEXT,
    /// What the layer hands back with each message.
    _log: Box<Log>,
}

impl Messenger {
    /// Starts passing messages on.
    pub(super) fn new(entry: &ash::Entry, instance: &ash::Instance, log: Log) -> Result<Self> {
        use vk::DebugUtilsMessageSeverityFlagsEXT as Severity;
        use vk::DebugUtilsMessageTypeFlagsEXT as Type;
        let calls = ash::ext::debug_utils::Instance::new(entry, instance);
        let mut log = Box::new(log);
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(Severity::ERROR | Severity::WARNING)
            .message_type(Type::VALIDATION | Type::PERFORMANCE | Type::GENERAL)
            .pfn_user_callback(Some(pass_on))
            .user_data((&raw mut *log).cast());
        // SAFETY: the instance has the extension, and the log lives as long as the messenger.
        let made = unsafe { calls.create_debug_utils_messenger(&info, None) };
        let handle = made.map_err(|code| status::error("vkCreateDebugUtilsMessengerEXT", code))?;
        Ok(Self { calls, handle, _log: log })
    }
}

impl Drop for Messenger {
    fn drop(&mut self) {
        // SAFETY: ours, and the instance is still alive.
        unsafe { self.calls.destroy_debug_utils_messenger(self.handle, None) };
    }
}

unsafe extern "system" fn pass_on(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    log: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: `Messenger::new` passed a log that outlives the messenger.
    let log = unsafe { log.cast::<Log>().as_ref() };
    // SAFETY: the layer passes null or data that lives during the call.
    let data = unsafe { data.as_ref() };
    let (Some(log), Some(data)) = (log, data) else { return vk::FALSE };
    let (id, words) = (text(data.p_message_id_name), text(data.p_message));
    // The loader reports on drivers that it leaves out, which is nobody's mistake here.
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
    // SAFETY: not null, and texts of the layer are terminated and live during the call.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}
