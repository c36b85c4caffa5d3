//! Loads code into the process as shared objects, and looks up its functions.

#![allow(unsafe_code, reason = "loads foreign code")]

use std::borrow::Cow;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};
use runtime_core::backend::{Kernel, Log, Module, Source, TemporaryFolder, read_file};
use runtime_core::{Error, ErrorKind, OptionSpec, Result, did_you_mean};

use crate::architecture::Architecture;
use crate::call::Function;
use crate::convention::{Convention, entry_points};
use crate::shared_object::{self, Symbols};
use crate::toolchain::{self, Origin};
use crate::{compile, debug, native_code};

/// The variable in which code with asserted proofs reports a violation: a `const char *volatile`.
const FAILURE: &str = "runtime_kernel_failure";

/// An open shared object, closed when its last kernel is dropped.
#[derive(Debug)]
pub(crate) struct Library {
    handle: Handle,
    /// The option `libraries`; closed after `handle`.
    _dependencies: Vec<Handle>,
    /// The folder of the file, if a debugger may want to read it.
    _folder: Option<TemporaryFolder>,
}

/// Loaded code.
#[derive(Debug)]
pub struct HostModule {
    library: Arc<Library>,
    /// The symbols that the file defines.
    defined: Symbols,
    /// The names of its entry points.
    symbols: Vec<String>,
    convention: Convention,
}

/// A C function of a module.
#[derive(Clone, Debug)]
pub struct HostKernel(pub(crate) Arc<Function>);

/// The code formats of the host, and the load options of each.
pub(crate) const FORMATS: [(&str, &[&str]); 4] = [
    ("shared-object", &["convention", "debug", "libraries"]),
    (
        "c",
        &[
            "compiler",
            "convention",
            "debug",
            "default_flags",
            "define",
            "flags",
            "include",
            "libraries",
            "source",
        ],
    ),
    ("object", &["compiler", "convention", "debug", "flags", "libraries"]),
    ("archive", &["compiler", "convention", "debug", "flags", "libraries"]),
];

/// All load options.
pub(crate) fn options() -> Vec<OptionSpec> {
    let mut options = vec![Convention::option(), debug::option()];
    options.extend(toolchain::options());
    options.extend(compile::options());
    options
}

impl HostModule {
    /// Loads `source`: opens a shared object, after compiling C or linking objects into one.
    ///
    /// # Errors
    /// `Unsupported` format, `InvalidArgument` for an option that the format does not have, `Io`, `CompileFailed`
    /// with the log.
    pub(crate) fn load(source: &Source<'_>, log: Log) -> Result<Self> {
        check_options(source)?;
        if source.format == "shared-object" {
            return Self::load_shared(source);
        }
        let built = native_code::build(source, Architecture::Native, log)?;
        let code = read_file(&built.library)?;
        Self::open((&built.library, Some(built.folder)), &code, source, Vec::new())
    }

    fn load_shared(source: &Source<'_>) -> Result<Self> {
        let origin = Origin::new(source, Path::new("/"));
        let code = match source.code {
            Some(code) => Cow::Borrowed(code),
            None => {
                let path = std::path::absolute(source.path)
                    .map_err(|error| Error::new(ErrorKind::Io, format!("\"{}\": {error}", source.path)))?;
                let code = read_file(&path)?;
                shared_object::check(&code, name_of(source))?;
                // For a path that is already loaded, the dynamic loader returns the old library, even if the file has
                // changed since; and two modules of one file would share its variables. A copy avoids both.
                if !is_loaded(&path) {
                    let dependencies = open_dependencies(&origin.library_files(source.options)?)?;
                    return Self::open((&path, None), &code, source, dependencies);
                }
                Cow::Owned(code)
            }
        };
        shared_object::check(&code, name_of(source))?;
        let dependencies = open_dependencies(&origin.library_files(source.options)?)?;
        let private = private_folder()?;
        let path = toolchain::library_in(private.path());
        std::fs::write(&path, &code).map_err(|error| cannot_write(&path, &error))?;
        Self::open((&path, Some(private)), &code, source, dependencies)
    }

