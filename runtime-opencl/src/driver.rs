//! The OpenCL library behind a device, usually the system's ICD loader. Loaded on first use; several can be loaded at once.

#![allow(unsafe_code, reason = "loads and calls the driver")]

mod dispatch;
pub(crate) mod extensions;
pub(crate) mod handle;
pub(crate) mod icd;
pub(crate) mod info;
mod status;

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cl3::types::cl_int;
use libloading::Library;
use parking_lot::{Mutex, MutexGuard};
use runtime_core::backend::{open_library, trusted_variable};
use runtime_core::{Error, ErrorKind, Result};

pub(crate) use dispatch::DispatchTable;
use handle::{ObjectKind, Owned};
pub(crate) use status::{is_sticky, name as code_name};

/// Calls a function by a method that takes its name and the call: `call!(driver.check, clFlush(queue))`.
macro_rules! call {
    ($target:ident $(. $part:ident)*, $function:ident($($arg:expr),* $(,)?)) => {
        $target $(. $part)* (stringify!($function), |cl| Some((cl.$function?)($($arg),*)))
    };
}

/// As [`call!`], for functions whose last parameter is a pointer to the error code.
macro_rules! create {
    ($target:ident $(. $part:ident)*, $function:ident($($arg:expr),* $(,)?)) => {
        $target $(. $part)* (stringify!($function), |cl, code| Some((cl.$function?)($($arg,)* code)))
    };
}

/// As [`call!`], for commands that wait for no events and whose last parameter is a pointer to their own event.
macro_rules! enqueue {
    ($target:ident $(. $part:ident)*, $function:ident($($arg:expr),* $(,)?)) => {
        $target $(. $part)* (stringify!($function), |cl, event| {
            Some((cl.$function?)($($arg,)* 0, std::ptr::null(), event))
        })
    };
}

/// The answer to a `clGet*Info` query; `None` if it fails.
macro_rules! query {
    ($driver:expr, $function:ident($($arg:expr),* $(,)?)) => {
        $driver.query_info(|cl, size, value, needed| {
            Some((cl.$function?)($($arg,)* size, value, needed))
        })
    };
}
pub(crate) use {call, create, enqueue, query};

/// A handle of an OpenCL object (`cl_context`, `cl_mem`, …).
pub(crate) type Raw = *mut c_void;

/// File name of the ICD loader.
const LOADER: &str = "libOpenCL.so.1";
/// Environment variable with paths of other loaders, as other OpenCL programs use it.
const LOADER_VARIABLE: &str = "OPENCL_DYLIB_PATH";

