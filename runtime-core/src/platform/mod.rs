//! What depends on the platform: names and places of libraries, sections of their files, hooks of the process.

#![allow(unsafe_code, reason = "asks the C library about the process")]

#[cfg(target_os = "linux")]
use std::ffi::CString;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[cfg(not(target_os = "macos"))]
mod elf;
#[cfg(target_os = "macos")]
mod macho;

#[cfg(not(target_os = "macos"))]
pub(crate) use elf::{check_library, check_library_file, manifest_section};
#[cfg(target_os = "macos")]
pub(crate) use macho::{check_library, check_library_file, manifest_section};

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
    (metadata.uid() == user() && metadata.mode() & 0o022 == 0).then_some(folder)
}

/// The user whose rights the process has.
pub(crate) fn user() -> u32 {
    // SAFETY: only reads the user of the process.
    unsafe { libc::geteuid() }
}

/// A file in `folder` without a name, which goes when it is closed unless [`name_file`] gives it one.
///
/// # Errors
/// What the system says, also where the file system has no such files.
#[cfg(target_os = "linux")]
pub(crate) fn nameless_file(folder: &Path) -> io::Result<File> {
    File::options().write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(folder)
}

/// Linux alone has nameless files.
#[cfg(not(target_os = "linux"))]
pub(crate) fn nameless_file(_folder: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives a nameless file a name that nobody has.
///
/// # Errors
/// What the system says: `AlreadyExists`, for one.
#[cfg(target_os = "linux")]
pub(crate) fn name_file(file: &File, path: &Path) -> io::Result<()> {
    let own = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both texts live during the call and end with a null byte.
    let result = unsafe { libc::linkat(here, own.as_ptr(), here, path.as_ptr(), follow) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Linux alone has nameless files.
#[cfg(not(target_os = "linux"))]
pub(crate) fn name_file(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether anybody on the machine may change the file or directory.
pub(crate) fn is_world_writable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o002 != 0
}

/// What tells a file from every other, whatever it is called.
pub(crate) fn file_identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Where the system's loader looks for a library by its name, as far as that is known: the user's list, then the usual
/// places.
pub(crate) fn library_directories() -> Vec<PathBuf> {
    let name = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    let listed = if is_privileged() { None } else { std::env::var_os(name) };
    let mut directories: Vec<_> = listed.iter().flat_map(std::env::split_paths).collect();
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    for root in ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"] {
        directories.extend([Path::new(root).join(&machine), PathBuf::from(root)]);
    }
    directories
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
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
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
