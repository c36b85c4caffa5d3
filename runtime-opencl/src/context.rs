//! The context of a device and its sub-devices, which all openings of a `Runtime` share.

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cl3::ext::{CL_CONTEXT_PLATFORM, CL_EVENT_COMMAND_EXECUTION_STATUS, cl_context_properties, cl_int};
use parking_lot::Mutex;
use runtime_core::backend::QueueOptions;
use runtime_core::{Error, ErrorKind, Result};

use crate::builtin::BuiltinKernels;
use crate::deferred_release::DeferredRelease;
use crate::device_caps::DeviceCaps;
use crate::driver::handle::{CommandQueue, Context, Event, Owned};
use crate::driver::{DispatchTable, Driver, Raw, code_name, is_sticky};
use crate::enumeration::ListedDevice;
use crate::queue;
use crate::quirks::Quirks;

/// A context, with what its openings share.
#[derive(Debug)]
pub(crate) struct SharedContext {
    pub(crate) driver: &'static Driver,
    pub(crate) handle: Owned<Context>,
    pub(crate) listed: ListedDevice,
    pub(crate) caps: DeviceCaps,
    pub(crate) quirks: Quirks,
    pub(crate) builtins: BuiltinKernels,
    ids: AtomicU64,
    slots: Mutex<Slots>,
    /// Maps memory.
    service: OnceLock<Owned<CommandQueue>>,
    lost: OnceLock<Error>,
    pub(crate) deferred: DeferredRelease,
}

/// Small numbers for kernels, used again when a kernel is gone.
#[derive(Debug, Default)]
struct Slots {
    free: Vec<u32>,
    next: u32,
}

impl SharedContext {
    /// Makes the context.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn open(
        driver: &'static Driver,
        listed: ListedDevice,
        caps: DeviceCaps,
        quirks: &Quirks,
    ) -> Result<Self> {
        let devices: Vec<_> =
            std::iter::once(listed.device).chain(listed.sub_devices.iter().copied()).collect();
        let properties: [cl_context_properties; 3] =
            [CL_CONTEXT_PLATFORM, listed.platform.expose_provenance().cast_signed(), 0];
        let count = u32::try_from(devices.len()).unwrap_or(0);
        let none = std::ptr::null_mut();
        let raw = driver.create("clCreateContext", |cl, code| {
            let (list, first) = (properties.as_ptr(), devices.as_ptr());
            // SAFETY: the list of properties ends with 0, and the devices are as many and of that platform.
            Some(unsafe { (cl.clCreateContext?)(list, count, first, None, none, code) })
        })?;
        // SAFETY: it was just made.
        let handle = unsafe { Owned::new(driver, raw) };
        Ok(Self {
            driver,
            handle,
            listed,
            caps,
            quirks: quirks.clone(),
            builtins: BuiltinKernels::default(),
            ids: AtomicU64::new(1),
            slots: Mutex::default(),
            service: OnceLock::new(),
            lost: OnceLock::new(),
            deferred: DeferredRelease::default(),
        })
    }

    /// Frees shared virtual memory of this context that nothing uses any more.
    pub(crate) fn free_svm(&self, memory: *mut c_void) {
        let _ = self.driver.call("clSVMFree", |cl| {
            // SAFETY: allocated in this context, freed once, and used by nobody any more.
            unsafe { (cl.clSVMFree?)(self.handle.raw(), memory) };
            Some(())
        });
    }

    /// A number that nothing else of this context has.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// A queue for what no queue of the program asks for.
    pub(crate) fn internal_queue(&self) -> Result<Raw> {
        if let Some(service) = self.service.get() {
            return Ok(service.raw());
        }
        let made = queue::command_queue(self, self.listed.device, &QueueOptions::default())?;
        Ok(self.service.get_or_init(|| made).raw())
    }

    /// A small number that no other living kernel has.
    pub(crate) fn allocate_slot(&self) -> u32 {
        let mut slots = self.slots.lock();
        slots.free.pop().unwrap_or_else(|| {
            slots.next += 1;
            slots.next - 1
        })
    }

    /// Takes a kernel's number back.
    pub(crate) fn free_slot(&self, slot: u32) {
        self.slots.lock().free.push(slot);
    }

    /// Submits a command that answers with an event.
    #[inline]
    pub(crate) fn enqueue(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable, *mut Raw) -> Option<cl_int>,
    ) -> Result<Owned<Event>> {
        let mut event = std::ptr::null_mut();
        match self.driver.call(function, |cl| call(cl, &raw mut event))? {
            // SAFETY: the driver has just made it.
            0 => Ok(unsafe { Owned::new(self.driver, event) }),
            code => Err(self.error(function, code)),
        }
    }

    /// Turns a code into a result; a sticky one loses the device.
    #[inline]
    pub(crate) fn check(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable) -> Option<cl_int>,
    ) -> Result<()> {
        match self.driver.call(function, call)? {
            0 => Ok(()),
            code => Err(self.error(function, code)),
        }
    }

    /// Status of a command: 0 if it has ended, positive before, negative if it failed.
    #[inline]
    pub(crate) fn status(&self, event: Raw) -> cl_int {
        let mut status: cl_int = 0;
        let asked = self.driver.call("clGetEventInfo", |cl| {
            let (size, value) = (size_of::<cl_int>(), (&raw mut status).cast());
            let key = CL_EVENT_COMMAND_EXECUTION_STATUS;
            // SAFETY: the event is alive, and the status is of that size.
            Some(unsafe { (cl.clGetEventInfo?)(event, key, size, value, std::ptr::null_mut()) })
        });
        if matches!(asked, Ok(0)) {
            return status;
        }
        // A driver that cannot say what became of its command has lost it; but what the command uses is freed once it counts
        // as ended, so it must not run any more.
        self.synchronise(event);
        asked.ok().filter(|code| *code < 0).unwrap_or(-1)
    }

    /// Makes what ended commands wrote visible: to ask for their status alone does not promise that.
    #[inline]
    pub(crate) fn synchronise(&self, ended: Raw) {
        let _ = self.wait_event(ended);
    }

    /// Waits in the driver until a command has ended; says whether that went well.
    #[inline]
    pub(crate) fn wait_event(&self, event: Raw) -> bool {
        let waited = self.driver.call("clWaitForEvents", |cl| {
            // SAFETY: the event is alive.
            Some(unsafe { (cl.clWaitForEvents?)(1, &raw const event) })
        });
        matches!(waited, Ok(0))
    }

    /// Waits in the driver until everything on a queue has ended; says whether that went well.
    #[inline]
    pub(crate) fn finish_queue(&self, queue: Raw) -> bool {
        // SAFETY: the queue is alive.
        let waited = self.driver.call("clFinish", |cl| Some(unsafe { (cl.clFinish?)(queue) }));
        matches!(waited, Ok(0))
    }

    /// The error behind a code. After a sticky one every error is the first one.
    #[cold]
    pub(crate) fn error(&self, function: &str, code: cl_int) -> Error {
        let error = self.driver.error(function, code);
        if is_sticky(code) { self.lost.get_or_init(|| error).clone() } else { error }
    }

    /// Loses the device to what a command has done.
    #[cold]
    pub(crate) fn declare_lost(&self, code: cl_int) -> Error {
        let message = "a command ended with an error, and the device does not work any more; open it again, or start \
                       another process";
        let error = Error::new(ErrorKind::DeviceLost, message);
        let error = error.with_driver(code_name(code), i64::from(code));
        self.lost.get_or_init(|| error).clone()
    }

    /// Says at once that the device is lost, if it is.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}
