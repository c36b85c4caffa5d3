//! The library behind a device, usually the system's loader of drivers, loaded when it is first needed. Several can live side
//! by side.

#![allow(unsafe_code, reason = "loads and calls the driver")]

mod dispatch;
pub(crate) mod extensions;
pub(crate) mod handle;
pub(crate) mod icd;
mod status;

use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cl3::types::cl_int;
use libloading::Library;
use parking_lot::{Mutex, MutexGuard};
use runtime_core::backend::open_library;
use runtime_core::{Error, ErrorKind, Result};

pub(crate) use dispatch::DispatchTable;
pub(crate) use status::{is_sticky, name as code_name};

/// An object of the driver.
pub(crate) type Raw = *mut c_void;

/// What the loader is called.
const LOADER: &str = if cfg!(target_os = "macos") {
    "/System/Library/Frameworks/OpenCL.framework/OpenCL"
} else {
    "libOpenCL.so.1"
};
/// Paths of other loaders, as other OpenCL programs take them.
const LOADER_VARIABLE: &str = "OPENCL_DYLIB_PATH";

/// Libraries that are loaded; they stay for the life of the process, since drivers leave threads behind.
static LOADED: Mutex<Vec<(Option<PathBuf>, &'static DispatchTable)>> = Mutex::new(Vec::new());

/// A loaded library.
#[derive(Debug)]
pub(crate) struct Driver {
    dispatch: &'static DispatchTable,
    /// Held through every call to a library that bears one thread at a time.
    call_lock: Option<Mutex<()>>,
}

impl Driver {
    /// Loads the library at `path`, or the system's loader.
    ///
    /// # Errors
    /// `Unavailable`, with the remedy.
    pub(crate) fn load(path: Option<&Path>, serial: bool) -> Result<&'static Self> {
        static OPEN: Mutex<Vec<(Option<PathBuf>, bool, &'static Driver)>> = Mutex::new(Vec::new());
        let mut open = OPEN.lock();
        let known = open.iter().find(|(known, calm, _)| known.as_deref() == path && *calm == serial);
        if let Some((_, _, driver)) = known {
            return Ok(driver);
        }
        let dispatch = load_library(path)?;
        let call_lock = serial.then(Mutex::default);
        let driver: &'static Self = Box::leak(Box::new(Self { dispatch, call_lock }));
        open.push((path.map(Path::to_path_buf), serial, driver));
        Ok(driver)
    }

    /// Whether the library bears one thread at a time.
    pub(crate) const fn is_serial(&self) -> bool {
        self.call_lock.is_some()
    }

    #[inline]
    fn lock_calls(&self) -> Option<MutexGuard<'_, ()>> {
        self.call_lock.as_ref().map(Mutex::lock)
    }

    /// Makes a call; `None` is a function that the library does not have.
    #[inline]
    pub(crate) fn call<R>(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable) -> Option<R>,
    ) -> Result<R> {
        let _guard = self.lock_calls();
        call(self.dispatch).ok_or_else(|| missing(function))
    }

    /// Makes a call that answers with a code, and turns that into a result.
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

    /// Makes a call that answers with an object, and writes its code.
    #[inline]
    pub(crate) fn create(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable, *mut cl_int) -> Option<Raw>,
    ) -> Result<Raw> {
        let mut code = 0;
        let made = self.call(function, |cl| call(cl, &raw mut code))?;
        match code {
            0 if !made.is_null() => Ok(made),
            0 => Err(Error::new(ErrorKind::Driver, format!("{function} answered a null pointer"))),
            code => Err(self.error(function, code)),
        }
    }

    /// Makes a call of an extension, whose function was found before.
    #[inline]
    pub(crate) fn extension(&self, function: &'static str, call: impl FnOnce() -> cl_int) -> Result<()> {
        let _guard = self.lock_calls();
        match call() {
            0 => Ok(()),
            code => Err(self.error(function, code)),
        }
    }

    /// The error behind a code.
    #[cold]
    pub(crate) fn error(&self, function: &str, code: cl_int) -> Error {
        let text = match status::remedy(code) {
            Some(remedy) => format!("{function}: {remedy}"),
            None => function.to_owned(),
        };
        Error::new(status::kind(code), text).with_driver(status::name(code), i64::from(code))
    }

    /// What a query with a size and a place for the answer tells, as bytes; `None` if the driver does not tell.
    pub(crate) fn query_info(
        &self,
        query: impl Fn(&DispatchTable, usize, *mut c_void, *mut usize) -> Option<cl_int>,
    ) -> Option<Vec<u8>> {
        let none = std::ptr::null_mut();
        let mut size = 0;
        let _guard = self.lock_calls();
        if query(self.dispatch, 0, none, &raw mut size) != Some(0) {
            return None;
        }
        let mut bytes = vec![0_u8; size];
        let answered = size == 0
            || query(self.dispatch, size, bytes.as_mut_ptr().cast(), std::ptr::null_mut()) == Some(0);
        answered.then_some(bytes)
    }
}