/// Loaded libraries. They are never unloaded, because drivers leave threads behind.
static LOADED: Mutex<Vec<(Option<PathBuf>, &'static DispatchTable)>> = Mutex::new(Vec::new());

/// A loaded library.
#[derive(Debug)]
pub(crate) struct Driver {
    dispatch: &'static DispatchTable,
    /// Held during every call to a library that is not thread-safe.
    call_lock: Option<Mutex<()>>,
}

impl Driver {
    /// Loads the library at `path`, or the system's ICD loader.
    ///
    /// # Errors
    /// `Unavailable`, with the remedy.
    pub(crate) fn load(path: Option<&Path>, serial: bool) -> Result<&'static Self> {
        static OPEN: Mutex<Vec<(Option<PathBuf>, bool, &'static Driver)>> = Mutex::new(Vec::new());
        let mut open = OPEN.lock();
        let known =
            open.iter().find(|(known, is_serial, _)| known.as_deref() == path && *is_serial == serial);
        if let Some((_, _, driver)) = known {
            return Ok(driver);
        }
        let dispatch = load_library(path)?;
        let call_lock = serial.then(Mutex::default);
        let driver: &'static Self = Box::leak(Box::new(Self { dispatch, call_lock }));
        open.push((path.map(Path::to_path_buf), serial, driver));
        Ok(driver)
    }

    /// Whether calls are serialised by a lock.
    pub(crate) const fn is_serial(&self) -> bool {
        self.call_lock.is_some()
    }

    #[inline]
    fn lock_calls(&self) -> Option<MutexGuard<'_, ()>> {
        self.call_lock.as_ref().map(Mutex::lock)
    }

    /// Makes a call. `None` from `call` means that the library lacks the function.
    #[inline]
    pub(crate) fn call<R>(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable) -> Option<R>,
    ) -> Result<R> {
        let _guard = self.lock_calls();
        call(self.dispatch).ok_or_else(|| missing(function))
    }

    /// Makes a call that returns an error code.
    #[inline]
    pub(crate) fn check(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable) -> Option<cl_int>,
    ) -> Result<()> {
        match self.call(function, call)? {
            0 => Ok(()),
            code => Err(self.error(function, code)),
        }
    }

    /// Makes a call that creates an object of kind `K` and writes an error code.
    pub(crate) fn create<K: ObjectKind>(
        &'static self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable, *mut cl_int) -> Option<Raw>,
    ) -> Result<Owned<K>> {
        let raw = self.create_raw(function, call)?;
        // SAFETY: every caller names the kind of object that the function creates, and gives it to nobody else.
        Ok(unsafe { Owned::new(self, raw) })
    }

    /// Makes a call that returns a pointer and writes an error code.
    pub(crate) fn create_raw(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable, *mut cl_int) -> Option<Raw>,
    ) -> Result<Raw> {
        let mut code = 0;
        let object = self.call(function, |cl| call(cl, &raw mut code))?;
        match code {
            0 if !object.is_null() => Ok(object),
            0 => Err(Error::new(ErrorKind::Driver, format!("{function} returned a null pointer"))),
            code => Err(self.error(function, code)),
        }
    }

    /// Makes a call to an extension function that was loaded earlier.
    #[inline]
    pub(crate) fn extension(&self, function: &'static str, call: impl FnOnce() -> cl_int) -> Result<()> {
        let _guard = self.lock_calls();
        match call() {
            0 => Ok(()),
            code => Err(self.error(function, code)),
        }
    }

    /// The error for a code.
    #[cold]
    pub(crate) fn error(&self, function: &str, code: cl_int) -> Error {
        let text = match status::remedy(code) {
            Some(remedy) => format!("{function}: {remedy}"),
            None => function.to_owned(),
        };
        Error::new(status::kind(code), text).with_driver(status::name(code), i64::from(code))
    }
}

#[cold]
fn missing(function: &str) -> Error {
    Error::unsupported(format!("the OpenCL library has no {function}"))
}

fn load_library(path: Option<&Path>) -> Result<&'static DispatchTable> {
    let mut loaded = LOADED.lock();
    if let Some((_, dispatch)) = loaded.iter().find(|(known, _)| known.as_deref() == path) {
        return Ok(dispatch);
    }
    let mut reasons = Vec::new();
    for candidate in candidates(path) {
        // SAFETY: the library was chosen by the host program or the user, or is the system's ICD loader; it stays loaded.
        match open_library(&candidate, |path| unsafe { Library::new(path) }) {
            Ok(library) => {
                let bound = DispatchTable::bind(&library);
                // Never unloaded: drivers leave threads behind.
                std::mem::forget(library);
                if bound.clGetPlatformIDs.is_none() {
                    reasons.push(format!(
                        "{}: not an OpenCL library, clGetPlatformIDs is missing",
                        candidate.display()
                    ));
                    continue;
                }
                let dispatch: &'static DispatchTable = Box::leak(Box::new(bound));
                loaded.push((path.map(Path::to_path_buf), dispatch));
                return Ok(dispatch);
            }
            Err(error) => reasons.push(error.message().to_owned()),
        }
    }
    let remedy = match path {
        Some(_) => "install it or correct the path",
        None => {
            "install an ICD loader and a driver (Debian: ocl-icd-libopencl1 and, for CPUs, pocl-opencl-icd), or set \
             OPENCL_DYLIB_PATH to another loader"
        }
    };
    let message = format!("no OpenCL library ({}); {remedy}", reasons.join("; "));
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// Libraries to try. A privileged process ignores paths from the environment.
fn candidates(path: Option<&Path>) -> Vec<PathBuf> {
    static NAMED: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(path) = path {
        return vec![path.to_path_buf()];
    }
    let named = NAMED.get_or_init(|| {
        let list = trusted_variable(LOADER_VARIABLE).and_then(|list| list.into_string().ok());
        let list = list.unwrap_or_default();
        list.split(';').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
    });
    named.iter().cloned().chain([PathBuf::from(LOADER)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_unavailable_with_the_remedy() {
        let error = Driver::load(Some(Path::new("/no/such/libOpenCL.so")), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(
            error.message().contains("/no/such/libOpenCL.so") && error.message().contains("path"),
            "{error}"
        );
    }
}
