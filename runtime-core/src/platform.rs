//! What depends on the platform: names and places of libraries, sections of their files, hooks of the process.

#![allow(unsafe_code, reason = "asks the C library about the process")]

use std::fs::{DirBuilder, File, Metadata};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[cfg(not(target_os = "macos"))]
mod elf;
#[cfg(target_os = "macos")]
mod macho;

#[cfg(not(target_os = "macos"))]
pub(crate) use elf::manifest_section;
#[cfg(target_os = "macos")]
pub(crate) use macho::manifest_section;

const LIBRARY_PREFIX: &str = "libruntime_";
const LIBRARY_SUFFIX: &str = if cfg!(target_os = "macos") { ".dylib" } else { ".so" };

/// What the file name of a backend looks like, for messages.
pub(crate) const LIBRARY_PATTERN: &str =
    if cfg!(target_os = "macos") { "libruntime_<name>.dylib" } else { "libruntime_<name>.so" };

/// The `<name>` of `libruntime_<name>.so`; `None` for any other file.
pub(crate) fn backend_of_file(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_prefix(LIBRARY_PREFIX)?.strip_suffix(LIBRARY_SUFFIX)?;
    (!name.is_empty()).then_some(name)
}

/// Whether the process runs with more rights than the user who started it: then its environment is not believed.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_privileged() -> bool {
    // SAFETY: reads the auxiliary vector of the process, which Miri has not.
    !cfg!(miri) && unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Whether the process runs with more rights than the user who started it: then its environment is not believed.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn is_privileged() -> bool {
    // SAFETY: only reads the user of the process.
    let (user, effective_user) = (unsafe { libc::getuid() }, unsafe { libc::geteuid() });
    // SAFETY: only reads the group of the process.
    let (group, effective_group) = (unsafe { libc::getgid() }, unsafe { libc::getegid() });
    user != effective_user || group != effective_group
}

/// The folder in which a backend may keep files from one program to the next, under the user's cache folder; it is made for
/// this user alone. `None` if there is no such place, or if others own it or may write it.
#[must_use]
pub fn cache_folder(backend: &str) -> Option<PathBuf> {
    // A program with raised rights believes no environment, and must not use what its user wrote.
    if is_privileged() {
        return None;
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    let folder = caches.join("runtime").join(backend);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let metadata = folder.metadata().ok()?;
    // SAFETY: only reads the user of the process.
    let user = unsafe { libc::geteuid() };
    (metadata.uid() == user && metadata.mode() & 0o022 == 0).then_some(folder)
}

/// Whether anybody on the machine may change the file or directory.
pub(crate) fn is_world_writable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o002 != 0
}

/// What tells a file from every other, whatever it is called.
pub(crate) fn file_identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Where a user keeps backends, below the home directory.
pub(crate) const USER_DIRECTORY: &str = ".local/lib/runtime";

/// Where the system keeps backends, the administrator's directory first.
pub(crate) fn system_directories() -> Vec<PathBuf> {
    let mut directories = vec![PathBuf::from("/usr/local/lib/runtime"), PathBuf::from("/usr/lib/runtime")];
    if cfg!(target_os = "linux") {
        directories.push(format!("/usr/lib/{}-linux-gnu/runtime", std::env::consts::ARCH).into());
    }
    directories
}

/// Reads bytes at an offset of a file; threads may do so side by side.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Calls `hook` in every forked child, before `fork` returns there.
pub(crate) fn at_fork_in_child(hook: extern "C" fn()) {
    // Miri has no forks.
    if cfg!(miri) {
        return;
    }
    // SAFETY: the hook is a function of this library, which is never unloaded while it can run.
    unsafe { libc::pthread_atfork(None, None, Some(hook)) };
}

/// Calls `hook` when the process exits in an orderly way.
pub(crate) fn at_exit(hook: extern "C" fn()) {
    // Miri has no exit handlers.
    if cfg!(miri) {
        return;
    }
    // SAFETY: the hook is a function of this library.
    unsafe { libc::atexit(hook) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backends_have_a_backend_name() {
        assert_eq!(backend_of_file(Path::new("/x/libruntime_null.so")), Some("null"));
        for other in
            ["libruntime_.so", "libruntime_null.so.1", "libnull.so", "runtime_null.so", "libruntime_null.d"]
        {
            assert_eq!(backend_of_file(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn the_test_process_is_not_privileged() {
        assert!(!is_privileged());
    }
}