/// Text of an answer, without the zero at its end.
pub(crate) fn decode_text(bytes: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
    String::from_utf8_lossy(text).trim().to_owned()
}

/// A number of an answer, whatever its size.
pub(crate) fn decode_u64(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    (!bytes.is_empty()).then(|| u64::from_le_bytes(word))
}

/// The numbers of the size of an address in an answer.
pub(crate) fn decode_usizes(bytes: &[u8]) -> Vec<usize> {
    bytes
        .chunks_exact(size_of::<usize>())
        .filter_map(|chunk| decode_u64(chunk).and_then(|word| usize::try_from(word).ok()))
        .collect()
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
        // SAFETY: the library is the program's or the user's choice, or the system's loader; it stays loaded.
        match open_library(&candidate, |path| unsafe { Library::new(path) }) {
            Ok(library) => {
                let bound = DispatchTable::bind(&library);
                // Others may have it loaded: it stays.
                std::mem::forget(library);
                if bound.clGetPlatformIDs.is_none() {
                    reasons.push(format!("{}: no OpenCL, it lacks clGetPlatformIDs", candidate.display()));
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
        Some(_) => "install it, or correct its path",
        None => {
            "install a loader and a driver (Debian: ocl-icd-libopencl1 and, for the processor, pocl-opencl-icd), or \
             name a loader in OPENCL_DYLIB_PATH"
        }
    };
    let message = format!("no OpenCL library ({}); {remedy}", reasons.join("; "));
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// Libraries to try. A privileged program loads nothing that its environment names.
fn candidates(path: Option<&Path>) -> Vec<PathBuf> {
    static NAMED: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(path) = path {
        return vec![path.to_path_buf()];
    }
    let named = NAMED.get_or_init(|| match std::env::var(LOADER_VARIABLE) {
        Ok(list) if !runtime_core::backend::is_privileged() => {
            list.split(';').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
        }
        _ => Vec::new(),
    });
    named.iter().cloned().chain([PathBuf::from(LOADER)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whatever_their_size() {
        assert_eq!(decode_u64(&7_u32.to_le_bytes()), Some(7));
        assert_eq!(decode_u64(&u64::MAX.to_le_bytes()), Some(u64::MAX));
        assert_eq!((decode_u64(&[]), decode_u64(&[0; 9])), (None, None));
        assert_eq!(decode_usizes(&[1_usize.to_le_bytes(), 2_usize.to_le_bytes()].concat()), [1, 2]);
        assert_eq!(decode_text(b" PoCL \0x"), "PoCL");
        assert_eq!(decode_text(b"no end"), "no end");
    }

    #[test]
    fn a_library_that_is_not_there_is_unavailable_with_the_remedy() {
        let error = Driver::load(Some(Path::new("/no/such/libOpenCL.so")), false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(
            error.message().contains("/no/such/libOpenCL.so") && error.message().contains("path"),
            "{error}"
        );
    }
}
