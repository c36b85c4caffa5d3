//! Loaded code: shared objects, their functions, and how they get into the process.

#![allow(unsafe_code, reason = "loads foreign code")]

use std::borrow::Cow;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use runtime_core::backend::{Kernel, Log, Module, Source, TemporaryFolder};
use runtime_core::{Error, ErrorKind, OptionSpec, Result, did_you_mean};

use crate::call::Function;
use crate::convention::{Convention, entry_points};
use crate::shared_object::{self, Symbols};
use crate::toolchain::{self, Origin};
use crate::{compile, link};

/// Where code with asserted proofs says that one does not hold: a `const char *volatile`.
const FAILURE: &str = "runtime_kernel_failure";

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
    /// What stands in the file.
    defined: Symbols,
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
        Self::open(&built.library, &read(&built.library)?, source, Vec::new())
    }

    fn load_shared(source: &Source<'_>) -> Result<Self> {
        let origin = Origin::new(source, Path::new("/"));
        let code = match source.code {
            Some(code) => Cow::Borrowed(code),
            None => {
                let path = std::path::absolute(source.path)
                    .map_err(|error| Error::new(ErrorKind::Io, format!("\"{}\": {error}", source.path)))?;
                let code = read(&path)?;
                shared_object::check(&code, name_of(source))?;
                // The loader answers with what it has under this name, even if the file is another one by now, and
                // twice the same file would share its variables.
                if !is_loaded(&path) {
                    let needs = open_needs(&origin.library_files(source.options)?)?;
                    return Self::open(&path, &code, source, needs);
                }
                Cow::Owned(code)
            }
        };
        shared_object::check(&code, name_of(source))?;
        let needs = open_needs(&origin.library_files(source.options)?)?;
        let private = private_folder()?;
        let path = toolchain::library_in(private.path());
        std::fs::write(&path, &code).map_err(|error| cannot_write(&path, &error))?;
        Self::open(&path, &code, source, needs)
    }

    fn open(path: &Path, code: &[u8], source: &Source<'_>, needs: Vec<Handle>) -> Result<Self> {
        // SAFETY: loading native code is unsafe in core's interface: the caller vouches for its initialisers.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| explain_undefined(cannot_open("", error), source))?;
        keep_needed(code);
        let defined = Symbols::of(code);
        Ok(Self {
            library: Arc::new(Library { handle, _needs: needs }),
            symbols: entry_points(defined.functions()),
            defined,
            convention: Convention::of(source.options)?,
        })
    }

    fn address(&self, symbol: &str) -> Option<*const c_void> {
        // The system would also find the functions of the libraries that this one needs.
        if self.defined.may_have(symbol) { self.library.address(symbol) } else { None }
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
        let missing = || {
            let what = if self.defined.is_data(name) {
                format!("\"{name}\" is a variable, not a function")
            } else {
                format!("no function \"{name}\"")
            };
            Error::new(ErrorKind::NotFound, what)
        };
        let exists = |symbol: &str| self.address(symbol).is_some();
        let (symbol, convention) = self.convention.resolve(name, exists).ok_or_else(missing)?;
        let address = self.address(&symbol).ok_or_else(missing)?;
        let function = Function::new(address, Some(Arc::clone(&self.library)));
        let failure = self.defined.is_data(FAILURE).then(|| self.library.address(FAILURE)).flatten();
        Ok(HostKernel(Arc::new(function.with_failure(failure).with_convention(convention, &symbol))))
    }
}

impl Kernel for HostKernel {}

/// The format is one of the host's, and has all of the options given.
fn check_options(source: &Source<'_>) -> Result<()> {
    let Some((format, valid)) = FORMATS.iter().find(|(format, _)| *format == source.format) else {
        let formats = FORMATS.map(|(format, _)| format);
        let message =
            format!("format \"{}\" on the host; {}", source.format, did_you_mean(source.format, &formats));
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

/// What messages call the code.
fn name_of<'a>(source: &Source<'a>) -> &'a str {
    if source.path.is_empty() { "the code" } else { source.path }
}

/// Adds to the loader's words which code uses a symbol that nothing defines, and what to do about it.
fn explain_undefined(error: Error, source: &Source<'_>) -> Error {
    let symbol = error.message().split_once("undefined symbol: ").map(|(_, rest)| rest);
    let Some(symbol) = symbol.and_then(|rest| rest.split([',', ' ', '\n']).next()).map(str::to_owned) else {
        return error;
    };
    error.with_note(format!(
        "\"{}\" uses \"{symbol}\", which nothing defines: name its library in the option `libraries`",
        name_of(source)
    ))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    // To read a pipe would wait for a writer.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Error::new(ErrorKind::Io, format!("\"{}\" is not a regular file", path.display())));
    }
    std::fs::read(path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("\"{}\": {error}; check the path", path.display()))
            .with_source(error)
    })
}

/// Keeps what a shared object brought in when it goes: OpenMP's threads, for one, live on in theirs.
fn keep_needed(code: &[u8]) {
    for library in shared_object::needed(code) {
        // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
        let kept = unsafe {
            Handle::open(Some(library), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
        };
        // The mark stays when the handle goes; what is not loaded has nothing to lose.
        drop(kept);
    }
}

fn is_loaded(path: &Path) -> bool {
    // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
    unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD) }.is_ok()
}

/// A folder that only this user can enter, and that goes with the value.
pub(crate) fn private_folder() -> Result<TemporaryFolder> {
    TemporaryFolder::new("runtime-host-").map_err(|error| {
        let place: PathBuf = std::env::temp_dir();
        let (kind, remedy) = match toolchain::exhausted(&error) {
            Some(remedy) => (ErrorKind::OutOfResources, remedy),
            None => (ErrorKind::Io, "set TMPDIR to a folder with space that you may write"),
        };
        Error::new(kind, format!("\"{}\": {error}; {remedy}", place.display())).with_source(error)
    })
}

/// A failed write into the private folder.
pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    let message = format!("\"{}\": {error}; free space, or set TMPDIR to a folder with more", path.display());
    Error::new(ErrorKind::Io, message)
}

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod tests;
