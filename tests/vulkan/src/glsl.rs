//! Compiles GLSL shaders to SPIR-V.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use test_process::finish;

const COMPILER: &str = "glslangValidator";
const DEADLINE: Duration = Duration::from_secs(60);

/// Checks that the compiler is installed.
///
/// # Errors
/// It is not.
pub fn require_glslang() -> Result<(), String> {
    let mut command = Command::new(COMPILER);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{COMPILER} is not installed; on Debian: glslang-tools")),
    }
}

/// Compiles a shader, with additional options, to a file of the same name in `folder`.
///
/// # Errors
/// The compiler's output.
pub fn compile_glsl(source: &Path, options: &[&str], folder: &Path) -> Result<(), String> {
    let name = source.file_stem().unwrap_or_default();
    let mut command = Command::new(COMPILER);
    command.args(["-V", "--target-env", "vulkan1.2"]).args(options).arg("-o");
    command.arg(folder.join(name).with_extension("spv")).arg(source);
    let ended = finish(&mut command, DEADLINE)?;
    if ended.status.success() { Ok(()) } else { Err(ended.text()) }
}
