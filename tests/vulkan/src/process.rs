//! Child processes that see a chosen driver.

use std::path::Path;
use std::process::Command;

/// Makes the backend enable the validation layer.
pub const VALIDATION_VARIABLE: &str = "RUNTIME_VULKAN_VALIDATION";
/// Set in child processes of these tests, to the part of the program that started them.
const CHILD_VARIABLE: &str = "VULKAN_TESTS_CHILD";

/// The part of this program that started this process with [`respawn`].
#[must_use]
pub fn child_part() -> Option<String> {
    std::env::var(CHILD_VARIABLE).ok()
}

/// A command that runs this executable again, with the same arguments, as a child of this part.
///
/// # Errors
/// The executable's path is unknown.
pub fn respawn(part: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(CHILD_VARIABLE, part);
    Ok(command)
}

/// Restricts a process to this driver, and to the layers that it requests.
pub fn use_driver<'a>(command: &'a mut Command, manifest: &Path) -> &'a mut Command {
    // Loaders before 1.3.207 read the second one.
    command.env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
    command.env("VK_LOADER_LAYERS_DISABLE", "*MESA*,*INTEL*").env_remove("VK_INSTANCE_LAYERS");
    // Each process is to compile its code.
    command.env("RUNTIME_CACHE", "off");
    command.env_remove("RUNTIME_REQUIRE").env_remove("RUNTIME_BACKENDS").env_remove("RUNTIME_BACKEND_PATH")
}

/// Forces the validation layer, with synchronization validation, onto a process, and writes its messages to the file `log` in
/// `folder`.
///
/// # Errors
/// The layer's settings cannot be written.
pub fn with_validation_log<'a>(
    command: &'a mut Command,
    folder: &Path,
    log: &str,
) -> std::io::Result<&'a mut Command> {
    let settings = folder.join(format!("{log}.settings"));
    let text = format!(
        "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n\
         khronos_validation.log_filename = {}\n\
         khronos_validation.report_flags = error,warn,perf\n\
         khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n",
        folder.join(log).display()
    );
    std::fs::write(&settings, text)?;
    Ok(command
        .env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")
        .env("VK_LAYER_SETTINGS_PATH", settings))
}
