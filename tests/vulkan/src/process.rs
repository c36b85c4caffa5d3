//! Programs that see the drivers they are told to.

use std::path::Path;
use std::process::Command;

/// Makes the backend turn the validation layer on.
pub const VALIDATION: &str = "RUNTIME_VULKAN_VALIDATION";
/// Set in a program that another one of these tests started.
const MARK: &str = "VULKAN_TESTS_AGAIN";

/// Whether this program was started by [`again`].
#[must_use]
pub fn is_again() -> bool {
    std::env::var_os(MARK).is_some()
}

/// This program again, with the arguments that it has.
///
/// # Errors
/// The path of this program is not known.
pub fn again() -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(MARK, "1");
    Ok(command)
}

/// Lets a program see this driver, no other one, and no layer that it does not ask for.
pub fn on<'a>(command: &'a mut Command, manifest: &Path) -> &'a mut Command {
    // The older name is for loaders before 1.3.207.
    command.env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
    command.env("VK_LOADER_LAYERS_DISABLE", "*MESA*,*INTEL*").env_remove("VK_INSTANCE_LAYERS");
    command.env_remove("RUNTIME_REQUIRE").env_remove("RUNTIME_BACKENDS").env_remove("RUNTIME_BACKEND_PATH")
}

/// Puts the validation layer, with synchronization validation, between a program and its driver, whatever the program
/// does: what it says is in the file `log` of `folder` afterwards.
///
/// # Errors
/// The layer's settings cannot be written.
pub fn watched<'a>(command: &'a mut Command, folder: &Path, log: &str) -> std::io::Result<&'a mut Command> {
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
