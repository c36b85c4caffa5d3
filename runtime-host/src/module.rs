//! Loaded code: shared objects, their functions, and how they get into the process.

#![allow(unsafe_code, reason = "loads foreign code")]

use std::borrow::Cow;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use object::elf::{DT_NEEDED, Dyn64};
use object::read::elf::{Dyn, ElfFile64};
use object::{Endianness, Object, ObjectSymbol, SymbolKind};
use runtime_core::backend::{Kernel, Log, Module, Source};
use runtime_core::{Error, ErrorKind, OptionSpec, Options, Result, suggest};
use tempfile::TempDir;

use crate::call::Function;
use crate::convention::{Convention, entry_points};
use crate::toolchain::{self, Origin};
use crate::{compile, link};

/// An opened shared object; closed when its last kernel is gone.
#[derive(Debug)]
pub(crate) struct Library {
    handle: Handle,
    /// Closed after it.
    _needs: Vec<Handle>,
}

/// Loaded code.
#[derive(Debug)]
pub struct HostModule {
    library: Arc<Library>,
    /// The functions as they stand in the file; empty where its format is not known.
    defined: Vec<String>,
    /// The names under which they are asked for.
    symbols: Vec<String>,
    convention: Convention,
}

/// A C function of a module.
#[derive(Clone, Debug)]
pub struct HostKernel(pub(crate) Arc<Function>);

/// The code formats that the host takes, and the load options that each of them has.
pub(crate) const FORMATS: [(&str, &[&str]); 4] = [
    ("shared-object", &["convention", "libraries"]),
    (
        "c",
        &[
            "cache",
            "compiler",
            "convention",
            "default_flags",
            "define",
            "flags",
            "include",
            "libraries",
            "source",
        ],
    ),
    ("object", &["compiler", "convention", "flags", "libraries"]),
    ("archive", &["compiler", "convention", "flags", "libraries"]),
];

/// All load options.
pub(crate) fn options() -> Vec<OptionSpec> {
    let mut options = vec![Convention::option()];
    options.extend(toolchain::options());
    options.extend(compile::options());
    options
}

impl HostModule {
    /// Loads `source`: opens a shared object, after compiling C or linking objects into one.
    ///
    /// # Errors
    /// `Unsupported` format, `InvalidArgument` for an option that the format does not have, `Io`, `CompileFailed`
    /// with the whole log.
    pub(crate) fn load(source: &Source<'_>, log: Log) -> Result<Self> {
        check_options(source)?;
        let built = match source.format {
            "c" => compile::compile(source, log)?,
            "object" | "archive" => link::link(source, log)?,
            _ => return Self::load_shared(source),
        };
        Self::open(&built.library, &read(&built.library)?, source.options, Vec::new())
    }

    fn load_shared(source: &Source<'_>) -> Result<Self> {
        let needs = open_needs(&Origin::new(source, Path::new("/")).library_files(source.options)?)?;
        let code = match source.code {
            Some(code) => Cow::Borrowed(code),
            None => {
                let path = std::path::absolute(source.path)
                    .map_err(|error| Error::new(ErrorKind::Io, format!("\"{}\": {error}", source.path)))?;
                let code = read(&path)?;
                // The loader answers with what it has under this name, even if the file is another one by now, and
                // twice the same file would share its variables.
                if !is_loaded(&path) {
                    return Self::open(&path, &code, source.options, needs);
                }
                Cow::Owned(code)
            }
        };
        let private = private_folder()?;
        let path = toolchain::library_in(private.path());
        std::fs::write(&path, &code).map_err(|error| cannot_write(&path, &error))?;
        Self::open(&path, &code, source.options, needs)
    }

    fn open(path: &Path, code: &[u8], options: &Options, needs: Vec<Handle>) -> Result<Self> {
        // SAFETY: loading native code is unsafe in core's interface: the caller vouches for its initialisers.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| cannot_open("", error))?;
        keep_needed(code);
        let defined = functions(code);
        Ok(Self {
            library: Arc::new(Library { handle, _needs: needs }),
            symbols: entry_points(&defined),
            defined,
            convention: Convention::of(options)?,
        })
    }

