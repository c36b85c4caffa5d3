//! Libraries of the process: opened by path, and closed when nothing uses them any more.

#![allow(unsafe_code, reason = "loads foreign code")]

use std::ffi::c_void;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use runtime_core::backend::TemporaryFolder;
use runtime_core::{Error, ErrorKind, Result};

use crate::shared_object;

/// An open shared object, closed when its last kernel is dropped.
#[derive(Debug)]
pub(crate) struct Library {
    handle: Handle,
    /// Closed after `handle`.
    _dependencies: Vec<Self>,
    /// The folder of the file, if a debugger may want to read it.
    _folder: Option<TemporaryFolder>,
}

impl Library {
    /// Opens a file, whose symbols the libraries opened later do not see.
    ///
    /// # Errors
    /// `CompileFailed`, with the loader's message.
    pub(crate) fn open(path: &Path, dependencies: Vec<Self>) -> Result<Self> {
        let handle = open(path, RTLD_LOCAL).map_err(|error| cannot_open("", error))?;
        Ok(Self { handle, _dependencies: dependencies, _folder: None })
    }

    /// The library, which keeps the folder of its file.
    pub(crate) fn with_folder(self, folder: Option<TemporaryFolder>) -> Self {
        Self { _folder: folder, ..self }
    }

    /// Opens libraries that a shared object uses but does not name, with their symbols visible to it.
    ///
    /// # Errors
    /// As [`Library::open`].
    pub(crate) fn open_dependencies(files: &[PathBuf]) -> Result<Vec<Self>> {
        let opened = |file: &PathBuf| {
            let handle =
                open(file, RTLD_GLOBAL).map_err(|error| cannot_open("option \"libraries\": ", error))?;
            Ok(Self { handle, _dependencies: Vec::new(), _folder: None })
        };
        files.iter().map(opened).collect()
    }

    /// The address of `symbol` in the library or in its dependencies.
    pub(crate) fn address(&self, symbol: &str) -> Option<*const c_void> {
        // SAFETY: the symbol is only used as an address, and the caller keeps the library open.
        let symbol = unsafe { self.handle.get::<*const c_void>(symbol) }.ok()?;
        Some(symbol.as_raw_ptr().cast_const()).filter(|address| !address.is_null())
    }
}

fn open(path: &Path, visibility: i32) -> Result<Handle, libloading::Error> {
    // SAFETY: loading native code is unsafe in core's interface; the caller is responsible for its initialisers.
    unsafe { Handle::open(Some(path), RTLD_NOW | visibility) }
}

fn cannot_open(what: &str, error: libloading::Error) -> Error {
    // The loader's message is in the error's source, which does not cross the ABI.
    let words = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    Error::new(ErrorKind::CompileFailed, format!("{what}{words}")).with_source(error)
}

/// Keeps the dependencies of a shared object loaded when it is closed: threads of OpenMP, for example, run on in them.
pub(crate) fn pin_dependencies(code: &[u8]) {
    for library in shared_object::needed(code) {
        // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
        let kept = unsafe {
            Handle::open(Some(library), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
        };
        // `RTLD_NODELETE` outlasts the handle.
        drop(kept);
    }
}

/// Whether the process has opened this file already.
pub(crate) fn is_loaded(path: &Path) -> bool {
    // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
    unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD) }.is_ok()
}
