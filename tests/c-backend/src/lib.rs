//! Builds the C backend in this folder, and finds the programs that test it.
//!
//! The backend consists of the C files only. `docs/backends.md` explains it to vendors.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiler flags, besides the path of the header.
const FLAGS: [&str; 9] =
    ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-fvisibility=hidden", "-shared", "-fPIC", "-pthread"];

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The C files of the backend, `lib.c` first.
///
/// # Errors
/// If the folder cannot be read.
pub fn sources() -> std::io::Result<Vec<PathBuf>> {
    let entries: Result<Vec<_>, _> = std::fs::read_dir(env!("CARGO_MANIFEST_DIR"))?.collect();
    let mut sources: Vec<_> = entries?.into_iter().map(|entry| entry.path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort_by_key(|path| (!path.ends_with("lib.c"), path.clone()));
    Ok(sources)
}

/// Builds `sources` into `libruntime_<name>.so` in `folder`, with `defines` (`-D`), and returns its path.
///
/// # Errors
/// The compiler's output, or that there is no compiler.
pub fn build(folder: &Path, name: &str, sources: &[PathBuf], defines: &[&str]) -> Result<PathBuf, String> {
    let library = folder.join(format!("libruntime_{name}.so"));
    let output = Command::new("cc")
        .args(FLAGS)
        .args(["-g", "-I"])
        .arg(root().join("runtime-core/include"))
        .args(defines.iter().map(|define| format!("-D{define}")))
        .arg("-o")
        .arg(&library)
        .args(sources)
        .output()
        .map_err(|error| format!("cc: {error}; install a C compiler (Debian: apt-get install gcc)"))?;
    if !output.status.success() {
        return Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(library)
}

/// Builds the unmodified backend, `cdemo`.
///
/// # Errors
/// As [`build`].
pub fn build_as_it_is(folder: &Path) -> Result<PathBuf, String> {
    build(folder, "cdemo", &sources().map_err(|error| error.to_string())?, &[])
}

/// Builds the backend as a later minor version would export it, `cdemo-newer`: with `fixtures/newer.c` for `lib.c`.
///
/// # Errors
/// As [`build`].
pub fn build_newer(folder: &Path) -> Result<PathBuf, String> {
    let mut sources = sources().map_err(|error| error.to_string())?;
    sources[0] = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/newer.c");
    build(folder, "cdemo-newer", &sources, &["NAME=\"cdemo-newer\""])
}

/// Builds the backend with a single device that cannot be opened: `cout`.
///
/// # Errors
/// As [`build`].
pub fn build_unusable(folder: &Path) -> Result<PathBuf, String> {
    let own = |error: std::io::Error| error.to_string();
    let mut sources = sources().map_err(own)?;
    let device = sources.iter_mut().find(|path| path.ends_with("device.c")).ok_or("there is no device.c")?;
    let header = format!("\"{}/backend.h\"", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&*device).map_err(own)?;
    let text = text.replace("\"backend.h\"", &header).replace("{&usable, &unusable}", "{&unusable}");
    let text = text.replace("rt_DeviceInfo usable =", "rt_DeviceInfo usable __attribute__((unused)) =");
    *device = folder.join("device.c");
    std::fs::write(&*device, text.replace(".index = 1", ".index = 0")).map_err(own)?;
    build(folder, "cout", &sources, &["NAME=\"cout\""])
}

/// Builds the backend with a code format for which the suite has no kernels: `cown`.
///
/// # Errors
/// As [`build`].
pub fn build_with_own_format(folder: &Path) -> Result<PathBuf, String> {
    let sources = sources().map_err(|error| error.to_string())?;
    build(folder, "cown", &sources, &["NAME=\"cown\"", "FORMAT=\"own-text\""])
}

/// The folder with the programs and libraries of this test's build profile.
///
/// # Errors
/// If the path of the test is unknown.
pub fn profile_folder() -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    // target/<profile>/deps/<test>
    executable.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| "a test without a folder".to_owned())
}

/// A program of this workspace, built in the same profile as this test.
///
/// # Errors
/// If it has not been built, with the remedy.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let path = profile_folder()?.join(name);
    if !path.exists() {
        return Err(format!("{} is not there: run `cargo build --workspace` first", path.display()));
    }
    Ok(path)
}
