//! The OpenCL context of a device and its sub-devices: the driver's handle, the calls that can lose the device, and numbers that are
//! unique in it. What an open device owns beyond that is in [`crate::device_state`].

#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cl3::ext::{
    CL_CONTEXT_PLATFORM, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_QUEUE_CONTEXT, CL_QUEUE_DEVICE,
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PRIORITY_HIGH_KHR, CL_QUEUE_PRIORITY_KHR,
    CL_QUEUE_PRIORITY_LOW_KHR, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES, cl_context_properties, cl_int,
};
use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, QueueOptions, Result};

use crate::device_caps::DeviceCaps;
use crate::driver::handle::{CommandQueue, Context, Event, Owned};
use crate::driver::info::decode_u64;
use crate::driver::{DispatchTable, Driver, Raw, call, code_name, create, is_sticky, query};
use crate::enumeration::ListedDevice;
use crate::quirks::Quirks;

/// Values of `CL_QUEUE_PRIORITY_KHR`.
const PRIORITY_HIGH: u64 = CL_QUEUE_PRIORITY_HIGH_KHR as u64;
const PRIORITY_LOW: u64 = CL_QUEUE_PRIORITY_LOW_KHR as u64;

/// An OpenCL context.
#[derive(Debug)]
pub(crate) struct SharedContext {
    pub(crate) driver: &'static Driver,
    pub(crate) handle: Owned<Context>,
    pub(crate) listed: ListedDevice,
    pub(crate) caps: DeviceCaps,
    pub(crate) quirks: Quirks,
    ids: AtomicU64,
    slots: Mutex<Slots>,
    /// The queue for mapping memory, opened on first use.
    internal_queue: OnceLock<Owned<CommandQueue>>,
    lost: OnceLock<Error>,
}

/// Small numbers for kernels, reused after a kernel is dropped.
#[derive(Debug, Default)]
struct Slots {
    free: Vec<u32>,
    next: u32,
}

