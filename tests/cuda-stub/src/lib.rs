//! Builds the stub of NVIDIA's driver and of NVRTC that lies in this folder, and starts programs that find it.
//!
//! The system's loader looks for libraries where `LD_LIBRARY_PATH` said when the program was started: whoever is to see the
//! stub is a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the compiler is told.
const FLAGS: [&str; 8] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread"];
/// Set in a process that sees the stub.
const MARK: &str = "STUB_CUDA_IS_HERE";

/// Builds a stub of the driver in `folder`, with `defines` (`-D`), and that of NVRTC beside it.
///
/// # Errors
/// The compiler's words, or that there is none.
pub fn build(folder: &Path, defines: &[&str]) -> Result<(), String> {
    compile(
        &folder.join("libcuda.so.1"),
        &["cuda.c", "events.c", "graphs.c", "kernels.c", "benchmark.c"],
        defines,
    )?;
    compile(&folder.join("libnvrtc.so.12"), &["nvrtc.c"], &[])
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

/// Whether this process sees a stub.
#[must_use]
pub fn is_here() -> bool {
    std::env::var_os(MARK).is_some()
}

/// This program again, with the arguments that it has, where it sees the stub in `folder`, which `words` tell what to do.
///
/// # Errors
/// The path of this program is not known.
pub fn again(folder: &Path, words: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(std::env::args_os().skip(1))
        .env("LD_LIBRARY_PATH", folder)
        .env("STUB_CUDA", words)
        .env(MARK, "1")
        .env_remove("CUDA_HOME")
        .env_remove("CUDA_PATH");
    Ok(command)
}

/// The backend's library, which cargo builds with the workspace.
///
/// # Errors
/// It is not there.
pub fn backend() -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let folders = executable.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("libruntime_cuda.so")).find(|path| path.is_file());
    found.ok_or_else(|| "libruntime_cuda.so is not built; run `cargo build -p runtime-gpu-plugin`".to_owned())
}
