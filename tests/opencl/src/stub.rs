//! A stub of the OpenCL loader that injects failures, built from `stub/loader.c`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::IcdFolder;

/// Compiler flags.
const FLAGS: [&str; 8] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-pthread"];

/// Builds the loader in `folder`.
///
/// # Errors
/// The compiler's messages, or that there is no compiler.
pub fn build(folder: &Path) -> Result<PathBuf, String> {
    compile(Path::new(env!("CARGO_MANIFEST_DIR")).join("stub/loader.c"), &folder.join("libOpenCL-stub.so"))
}

/// Builds a library without OpenCL functions.
///
/// # Errors
/// As [`build`].
pub fn build_empty(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let source = folder.join("empty.c");
    std::fs::write(&source, "int unused;\n").map_err(|error| error.to_string())?;
    compile(source, &folder.join(name))
}

fn compile(source: PathBuf, library: &Path) -> Result<PathBuf, String> {
    let output = Command::new("cc").args(FLAGS).arg("-o").arg(library).arg(source).output();
    let output =
        output.map_err(|error| format!("cc: {error}; install a C compiler (Debian: apt-get install gcc)"))?;
    let messages = || String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(library.to_owned()) } else { Err(messages()) }
}

/// A command that sees the drivers of `icd_folder` through the stub `library`, which follows `directives`.
///
/// # Errors
/// The backend is not built.
pub fn command(
    icd_folder: &IcdFolder,
    program: &Path,
    library: &Path,
    directives: &str,
) -> Result<Command, String> {
    let mut command = icd_folder.command(program)?;
    command.env("OPENCL_DYLIB_PATH", library).env("STUB_OPENCL", directives);
    Ok(command)
}
