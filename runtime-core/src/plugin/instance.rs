//! Core's handle to the state of a backend.

#![allow(unsafe_code, reason = "calls functions of a backend's table")]

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use parking_lot::Mutex;

use crate::abi::{self, Handle, Status, Str};
use crate::cache::CodeCache;
use crate::model::code_load::LoadHook;
use crate::model::lowering;
use crate::model::lowering::Lowering;
use crate::model::options::{OptionScope, OptionSpec};
use crate::plugin::negotiate::{DispatchTable, ResolvedBackend};
use crate::plugin::{convert, decode, host_log};
use crate::{DeviceId, DeviceInfo, Error, ErrorKind, Options, Result, process};

/// What a `Runtime` has for the code of all its backends.
#[derive(Clone, Debug)]
pub(crate) struct CodeServices {
    /// Lowerings for portable code.
    pub(crate) lowerings: Arc<[Arc<dyn Lowering>]>,
    /// Keeps compiled code.
    pub(crate) cache: CodeCache,
    pub(crate) load_hook: Option<LoadHook>,
    /// Whether launches may be fused.
    pub(crate) fusion: bool,
}

/// A backend of a `Runtime`. Its open devices keep it alive.
#[derive(Debug)]
pub(crate) struct Instance {
    name: String,
    pub(crate) version: String,
    /// Path of the library; `None` for a statically linked backend.
    pub(crate) path: Option<PathBuf>,
    pub(crate) calls: DispatchTable,
    pub(crate) handle: Handle,
    pub(crate) specs: Vec<OptionSpec>,
    code: CodeServices,
    generation: u32,
    /// A device list is valid until the next call, so only one thread at a time may read one.
    list_lock: Mutex<()>,
    /// Reinstalls the exit hook when the first device is opened.
    exit_hook: Once,
}

impl Deref for Instance {
    type Target = CodeServices;

    fn deref(&self) -> &CodeServices {
        &self.code
    }
}