impl SharedContext {
    /// Creates the context.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn open(
        driver: &'static Driver,
        listed: ListedDevice,
        caps: DeviceCaps,
        quirks: Quirks,
    ) -> Result<Self> {
        let devices: Vec<_> =
            std::iter::once(listed.device).chain(listed.sub_devices.iter().copied()).collect();
        let properties: [cl_context_properties; 3] =
            [CL_CONTEXT_PLATFORM, listed.platform.expose_provenance().cast_signed(), 0];
        let count = u32::try_from(devices.len()).unwrap_or(0);
        let none = std::ptr::null_mut();
        let (list, first) = (properties.as_ptr(), devices.as_ptr());
        // SAFETY: the list of properties ends with 0, and there are `count` devices, all of that platform.
        let handle = unsafe { create!(driver.create, clCreateContext(list, count, first, None, none)) }?;
        Ok(Self {
            driver,
            handle,
            listed,
            caps,
            quirks,
            ids: AtomicU64::new(1),
            slots: Mutex::default(),
            internal_queue: OnceLock::new(),
            lost: OnceLock::new(),
        })
    }

    /// Frees shared virtual memory of this context that is no longer in use.
    pub(crate) fn free_svm(&self, memory: *mut c_void) {
        let _ = self.driver.call("clSVMFree", |cl| {
            // SAFETY: allocated in this context, freed once, and no longer in use.
            unsafe { (cl.clSVMFree?)(self.handle.raw(), memory) };
            Some(())
        });
    }

    /// A number that is unique in this context.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// The backend's own queue, for mapping memory.
    pub(crate) fn internal_queue(&self) -> Result<Raw> {
        if let Some(queue) = self.internal_queue.get() {
            return Ok(queue.raw());
        }
        let queue = self.create_queue(self.listed.device, &QueueOptions::default())?;
        Ok(self.internal_queue.get_or_init(|| queue).raw())
    }

    /// Creates an in-order command queue for a device of the context.
    pub(crate) fn create_queue(&self, device: Raw, options: &QueueOptions) -> Result<Owned<CommandQueue>> {
        let (driver, handle) = (self.driver, self.handle.raw());
        let flags = if options.timestamps { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        if self.caps.version >= (2, 0) {
            let priority = match options.priority {
                0 => None,
                1.. => Some(PRIORITY_HIGH),
                _ => Some(PRIORITY_LOW),
            };
            let priority = priority.filter(|_| self.caps.has("cl_khr_priority_hints"));
            let mut properties = [u64::from(CL_QUEUE_PROPERTIES), flags, 0, 0, 0];
            if let Some(priority) = priority {
                properties[2..4].copy_from_slice(&[CL_QUEUE_PRIORITY_KHR, priority]);
            }
            let list = properties.as_ptr();
            // SAFETY: the device belongs to the context, and the list ends with 0.
            unsafe { create!(driver.create, clCreateCommandQueueWithProperties(handle, device, list)) }
        } else {
            // SAFETY: the device belongs to the context.
            unsafe { create!(driver.create, clCreateCommandQueue(handle, device, flags)) }
        }
    }

    /// A command queue of the program, with the options that it was opened with.
    ///
    /// # Errors
    /// `InvalidArgument` for a queue of another context or device, and for one that is not in order.
    pub(crate) fn borrow_queue(
        &self,
        device: Raw,
        native: u64,
    ) -> Result<(Owned<CommandQueue>, QueueOptions)> {
        let native = usize::try_from(native).map_err(|_| Error::invalid("the handle is no pointer"))?;
        let raw = std::ptr::with_exposed_provenance_mut(native);
        // SAFETY: the caller vouches for the queue, and `value` has room for `size` bytes.
        let info = |key| unsafe { query!(self.driver, clGetCommandQueueInfo(raw, key)) };
        let number = |key| info(key).and_then(|bytes| decode_u64(&bytes));
        let is = |key, object: Raw| number(key) == Some(object.addr() as u64);
        if !is(CL_QUEUE_CONTEXT, self.handle.raw()) || !is(CL_QUEUE_DEVICE, device) {
            let message = "the queue is not of this device and its context; create it in the `cl_context` of `Device::native`";
            return Err(Error::invalid(message));
        }
        let flags = number(CL_QUEUE_PROPERTIES).unwrap_or(0);
        if flags & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0 {
            return Err(Error::invalid("the queue is out of order; create one that is in order"));
        }
        let timestamps = flags & CL_QUEUE_PROFILING_ENABLE != 0;
        // SAFETY: the driver knows the queue.
        let queue = unsafe { Owned::<CommandQueue>::retain(self.driver, raw) }?;
        Ok((queue, QueueOptions { timestamps, ..QueueOptions::default() }))
    }

    /// A small number that no other live kernel has.
    pub(crate) fn allocate_slot(&self) -> u32 {
        let mut slots = self.slots.lock();
        slots.free.pop().unwrap_or_else(|| {
            slots.next += 1;
            slots.next - 1
        })
    }

    /// Returns a kernel's number for reuse.
    pub(crate) fn free_slot(&self, slot: u32) {
        self.slots.lock().free.push(slot);
    }

    /// Enqueues a command and returns its event.
    #[inline]
    pub(crate) fn enqueue(
        &self,
        function: &'static str,
        call: impl FnOnce(&DispatchTable, *mut Raw) -> Option<cl_int>,
    ) -> Result<Owned<Event>> {
        let mut event = std::ptr::null_mut();
        match self.driver.call(function, |cl| call(cl, &raw mut event))? {
            // SAFETY: the driver has just created it.
            0 => Ok(unsafe { Owned::new(self.driver, event) }),
            code => Err(self.error(function, code)),
        }
    }

    /// Makes a call that returns an error code; a sticky one loses the device.
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

    /// The execution status of a command: positive while in flight, 0 when complete, negative if it failed.
    #[inline]
    pub(crate) fn status(&self, event: Raw) -> cl_int {
        let mut status: cl_int = 0;
        let (size, value, none) = (size_of::<cl_int>(), (&raw mut status).cast(), std::ptr::null_mut());
        let key = CL_EVENT_COMMAND_EXECUTION_STATUS;
        // SAFETY: the event is alive, and the status has that size.
        let queried = unsafe { call!(self.driver.call, clGetEventInfo(event, key, size, value, none)) };
        if matches!(queried, Ok(0)) {
            return status;
        }
        // A driver that cannot report the status has lost the command, which then counts as failed. Its memory is freed next, so
        // wait until it surely no longer runs.
        self.synchronise(event);
        queried.ok().filter(|code| *code < 0).unwrap_or(-1)
    }

    /// Makes the writes of completed commands visible, which a status query does not guarantee.
    #[inline]
    pub(crate) fn synchronise(&self, ended: Raw) {
        let _ = self.wait_event(ended);
    }

    /// Blocks in the driver until a command has ended. Returns whether that succeeded.
    #[inline]
    pub(crate) fn wait_event(&self, event: Raw) -> bool {
        // SAFETY: the event is alive.
        let waited = unsafe { call!(self.driver.call, clWaitForEvents(1, &raw const event)) };
        matches!(waited, Ok(0))
    }

    /// Blocks in the driver until everything on a queue has ended. Returns whether that succeeded.
    #[inline]
    pub(crate) fn finish_queue(&self, queue: Raw) -> bool {
        // SAFETY: the queue is alive.
        let waited = unsafe { call!(self.driver.call, clFinish(queue)) };
        matches!(waited, Ok(0))
    }

    /// The error for a code. The first sticky error is kept and returned for every later one.
    #[cold]
    pub(crate) fn error(&self, function: &str, code: cl_int) -> Error {
        let error = self.driver.error(function, code);
        if is_sticky(code) { self.lost.get_or_init(|| error).clone() } else { error }
    }

    /// Declares the device lost because of a failed command.
    #[cold]
    pub(crate) fn declare_lost(&self, code: cl_int) -> Error {
        let message = "a command failed and the device is lost; open it again or start another process";
        let error = Error::new(ErrorKind::DeviceLost, message);
        let error = error.with_driver(code_name(code), i64::from(code));
        self.lost.get_or_init(|| error).clone()
    }

    /// Fails if the device is lost, without a driver call.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}
