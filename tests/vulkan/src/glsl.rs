//! Shaders in GLSL, and the compiler that turns them into SPIR-V.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use test_process::finish;

const COMPILER: &str = "glslangValidator";
const DEADLINE: Duration = Duration::from_secs(60);

/// Whether the compiler is installed.
///
/// # Errors
/// It is not.
pub fn glslang() -> Result<(), String> {
    let mut command = Command::new(COMPILER);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("there is no {COMPILER}; on Debian: glslang-tools")),
    }
}

/// Compiles a shader, told some options more, to a file of its name in `folder`.
///
/// # Errors
/// What the compiler says.
pub fn compile_glsl(source: &Path, options: &[&str], folder: &Path) -> Result<(), String> {
    let name = source.file_stem().unwrap_or_default();
    let mut command = Command::new(COMPILER);
    command.args(["-V", "--target-env", "vulkan1.2"]).args(options).arg("-o");
    command.arg(folder.join(name).with_extension("spv")).arg(source);
    let ended = finish(&mut command, DEADLINE)?;
    if ended.status.success() { Ok(()) } else { Err(ended.text()) }
}