    fn address(&self, symbol: &str) -> Option<*const c_void> {
        // The system would also find the functions of the libraries that this one needs.
        if !self.defined.is_empty() && !self.defined.iter().any(|defined| defined == symbol) {
            return None;
        }
        self.library.address(symbol)
    }
}

impl Library {
    /// Where `symbol` stands in the library, or in those that it was linked with.
    pub(crate) fn address(&self, symbol: &str) -> Option<*const c_void> {
        // SAFETY: the symbol is only used as an address, and whoever asks keeps the library open.
        let symbol = unsafe { self.handle.get::<*const c_void>(symbol) }.ok()?;
        Some(symbol.as_raw_ptr().cast_const()).filter(|address| !address.is_null())
    }
}

impl Module for HostModule {
    type Kernel = HostKernel;

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn kernel(&self, name: &str) -> Result<HostKernel> {
        let missing = || Error::new(ErrorKind::NotFound, format!("no function \"{name}\""));
        let exists = |symbol: &str| self.address(symbol).is_some();
        let (symbol, convention) = self.convention.resolve(name, exists).ok_or_else(missing)?;
        let address = self.address(&symbol).ok_or_else(missing)?;
        let function = Function::new(address, Some(Arc::clone(&self.library)));
        Ok(HostKernel(Arc::new(function.with_convention(convention, &symbol))))
    }
}

impl Kernel for HostKernel {}

/// The format is one of the host's, and has all of the options given.
fn check_options(source: &Source<'_>) -> Result<()> {
    let Some((format, valid)) = FORMATS.iter().find(|(format, _)| *format == source.format) else {
        let formats = FORMATS.map(|(format, _)| format);
        let message =
            format!("format \"{}\" on the host; {}", source.format, suggest(source.format, &formats));
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    match source.options.iter().find(|(key, _)| !valid.contains(key)) {
        Some((key, _)) => Err(Error::invalid(format!(
            "option \"{key}\" does not go with format \"{format}\", which has {}",
            valid.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Opens what a shared object needs but does not name itself, visible to it: it looks nowhere else.
fn open_needs(files: &[PathBuf]) -> Result<Vec<Handle>> {
    let open = |file: &PathBuf| {
        // SAFETY: loading native code is unsafe in core's interface: the caller vouches for its initialisers.
        unsafe { Handle::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }
            .map_err(|error| cannot_open("option \"libraries\": ", error))
    };
    files.iter().map(open).collect()
}

fn cannot_open(what: &str, error: libloading::Error) -> Error {
    // The system's own words stand in the source, which does not cross the seam.
    let words = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    Error::new(ErrorKind::CompileFailed, format!("{what}{words}")).with_source(error)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("\"{}\": {error}; check the path", path.display()))
            .with_source(error)
    })
}

/// Keeps what a shared object brought in when it goes: OpenMP's threads, for one, live on in theirs.
fn keep_needed(code: &[u8]) {
    for library in needed(code) {
        // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
        let kept = unsafe {
            Handle::open(Some(library), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
        };
        // The mark stays when the handle goes; what is not loaded has nothing to lose.
        drop(kept);
    }
}

/// The libraries that a shared object names; none where its format is not known.
fn needed(code: &[u8]) -> Vec<String> {
    let names = || {
        let elf = ElfFile64::<Endianness>::parse(code).ok()?;
        let (endian, sections) = (elf.endian(), elf.elf_section_table());
        let (entries, link) = sections.dynamic(endian, code).ok()??;
        let strings = sections.strings(endian, code, link).ok()?;
        let name = |entry: &Dyn64<Endianness>| {
            let offset = (entry.tag32(endian)? == DT_NEEDED).then(|| entry.val32(endian))??;
            Some(String::from_utf8_lossy(strings.get(offset).ok()?).into_owned())
        };
        Some(entries.iter().filter_map(name).collect())
    };
    names().unwrap_or_default()
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
mod format_tests;
#[cfg(test)]
mod tests;
