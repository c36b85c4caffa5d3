//! Loads one library: file check, `dlopen`, entry point, table negotiation.

#![allow(unsafe_code, reason = "loads libraries and calls their entry point")]

use std::fs;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::abi::{BackendTable, ENTRY_SYMBOL, EntryPoint};
use crate::platform::{self, trust};
use crate::plugin::convert;
use crate::plugin::load_report::LoadStage;
use crate::plugin::negotiate::{ResolvedBackend, negotiate};
use crate::{Error, ErrorKind, Result};

/// An existing file that not everybody can change.
#[derive(Debug)]
pub(crate) struct LibraryFile {
    /// Absolute, with symbolic links resolved.
    pub(crate) path: PathBuf,
    pub(crate) identity: (u64, u64),
}

/// Resolves and checks the file: stage "search".
///
/// # Errors
/// `Io` if it does not exist; `InvalidArgument` if it is not a file, or everybody could change it.
pub(crate) fn find(path: &Path) -> Result<LibraryFile> {
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(Error::invalid("not a file"));
    }
    trust::check_installed(&path)?;
    Ok(LibraryFile { identity: platform::file_identity(&metadata), path })
}

/// Loads the library and negotiates its table. `name` is the backend name in its manifest; `stage` is set to
/// the stage reached.
///
/// # Errors
/// `Io` if it cannot be loaded; `AbiMismatch` if it contradicts its manifest; any error of its entry point.
pub(crate) fn load(path: &Path, name: &str, stage: &mut LoadStage) -> Result<ResolvedBackend> {
    *stage = LoadStage::Open;
    let library = open(path)?;
    *stage = LoadStage::Symbol;
    let entry = entry_point(&library)?;
    // Never unloaded: thread-local destructors, log records and handles may point into the library until the
    // process ends.
    std::mem::forget(library);
    *stage = LoadStage::Table;
    let mut table: *const BackendTable = std::ptr::null();
    // SAFETY: according to the manifest, the symbol is an entry point of this major version; `table` is
    // writable.
    let status = unsafe { entry(&raw mut table) };
    // SAFETY: the entry point returns null or an owned error object.
    unsafe { convert::from_status(status) }?;
    // SAFETY: the table is static, and the library is never unloaded.
    let backend = unsafe { negotiate(table) }?;
    if backend.name == name {
        return Ok(backend);
    }
    Err(Error::new(
        ErrorKind::AbiMismatch,
        format!(
            "its table names the backend \"{}\" but its manifest \"{name}\"; rebuild the backend",
            backend.name
        ),
    ))
}

fn open(path: &Path) -> Result<Library> {
    let flags = RTLD_NOW | RTLD_LOCAL | libc::RTLD_NODELETE;
    // SAFETY: loading runs the library's initialisers. Only users with write access to its directory could
    // have placed it, and they are trusted.
    let library = unsafe { Library::open(Some(path), flags) };
    library.map_err(|error| Error::new(ErrorKind::Io, loader_message(&error, path)).with_source(error))
}

/// The dynamic loader's message without the path, which the report shows anyway.
fn loader_message(error: &libloading::Error, path: &Path) -> String {
    let words = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    words.strip_prefix(&format!("{}: ", path.display())).map_or(words.clone(), str::to_owned)
}

fn entry_point(library: &Library) -> Result<EntryPoint> {
    // SAFETY: according to the manifest, the symbol is a function of this type if it exists.
    let symbol = unsafe { library.get::<EntryPoint>(ENTRY_SYMBOL.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|error| {
        let message =
            format!("it does not export `{ENTRY_SYMBOL}`; export the backend with `export_backend!`");
        Error::new(ErrorKind::AbiMismatch, message).with_source(error)
    })
}
