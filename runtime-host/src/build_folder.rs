//! The private folders in which code is compiled.

use std::io;
use std::path::{Path, PathBuf};

use runtime_core::backend::{TemporaryFolder, exhausted};
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

/// The path of the library in a private folder.
pub(crate) fn library_in(private: &Path) -> PathBuf {
    private.join("module.so")
}
