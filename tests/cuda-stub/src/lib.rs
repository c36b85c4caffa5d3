//! Builds stubs of the NVIDIA driver, NVML, NVRTC and nvJitLink from the C sources in this folder, and runs processes that load them.
//!
//! The dynamic loader reads `LD_LIBRARY_PATH` at process start, so the stub is only visible to a process started with it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags of the C compiler.
const FLAGS: [&str; 8] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread"];
/// Set in a process that loads the stub, to the part of the program that started it.
const ACTIVE: &str = "STUB_CUDA_ACTIVE";

/// Preprocessor definition for [`build`]: a file that is not a library takes the place of NVML.
pub const BROKEN_NVML: &str = "BROKEN_NVML";

/// Builds the stubs of the driver and of NVML in `folder`, with `defines` (`-D`), and the NVRTC stub next to them.
///
/// # Errors
/// The compiler's output, or that it cannot be started.
pub fn build(folder: &Path, defines: &[&str]) -> Result<(), String> {
    compile(
        &folder.join("libcuda.so.1"),
        &["cuda.c", "options.c", "events.c", "graphs.c", "kernels.c", "benchmark.c", "assembler.c", "link.c"],
        defines,
    )?;
    let nvml = folder.join("libnvidia-ml.so.1");
    if defines.contains(&BROKEN_NVML) {
        std::fs::write(&nvml, "not a library").map_err(|error| error.to_string())?;
    } else {
        compile(&nvml, &["nvml.c", "options.c"], defines)?;
    }
    compile(&folder.join("libnvrtc.so.12"), &["nvrtc.c", "assembler.c"], &[])
}

/// Builds the stub of nvJitLink in `folder`, with `defines` (`-D`).
///
/// # Errors
/// The compiler's output, or that it cannot be started.
pub fn build_nvjitlink(folder: &Path, defines: &[&str]) -> Result<(), String> {
    compile(&folder.join("libnvJitLink.so.12"), &["nvjitlink.c", "assembler.c"], defines)
}

/// Builds the stub of CUPTI in `folder`, with `defines` (`-D`).
///
/// # Errors
/// The compiler's output, or that it cannot be started.
pub fn build_cupti(folder: &Path, defines: &[&str]) -> Result<(), String> {
    compile(&folder.join("libcupti.so.12"), &["cupti.c"], defines)
}

fn compile(library: &Path, sources: &[&str], defines: &[&str]) -> Result<(), String> {
    let output = Command::new("cc")
        .args(FLAGS)
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg("-o")
        .arg(library)
        .args(sources.iter().map(|source| Path::new(env!("CARGO_MANIFEST_DIR")).join(source)))
        .output()
        .map_err(|error| format!("cc: {error}; install a C compiler (Debian: apt-get install gcc)"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The part of this program that started this process with [`rerun_with_stub`]; it loads the stub.
#[must_use]
pub fn child_part() -> Option<String> {
    std::env::var(ACTIVE).ok()
}

/// This program with the same arguments, as a child of this part that loads the stub in `folder` with `options` (see `cuda.c`).
///
/// # Errors
/// The path of this program is unknown.
pub fn rerun_with_stub(part: &str, folder: &Path, options: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(std::env::args_os().skip(1))
        .env("LD_LIBRARY_PATH", folder)
        .env("STUB_CUDA", options)
        .env(ACTIVE, part)
        // Code that the stubs compile is none for a real device, and each process is to compile it.
        .env("RUNTIME_CACHE", "off")
        .env_remove("CUDA_HOME")
        .env_remove("CUDA_PATH");
    Ok(command)
}

/// Path of the backend's library, which cargo builds with the workspace.
///
/// # Errors
/// It has not been built.
pub fn plugin_path() -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let folders = executable.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("libruntime_cuda.so")).find(|path| path.is_file());
    found.ok_or_else(|| "libruntime_cuda.so is not built; run `cargo build -p runtime-gpu-plugin`".to_owned())
}
