//! Platform-specific code: library names and locations, sections of library files, process hooks, other programs.

#![allow(unsafe_code, reason = "calls the C library")]

use std::ffi::CString;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

mod elf;
pub(crate) mod program;
mod record_lock;
mod regular_file;
pub(crate) mod trust;

pub(crate) use elf::{check_library, check_library_file, manifest_section};
pub(crate) use record_lock::{try_lock_byte, unlock_byte};
pub use regular_file::open_regular_file;
pub(crate) use regular_file::read_regular_file;

const LIBRARY_PREFIX: &str = "libruntime_";
const LIBRARY_SUFFIX: &str = ".so";

/// File name pattern of backend libraries, for messages.
pub(crate) const LIBRARY_PATTERN: &str = "libruntime_<name>.so";

/// The `<name>` of `libruntime_<name>.so`; `None` for any other file.
pub(crate) fn backend_of_file(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_prefix(LIBRARY_PREFIX)?.strip_suffix(LIBRARY_SUFFIX)?;
    (!name.is_empty()).then_some(name)
}

/// Whether the process runs with elevated privileges (set-user-ID, set-group-ID or file capabilities). Its
/// environment is then not trusted.
#[must_use]
pub fn is_privileged() -> bool {
    // SAFETY: only reads the auxiliary vector, which Miri does not have.
    !cfg!(miri) && unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The value of an environment variable that names a library, a program or a folder; `None` in a process with elevated privileges,
/// whose user may have set it.
#[must_use]
pub fn trusted_variable(name: &str) -> Option<OsString> {
    if is_privileged() { None } else { std::env::var_os(name) }
}

/// The folder in which a backend may cache files between runs, below the user's cache folder. It is created
/// with access for this user only. `None` if there is no cache folder, or if other users own it or may write
/// to it.
#[must_use]
pub fn cache_folder(backend: &str) -> Option<PathBuf> {
    let caches = user_caches()?;
    let folder = caches.join("runtime").join(backend);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    trust::check_folder(&folder, trust::Owner::User).ok()
}

/// The folder of the user's caches; `None` if the environment names no absolute path, or in a process with elevated privileges,
/// which must not use files that its user wrote.
pub(crate) fn user_caches() -> Option<PathBuf> {
    let absolute = |name: &str| trusted_variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
}

/// The effective user ID of the process.
pub(crate) fn user() -> u32 {
    // SAFETY: only reads a user ID.
    unsafe { libc::geteuid() }
}

/// Creates an unnamed file in `folder`, which is deleted when it is closed unless [`name_file`] gives it a
/// name.
///
/// # Errors
/// Any I/O error, also if the file system does not support unnamed files.
pub(crate) fn nameless_file(folder: &Path) -> io::Result<File> {
    File::options().write(true).mode(0o666).custom_flags(libc::O_TMPFILE).open(folder)
}

/// Gives an unnamed file a new name.
///
/// # Errors
/// Any I/O error, such as `AlreadyExists`.
pub(crate) fn name_file(file: &File, path: &Path) -> io::Result<()> {
    let own = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: both strings outlive the call and are NUL-terminated.
    let result = unsafe { libc::linkat(here, own.as_ptr(), here, path.as_ptr(), follow) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Device and inode: identifies a file regardless of its path.
pub(crate) fn file_identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The directories that the system's loader is known to search for a library name: `LD_LIBRARY_PATH`, then
/// the default directories.
pub(crate) fn library_directories() -> Vec<PathBuf> {
    let listed = trusted_variable("LD_LIBRARY_PATH");
    let mut directories: Vec<_> = listed.iter().flat_map(std::env::split_paths).collect();
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    for root in ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"] {
        directories.extend([Path::new(root).join(&machine), PathBuf::from(root)]);
    }
    directories
}

/// The user's backend directory, relative to the home directory.
pub(crate) const USER_DIRECTORY: &str = ".local/lib/runtime";

/// The system's backend directories, the local administrator's first.
pub(crate) fn system_directories() -> Vec<PathBuf> {
    let multiarch = format!("/usr/lib/{}-linux-gnu/runtime", std::env::consts::ARCH);
    vec!["/usr/local/lib/runtime".into(), "/usr/lib/runtime".into(), multiarch.into()]
}

/// Reads bytes at an offset of a file. Safe to call from several threads at once.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(bytes, offset)
}

/// Size of the stacks of threads that are created without asking for a size, as drivers do.
#[must_use]
pub fn thread_stack_bytes() -> Option<u64> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: success initialises the attributes.
    if unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let mut bytes = 0;
    // SAFETY: the attributes are initialised, and the output is writable.
    let known = unsafe { libc::pthread_attr_getstacksize(attributes.as_ptr(), &raw mut bytes) };
    // SAFETY: they were initialised above, and are not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    (known == 0).then_some(bytes as u64)
}

/// Calls `hook` in every forked child, before `fork` returns there.
pub(crate) fn at_fork_in_child(hook: extern "C" fn()) {
    // Miri does not support fork.
    if cfg!(miri) {
        return;
    }
    // SAFETY: the hook is a function of this library, which is not unloaded while the hook can run.
    unsafe { libc::pthread_atfork(None, None, Some(hook)) };
}

/// Calls `hook` when the process exits normally.
pub(crate) fn at_exit(hook: extern "C" fn()) {
    // Miri does not support exit handlers.
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
