//! Loads code into the process as shared objects, and looks up its functions.

use std::borrow::Cow;
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

use runtime_core::backend::{Kernel, Log, Module, Source, TemporaryFolder, read_file};
use runtime_core::{Error, ErrorKind, Result};

use crate::architecture::{self, Architecture};
use crate::build_folder::{cannot_write, library_in, private_folder};
use crate::call::Function;
use crate::convention::{Convention, entry_points};
use crate::library::{Library, is_loaded, pin_dependencies};
use crate::options::{check_options, name_of};
use crate::shared_object::Symbols;
use crate::toolchain::Origin;
use crate::{debug, native_code};

/// The variable in which code with asserted proofs reports a violation: a `const char *volatile`.
const FAILURE: &str = "runtime_kernel_failure";

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
                architecture::check(&code, name_of(source))?;
                // For a path that is already loaded, the dynamic loader returns the old library, even if the file has
                // changed since; and two modules of one file would share its variables. A copy avoids both.
                if !is_loaded(&path) {
                    let dependencies = Library::open_dependencies(&origin.library_files(source.options)?)?;
                    return Self::open((&path, None), &code, source, dependencies);
                }
                Cow::Owned(code)
            }
        };
        architecture::check(&code, name_of(source))?;
        let dependencies = Library::open_dependencies(&origin.library_files(source.options)?)?;
        let private = private_folder()?;
        let path = library_in(private.path());
        std::fs::write(&path, &code).map_err(|error| cannot_write(&path, &error))?;
        Self::open((&path, Some(private)), &code, source, dependencies)
    }

    /// Opens a file, which may be in a private folder.
    fn open(
        (path, folder): (&Path, Option<TemporaryFolder>),
        code: &[u8],
        source: &Source<'_>,
        dependencies: Vec<Library>,
    ) -> Result<Self> {
        let library = Library::open(path, dependencies).map_err(|error| explain_undefined(error, source))?;
        pin_dependencies(code);
        let library = library.with_folder(folder.filter(|_| debug::is_on(source.options)));
        let defined = Symbols::of(code);
        Ok(Self {
            library: Arc::new(library),
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

#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod tests;
