//! Loaded code: shared objects, their functions, and how they get into the process.

#![allow(unsafe_code, reason = "loads foreign code")]

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use object::{Object, ObjectSymbol, SymbolKind};
use runtime_core::backend::{Kernel, Log, Module, Source};
use runtime_core::{Error, ErrorKind, Result, suggest};
use tempfile::TempDir;

use crate::call::Function;
use crate::compile;

/// An opened shared object; closed when its last kernel is gone.
#[derive(Debug)]
pub(crate) struct Library(Handle);

/// Loaded code.
#[derive(Debug)]
pub struct HostModule {
    library: Arc<Library>,
    symbols: Vec<String>,
}

/// A C function of a module.
#[derive(Clone, Debug)]
pub struct HostKernel(pub(crate) Arc<Function>);

impl HostModule {
    /// Loads `source`: opens a shared object, or compiles C first.
    ///
    /// # Errors
    /// `Unsupported` format, `Io`, `CompileFailed` with the whole log.
    pub(crate) fn load(source: &Source<'_>, log: Log) -> Result<Self> {
        match source.format {
            "shared-object" => match source.code {
                Some(code) => Self::from_bytes(code),
                None => Self::from_path(Path::new(source.path)),
            },
            "c" => {
                let built = compile::compile(source, log)?;
                Self::open(&built.library, &read(&built.library)?)
            }
            other => {
                let message =
                    format!("format \"{other}\" on the host; {}", suggest(other, &["shared-object", "c"]));
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    fn from_path(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path)
            .map_err(|error| Error::new(ErrorKind::Io, format!("\"{}\": {error}", path.display())))?;
        let bytes = read(&path)?;
        // The loader answers with what it has under this name, even if the file is another one by now, and twice
        // the same file would share its variables.
        if is_loaded(&path) { Self::from_bytes(&bytes) } else { Self::open(&path, &bytes) }
    }

    fn from_bytes(code: &[u8]) -> Result<Self> {
        let folder = private_folder()?;
        let path = folder.path().join("module.so");
        std::fs::write(&path, code).map_err(|error| cannot_write(&path, &error))?;
        Self::open(&path, code)
    }

    fn open(path: &Path, code: &[u8]) -> Result<Self> {
        // SAFETY: loading native code is unsafe in core's interface: the caller vouches for its initialisers.
        let library = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| Error::new(ErrorKind::CompileFailed, error.to_string()).with_source(error))?;
        Ok(Self { library: Arc::new(Library(library)), symbols: functions(code) })
    }
}

impl Module for HostModule {
    type Kernel = HostKernel;

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn kernel(&self, name: &str) -> Result<HostKernel> {
        let missing = || Error::new(ErrorKind::NotFound, format!("no function \"{name}\""));
        // The system would also find the functions of the libraries that this one needs.
        if !self.symbols.is_empty() && !self.symbols.iter().any(|symbol| symbol == name) {
            return Err(missing());
        }
        // SAFETY: the symbol is only used as an address, and the function keeps the library open.
        let symbol = unsafe { self.library.0.get::<*const c_void>(name) }.map_err(|_| missing())?;
        let address = symbol.as_raw_ptr();
        if address.is_null() {
            return Err(missing());
        }
        Ok(HostKernel(Arc::new(Function::new(address, Some(Arc::clone(&self.library))))))
    }
}

impl Kernel for HostKernel {}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("\"{}\": {error}; check the path", path.display()))
            .with_source(error)
    })
}

fn is_loaded(path: &Path) -> bool {
    // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
    unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD) }.is_ok()
}

/// A folder that only this user can enter, and that goes with the value.
pub(crate) fn private_folder() -> Result<TempDir> {
    tempfile::Builder::new().prefix("runtime-host-").tempdir().map_err(|error| {
        let place: PathBuf = std::env::temp_dir();
        let message =
            format!("\"{}\": {error}; set TMPDIR to a folder with space that you may write", place.display());
        Error::new(ErrorKind::Io, message).with_source(error)
    })
}

/// A failed write into the private folder.
pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    let message = format!("\"{}\": {error}; free space, or set TMPDIR to a folder with more", path.display());
    Error::new(ErrorKind::Io, message)
}

/// Names of the functions that a shared object defines; none where its format is not known.
fn functions(code: &[u8]) -> Vec<String> {
    let Ok(file) = object::File::parse(code) else { return Vec::new() };
    let defined =
        file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    let names = defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    let mut names: Vec<_> = names.filter(|name| !matches!(name.as_str(), "_init" | "_fini")).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests;
