//! Takes one library through the stages: found, manifest, dlopen, symbol, table, instance.

#![allow(unsafe_code, reason = "loads libraries and calls their entry point")]

use std::fs;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::abi::{BackendTable, ENTRY_SYMBOL, EntryPoint};
use crate::platform;
use crate::plugin::convert;
use crate::plugin::load_report::Stage;
use crate::plugin::negotiate::{ResolvedBackend, negotiate};
use crate::{Error, ErrorKind, Result};

/// A file that exists and that only its owner may change.
#[derive(Debug)]
pub(crate) struct LibraryFile {
    /// Absolute, without links.
    pub(crate) path: PathBuf,
    pub(crate) identity: (u64, u64),
}

/// Looks at the file itself: stage "search".
///
/// # Errors
/// `Io` if it is not there; `InvalidArgument` if it is no file or anybody may change it.
pub(crate) fn find(path: &Path) -> Result<LibraryFile> {
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(Error::invalid("not a file"));
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    for (place, metadata) in [(&*path, &metadata), (directory, &fs::metadata(directory)?)] {
        if platform::is_world_writable(metadata) {
            let place = place.display();
            return Err(Error::invalid(format!(
                "refused: anybody may write to {place}; `chmod o-w {place}` if it is yours"
            )));
        }
    }
    Ok(LibraryFile { identity: platform::file_identity(&metadata), path })
}

/// Loads the library and negotiates its table; `stage` says how far it came. `name` is what its manifest promised.
///
/// # Errors
/// `Io` when it cannot be loaded; `AbiMismatch` when it is not what its manifest says; whatever its entry point says.
pub(crate) fn load(path: &Path, name: &str, stage: &mut Stage) -> Result<ResolvedBackend> {
    *stage = Stage::Open;
    let library = open(path)?;
    *stage = Stage::Symbol;
    let entry = entry_point(&library)?;
    // Never closed: thread-local destructors, log records and handles may point into it until the process ends.
    std::mem::forget(library);
    *stage = Stage::Table;
    let mut table: *const BackendTable = std::ptr::null();
    // SAFETY: the manifest says that the symbol is an entry point of this major version; `table` is writable.
    let status = unsafe { entry(&raw mut table) };
    // SAFETY: the entry point returns null or an owned error object.
    unsafe { convert::from_status(status) }?;
    // SAFETY: the entry point of a library that is never closed returned a static table.
    let backend = unsafe { negotiate(table) }?;
    if backend.name == name {
        return Ok(backend);
    }
    Err(Error::new(
        ErrorKind::AbiMismatch,
        format!("its table says \"{}\" and its manifest \"{name}\"; rebuild the backend", backend.name),
    ))
}

fn open(path: &Path) -> Result<Library> {
    let flags = RTLD_NOW | RTLD_LOCAL | libc::RTLD_NODELETE;
    // SAFETY: loading runs the library's initialisers; whoever may write to its directory is trusted, and others cannot.
    let library = unsafe { Library::open(Some(path), flags) };
    library.map_err(|error| Error::new(ErrorKind::Io, loader_message(&error, path)).with_source(error))
}

/// The dynamic loader's own words, without the path that the report names anyway.
fn loader_message(error: &libloading::Error, path: &Path) -> String {
    let words = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    words.strip_prefix(&format!("{}: ", path.display())).map_or(words.clone(), str::to_owned)
}

fn entry_point(library: &Library) -> Result<EntryPoint> {
    // SAFETY: the manifest says that the symbol, if it is there, is a function of this type.
    let symbol = unsafe { library.get::<EntryPoint>(ENTRY_SYMBOL.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|error| {
        let message =
            format!("it does not export `{ENTRY_SYMBOL}`; export the backend with `export_backend!`");
        Error::new(ErrorKind::AbiMismatch, message).with_source(error)
    })
}
