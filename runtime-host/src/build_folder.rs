//! The private folders in which code is compiled.

use std::io;
use std::path::{Path, PathBuf};

use runtime_core::backend::TemporaryFolder;
use runtime_core::{Error, ErrorKind, Result};

/// A folder that only this user can access, removed on drop.
pub(crate) fn private_folder() -> Result<TemporaryFolder> {
    TemporaryFolder::new("runtime-host-").map_err(|error| {
        let place: PathBuf = std::env::temp_dir();
        let (kind, remedy) = match exhausted(&error) {
            Some(remedy) => (ErrorKind::OutOfResources, remedy),
            None => (ErrorKind::Io, "set TMPDIR to a writable folder with free space"),
        };
        Error::new(kind, format!("\"{}\": {error}; {remedy}", place.display())).with_source(error)
    })
}

/// A failed write into the private folder.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let message = format!("\"{}\": {error}; free space, or set TMPDIR to a folder with more", path.display());
    Error::new(ErrorKind::Io, message)
}

/// The remedy for an error about exhausted files, processes or memory.
pub(crate) fn exhausted(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE => Some("close files, or raise the limit (`ulimit -n`)"),
        libc::ENFILE => Some("the system-wide limit of open files is reached: raise fs.file-max"),
        libc::EAGAIN => Some("the limit of processes is reached: raise it (`ulimit -u`)"),
        libc::ENOMEM => Some("free memory"),
        _ => None,
    }
}

/// The path of the library in a private folder.
pub(crate) fn library_in(private: &Path) -> PathBuf {
    private.join("module.so")
}