    /// Opens a file, which may be in a private folder.
    fn open(
        (path, folder): (&Path, Option<TemporaryFolder>),
        code: &[u8],
        source: &Source<'_>,
        dependencies: Vec<Handle>,
    ) -> Result<Self> {
        // SAFETY: loading native code is unsafe in core's interface; the caller is responsible for its initialisers.
        let handle = unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| explain_undefined(cannot_open("", error), source))?;
        pin_dependencies(code);
        let folder = folder.filter(|_| debug::is_on(source.options));
        let defined = Symbols::of(code);
        Ok(Self {
            library: Arc::new(Library { handle, _dependencies: dependencies, _folder: folder }),
            symbols: entry_points(defined.functions()),
            defined,
            convention: Convention::of(source.options)?,
        })
    }

    fn address(&self, symbol: &str) -> Option<*const c_void> {
        // `dlsym` also finds functions of the libraries that this one depends on.
        if self.defined.may_have(symbol) { self.library.address(symbol) } else { None }
    }
}

impl Library {
    /// The address of `symbol` in the library or in its dependencies.
    pub(crate) fn address(&self, symbol: &str) -> Option<*const c_void> {
        // SAFETY: the symbol is only used as an address, and the caller keeps the library open.
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

/// Checks that the host supports the format, and the format all given options.
pub(crate) fn check_options(source: &Source<'_>) -> Result<()> {
    let Some((format, valid)) = FORMATS.iter().find(|(format, _)| *format == source.format) else {
        let formats = FORMATS.map(|(format, _)| format);
        let message = format!(
            "the host does not support format \"{}\"; {}",
            source.format,
            did_you_mean(source.format, &formats)
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    match source.options.iter().find(|(key, _)| !valid.contains(key)) {
        Some((key, _)) => Err(Error::invalid(format!(
            "option \"{key}\" does not apply to format \"{format}\", which has {}",
            valid.join(", ")
        ))),
        None => Ok(()),
    }
}

/// Opens libraries that a shared object uses but does not name, with their symbols visible to it.
fn open_dependencies(files: &[PathBuf]) -> Result<Vec<Handle>> {
    let open = |file: &PathBuf| {
        // SAFETY: loading native code is unsafe in core's interface; the caller is responsible for its initialisers.
        unsafe { Handle::open(Some(file), RTLD_NOW | RTLD_GLOBAL) }
            .map_err(|error| cannot_open("option \"libraries\": ", error))
    };
    files.iter().map(open).collect()
}

fn cannot_open(what: &str, error: libloading::Error) -> Error {
    // The loader's message is in the error's source, which does not cross the ABI.
    let words = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    Error::new(ErrorKind::CompileFailed, format!("{what}{words}")).with_source(error)
}

/// The name of the code in messages.
pub(crate) fn name_of<'a>(source: &Source<'a>) -> &'a str {
    if source.path.is_empty() { "the code" } else { source.path }
}

/// Adds to the loader's message which code uses an undefined symbol, and the remedy.
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

/// Keeps the dependencies of a shared object loaded when it is closed: threads of OpenMP, for example, run on in them.
fn pin_dependencies(code: &[u8]) {
    for library in shared_object::needed(code) {
        // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
        let kept = unsafe {
            Handle::open(Some(library), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
        };
        // `RTLD_NODELETE` outlasts the handle.
        drop(kept);
    }
}

fn is_loaded(path: &Path) -> bool {
    // SAFETY: with `RTLD_NOLOAD` nothing is loaded, so no foreign code runs.
    unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_LOCAL | libc::RTLD_NOLOAD) }.is_ok()
}

/// A folder that only this user can access, removed on drop.
pub(crate) fn private_folder() -> Result<TemporaryFolder> {
    TemporaryFolder::new("runtime-host-").map_err(|error| {
        let place: PathBuf = std::env::temp_dir();
        let (kind, remedy) = match runtime_core::backend::exhausted(&error) {
            Some(remedy) => (ErrorKind::OutOfResources, remedy),
            None => (ErrorKind::Io, "set TMPDIR to a writable folder with free space"),
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
