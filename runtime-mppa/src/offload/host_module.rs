//! Host-driven modules: shared objects of this machine that load code on a chip and run it, in the form of XTC's MPPA modules.

#![allow(unsafe_code, reason = "loads and calls native code")]

use std::ffi::{CString, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use runtime_core::backend::open_library;
use runtime_core::{Error, ErrorKind, Result};

use super::chip::Chip;
use super::host_arguments::{HostArguments, Payload};
use crate::process::{self, io_error};

/// The format of host-driven modules.
pub(crate) const HOST_MODULE: &str = "mppa-host-module";
/// Takes the structures that the module shares with this backend.
const SET_STRUCTURES: &str = "set_mppa_common_structures";
/// Loads the module's code on the chip.
const LOAD: &str = "load_kernel";

/// The code of a host-driven module.
#[derive(Debug)]
pub struct HostCode(Vec<u8>);

impl HostCode {
    /// Takes the bytes of a shared object.
    ///
    /// # Safety
    /// Loading it and its functions `set_mppa_common_structures` and `load_kernel` are sound: they run in this process.
    #[must_use]
    pub const unsafe fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

/// A loaded host-driven module; on drop, the shared object is closed, unless the chip is lost: its finalisers may call the chip.
#[derive(Debug)]
pub(super) struct HostModule {
    chip: Arc<Chip>,
    library: ManuallyDrop<Library>,
}

impl HostModule {
    /// Loads a private copy of the shared object, so that the same one can be loaded several times, and lets it load its code.
    ///
    /// # Errors
    /// `CompileFailed` if it cannot be loaded or lacks a function; `Io`; `DeviceLost`.
    pub(super) fn load(chip: &Arc<Chip>, code: &HostCode) -> Result<Self> {
        let folder = process::folder("runtime-mppa-module-")?;
        let path = folder.path().join("module.so");
        std::fs::write(&path, &code.0).map_err(|error| io_error(&path, error))?;
        // SAFETY: the caller of `HostCode::new` vouches for the code.
        let library = open_library(&path, |path| unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) });
        let library = library.map_err(|error| {
            let what = "a host-driven module is a shared object for this machine";
            Error::new(ErrorKind::CompileFailed, format!("{what}: {}", error.message()))
        })?;
        let module = Self { chip: Arc::clone(chip), library: ManuallyDrop::new(library) };
        let set_structures = module.required::<unsafe extern "C" fn(*mut c_void)>(SET_STRUCTURES)?;
        let load = module.required::<unsafe extern "C" fn()>(LOAD)?;
        chip.run_host_code(move |structures| {
            // SAFETY: the structures live as long as the chip, which the module keeps open.
            unsafe { set_structures(structures) };
            // SAFETY: it has its structures, and nothing else calls the chip.
            unsafe { load() };
        })?;
        Ok(module)
    }

    /// The address of a function.
    ///
    /// # Errors
    /// `NotFound`.
    pub(super) fn symbol(&self, name: &str) -> Result<u64> {
        self.find::<NonNull<c_void>>(name).map(|function| function.as_ptr().expose_provenance() as u64)
    }

    /// A function, as one of XTC's modules of this name is declared.
    fn required<T: Copy>(&self, name: &str) -> Result<T> {
        self.find(name).map_err(|_| {
            Error::new(
                ErrorKind::CompileFailed,
                format!("a host-driven module exports \"{name}\", and this shared object does not"),
            )
        })
    }

    /// An address, or a function, of the type that the caller knows it to have. `T` has no null.
    fn find<T: Copy>(&self, name: &str) -> Result<T> {
        let text = CString::new(name).map_err(|_| Error::invalid("a symbol has no zero byte"))?;
        // SAFETY: the caller of `HostCode::new` vouches for the functions of these names; a null address is `None`.
        let symbol = unsafe { self.library.get::<Option<T>>(text.as_bytes_with_nul()) };
        symbol.ok().and_then(|symbol| *symbol).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the module exports no function \"{name}\""))
        })
    }

    /// Calls a function of the module, which drives the chip.
    ///
    /// # Errors
    /// `NotFound`; `DeviceLost`.
    ///
    /// # Safety
    /// It takes these arguments.
    pub(super) unsafe fn call(&self, name: &str, arguments: &HostArguments) -> Result<()> {
        let (function, arguments) = (self.find::<Payload>(name)?, *arguments);
        self.chip.run_host_code(move |_| {
            // SAFETY: the module is closed by a later call of the same thread, if at all; the rest is the caller's promise.
            unsafe { arguments.call(function) };
        })
    }
}

impl Drop for HostModule {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        let library = ManuallyDrop::new(unsafe { ManuallyDrop::take(&mut self.library) });
        // A call that a lost chip does not make leaves it loaded.
        self.chip.release_host_code(move || drop(ManuallyDrop::into_inner(library)));
    }
}