// SAFETY: `handle` is a backend's instance, which the ABI allows any thread to use.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    /// Opens an instance. Makes no driver call.
    ///
    /// # Errors
    /// Any error of the backend.
    pub(crate) fn open(backend: ResolvedBackend, path: Option<PathBuf>, code: CodeServices) -> Result<Self> {
        process::install();
        let calls = backend.calls;
        let specs =
            option_specs(&calls).map_err(|error| error.in_operation("options").on_device(&backend.name))?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the host table is static and `handle` is writable.
        let status = unsafe { (calls.instance.open)(host_log::host_table(), &raw mut handle) };
        let opened = check_status(status).and_then(|()| convert::check_handle("instance", handle));
        opened.map_err(|error| error.in_operation("open").on_device(&backend.name))?;
        let (name, version) = (backend.name, backend.version);
        let generation = process::generation();
        Ok(Self {
            name,
            version,
            path,
            calls,
            handle,
            specs,
            code,
            generation,
            list_lock: Mutex::default(),
            exit_hook: Once::new(),
        })
    }

    /// Target name of the backend.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Lists the devices, including unusable ones.
    ///
    /// # Errors
    /// `Unavailable`, with the reason, if there is no driver; any other error of the backend.
    pub(crate) fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let listed = self.check_not_forked().and_then(|()| self.list());
        listed.map_err(|error| error.in_operation("devices").on_device(&self.name))
    }

    fn list(&self) -> Result<Vec<DeviceInfo>> {
        let _span = tracing::debug_span!(target: "runtime::call", "listed its devices", backend = self.name)
            .entered();
        let _guard = self.list_lock.lock();
        let (mut list, mut count) = (std::ptr::null(), 0);
        // SAFETY: the instance is open and the output pointers are writable.
        let status = unsafe { (self.calls.instance.devices)(self.handle, &raw mut list, &raw mut count) };
        check_status(status)?;
        // SAFETY: the list is valid until the next call, which the lock prevents.
        let mut devices = unsafe { decode::devices(&self.name, list, count) }?;
        devices.iter_mut().for_each(|device| lowering::add_portable_formats(&self.lowerings, device));
        Ok(devices)
    }

    /// Opens a device, after validating `options` against those that the backend describes.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid option; any error of the backend.
    pub(crate) fn open_device(&self, id: &DeviceId, options: &Options, scope: OptionScope) -> Result<Handle> {
        self.check_not_forked()?;
        options.validate(&self.specs, scope)?;
        let properties = convert::properties(options);
        let sub = id.sub.unwrap_or(abi::WHOLE_DEVICE);
        let (list, count) = (properties.as_ptr(), properties.len());
        let _span =
            tracing::debug_span!(target: "runtime::call", "opened a device", backend = self.name).entered();
        let mut device = std::ptr::null_mut();
        // SAFETY: the instance is open, the properties live during the call, and `device` is writable.
        let status = unsafe {
            (self.calls.instance.open_device)(self.handle, id.index, sub, list, count, &raw mut device)
        };
        check_status(status).and_then(|()| convert::check_handle("device", device))?;
        self.exit_hook.call_once(process::reinstall_exit_hook);
        Ok(device)
    }

    /// Describes the device that code for `architecture` is compiled for. Makes no driver call.
    ///
    /// # Errors
    /// `NotFound`, with the architectures; `Unsupported` if the backend compiles for open devices only.
    pub(crate) fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        self.check_not_forked()?;
        let _guard = self.list_lock.lock();
        let mut device = std::ptr::null();
        let name = Str::new(architecture);
        // SAFETY: the instance is open and the output pointer is writable.
        let status = unsafe { (self.calls.instance.architecture)(self.handle, name, &raw mut device) };
        check_status(status)?;
        // SAFETY: the description is valid until the next call, which the lock prevents.
        let mut devices = unsafe { decode::devices(&self.name, &raw const device, 1) }?;
        let mut device = devices.remove(0);
        lowering::add_portable_formats(&self.lowerings, &mut device);
        Ok(device)
    }

    /// Reports what the backend finds on this machine: texts by title.
    ///
    /// # Errors
    /// `Unsupported` if the backend has no diagnosis.
    pub(crate) fn diagnose(&self) -> Result<Options> {
        self.texts("diagnose", |list, count| {
            // SAFETY: the instance is open and the output pointers are writable.
            unsafe { (self.calls.instance.diagnose)(self.handle, list, count) }
        })
    }

    /// Lists the variables that a process needs from its start to open a device.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid option; any error of the backend.
    pub(crate) fn process_variables(&self, device: &str, options: &Options) -> Result<Options> {
        // Nothing is executed.
        options.validate(&self.specs, OptionScope::DeviceCode)?;
        let (device, properties) = (Str::new(device), convert::properties(options));
        let (given, given_count) = (properties.as_ptr(), properties.len());
        let listed = self.texts("process_variables", |list, count| {
            // SAFETY: the instance is open, the properties live during the call, and the output pointers are writable.
            unsafe {
                (self.calls.instance.process_variables)(self.handle, device, given, given_count, list, count)
            }
        });
        match listed {
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Options::new()),
            listed => listed,
        }
    }

    /// Copies texts that a function of the backend lends.
    fn texts(
        &self,
        function: &str,
        call: impl FnOnce(*mut *const abi::Property, *mut usize) -> Status,
    ) -> Result<Options> {
        self.check_not_forked()?;
        let _guard = self.list_lock.lock();
        let (mut list, mut count) = (std::ptr::null(), 0);
        check_status(call(&raw mut list, &raw mut count))?;
        // SAFETY: the list is valid until the next call, which the lock prevents.
        unsafe { convert::read_properties(function, list, count) }
    }

    /// Fails in a forked child.
    pub(crate) fn check_not_forked(&self) -> Result<()> {
        if self.generation == process::generation() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "this process was forked after the `Runtime` was created; create a new one in the child",
        ))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if process::exiting() || self.generation != process::generation() {
            return;
        }
        // SAFETY: open devices keep the instance alive, so all are closed, and the handle is not used
        // elsewhere.
        unsafe { (self.calls.instance.close)(self.handle) };
    }
}

/// The options that a backend describes; none if it lacks the function.
fn option_specs(calls: &DispatchTable) -> Result<Vec<OptionSpec>> {
    let (mut list, mut count) = (std::ptr::null(), 0);
    // SAFETY: the output pointers are writable.
    let status = unsafe { (calls.instance.options)(&raw mut list, &raw mut count) };
    match check_status(status) {
        // SAFETY: the list is static.
        Ok(()) => unsafe { decode::options(list, count) },
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Converts the status that a table function returned.
pub(crate) fn check_status(status: Status) -> Result<()> {
    // SAFETY: every table function returns null or an owned error object, consumed here once.
    unsafe { convert::from_status(status) }
}
