//! The primary context of a device: retained and never reset, since other libraries of the process share it. Records the first
//! fault, which loses the device.

#![allow(unsafe_code, reason = "calls the driver")]

use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use runtime_core::backend::HostBorrowGuard;
use runtime_core::{Error, ErrorKind, Result};

use crate::driver::abi::{self, Context, CuResult, NO_TIMING, NON_BLOCKING, Ordinal, Stream};
use crate::driver::{Driver, is_sticky};
use crate::interner::Interner;
use crate::launch_log::LaunchLog;

/// Most running kernels that an error names, one per queue.
const MAX_NAMED_QUEUES: usize = 4;

/// `CU_STREAM_PER_THREAD`.
const PER_THREAD_STREAM: u64 = 2;

/// A retained primary context. What an open device owns in it is in [`crate::device_state`].
#[derive(Debug)]
pub(crate) struct PrimaryContext {
    pub(crate) driver: &'static Driver,
    pub(crate) ordinal: Ordinal,
    pub(crate) context: Context,
    pub(crate) kernel_names: Interner,
    /// Of the open queues.
    launch_logs: Mutex<Vec<Weak<LaunchLog>>>,
    host_borrows: HostBorrowGuard,
    /// The first sticky error.
    fault: OnceLock<Error>,
}

/// Makes a context current on this thread until it is dropped, which restores the previous one.
#[derive(Debug)]
pub(crate) struct CurrentContext<'a>(&'a Driver);

impl<'a> CurrentContext<'a> {
    /// Makes a retained context current.
    ///
    /// # Errors
    /// The driver's code.
    #[inline]
    pub(crate) fn push(driver: &'a Driver, context: Context) -> std::result::Result<Self, CuResult> {
        // SAFETY: the context is retained.
        let code = unsafe { (driver.cuCtxPushCurrent_v2)(context.0) };
        if code.is_success() { Ok(Self(driver)) } else { Err(code) }
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let mut popped = Context::NULL;
        // SAFETY: pops what was pushed on this thread.
        let _ = unsafe { (self.0.cuCtxPopCurrent_v2)(&raw mut popped.0) };
    }
}

impl PrimaryContext {
    /// Retains the primary context of a device.
    ///
    /// # Errors
    /// Any error of the driver; `DeviceLost` if an earlier fault left the context unusable.
    pub(crate) fn open(driver: &'static Driver, ordinal: Ordinal) -> Result<Self> {
        let mut context = Context::NULL;
        // SAFETY: the out-parameter is writable, and the device exists.
        let code = unsafe { (driver.cuDevicePrimaryCtxRetain)(&raw mut context.0, ordinal) };
        driver.check("cuDevicePrimaryCtxRetain", code)?;
        let primary = Self {
            driver,
            ordinal,
            context,
            kernel_names: Interner::default(),
            launch_logs: Mutex::default(),
            host_borrows: HostBorrowGuard::default(),
            fault: OnceLock::new(),
        };
        // Fails if an earlier fault left the context unusable.
        primary.memory_info()?;
        Ok(primary)
    }

    /// Makes the context current on this thread, for the driver calls that require it.
    #[inline]
    pub(crate) fn make_current(&self) -> Result<CurrentContext<'_>> {
        CurrentContext::push(self.driver, self.context).map_err(|code| self.fail("cuCtxPushCurrent", code))
    }

    /// Turns a code into a result; a sticky code loses the device.
    #[inline]
    pub(crate) fn check(&self, function: &str, code: CuResult) -> Result<()> {
        if code.is_success() { Ok(()) } else { Err(self.fail(function, code)) }
    }

    /// The error for a code. A sticky code loses the device: from then on every error is the first fault.
    #[cold]
    pub(crate) fn fail(&self, function: &str, code: CuResult) -> Error {
        if let Err(fault) = self.check_alive() {
            return fault;
        }
        let error = self.driver.error(function, code);
        if !is_sticky(code) {
            return error;
        }
        let error = match self.running_kernels().as_slice() {
            [] => error,
            kernels => error.with_note(format_args!("most likely running: {}", kernels.join(", "))),
        };
        self.lose(self.fault.get_or_init(|| error))
    }

    /// Fails with the first fault if the device is lost; nothing touches borrowed host memory after that.
    #[inline]
    pub(crate) fn check_alive(&self) -> Result<()> {
        self.fault.get().map_or(Ok(()), |fault| Err(self.lose(fault)))
    }

    /// Revokes the borrows of host memory, before the fault is reported and after it is recorded: an access that is denied
    /// finds the fault.
    #[cold]
    fn lose(&self, fault: &Error) -> Error {
        self.host_borrows.revoke();
        fault.clone()
    }

    /// Runs `copy`, which accesses borrowed host memory.
    ///
    /// # Errors
    /// The first fault if the device is lost; `copy` is not run then.
    pub(crate) fn access_borrowed(&self, copy: impl FnOnce()) -> Result<()> {
        if self.host_borrows.access(copy) { Ok(()) } else { self.check_alive() }
    }

    /// The oldest kernel of each queue that is not known to have ended.
    fn running_kernels(&self) -> Vec<String> {
        let logs: Vec<_> = self.launch_logs.lock().iter().filter_map(Weak::upgrade).collect();
        let found = logs.iter().filter_map(|log| {
            let (ticket, name) = log.oldest_running()?;
            Some(format!("kernel `{}` (ticket {ticket})", self.kernel_names.resolve(name)))
        });
        found.take(MAX_NAMED_QUEUES).collect()
    }

    /// A log of launches, for a new queue.
    pub(crate) fn open_log(&self) -> Arc<LaunchLog> {
        let (log, mut logs) = (Arc::new(LaunchLog::new()), self.launch_logs.lock());
        logs.retain(|known| known.strong_count() > 0);
        logs.push(Arc::downgrade(&log));
        log
    }

    /// Makes a call that writes a value, for which the context is current.
    pub(crate) fn query<T>(
        &self,
        function: &str,
        mut value: T,
        call: impl FnOnce(&'static Driver, &mut T) -> CuResult,
    ) -> Result<T> {
        let _current = self.make_current()?;
        let code = call(self.driver, &mut value);
        self.check(function, code).map(|()| value)
    }

    /// Free and total bytes of the device's memory.
    pub(crate) fn memory_info(&self) -> Result<(usize, usize)> {
        self.query("cuMemGetInfo", (0, 0), |driver, (free, total)| {
            // SAFETY: the out-parameters are writable, and the context is current.
            unsafe { (driver.cuMemGetInfo_v2)(free, total) }
        })
    }

    /// Creates a stream; a higher priority runs first, and 0 is normal.
    pub(crate) fn open_stream(&self, priority: i32) -> Result<Stream> {
        let range = self.query("cuCtxGetStreamPriorityRange", (0, 0), |driver, (least, greatest)| {
            // SAFETY: the out-parameters are writable, and the context is current.
            unsafe { (driver.cuCtxGetStreamPriorityRange)(least, greatest) }
        });
        let (least, greatest) = range?;
        let priority = priority.saturating_neg().max(greatest).min(least);
        self.query("cuStreamCreate", Stream::NULL, |driver, stream| {
            // SAFETY: the out-parameter is writable, and the context is current.
            unsafe { (driver.cuStreamCreateWithPriority)(&raw mut stream.0, NON_BLOCKING, priority) }
        })
    }

    /// A stream that the program has opened.
    ///
    /// # Errors
    /// `InvalidArgument` for a stream of another context, and for the default stream of a thread.
    pub(crate) fn borrow_stream(&self, native: u64) -> Result<Stream> {
        if native == PER_THREAD_STREAM {
            let message =
                "the default stream of a thread is another stream on every thread; pass one that was created";
            return Err(Error::invalid(message));
        }
        let native = usize::try_from(native).map_err(|_| Error::invalid("the handle is no pointer"))?;
        let stream = Stream(std::ptr::with_exposed_provenance_mut(native));
        let Some(calls) = self.driver.stream_context else {
            return Err(Error::unsupported("the driver cannot tell the context of a stream; update it"));
        };
        let context = self.query("cuStreamGetCtx", Context::NULL, |_, context| {
            // SAFETY: the caller vouches for the stream; the out-parameter is writable.
            unsafe { (calls.cuStreamGetCtx)(stream.0, &raw mut context.0) }
        })?;
        if context == self.context {
            return Ok(stream);
        }
        let message = format!("the stream is not of the primary context of cuda:{}", self.ordinal);
        Err(Error::invalid(message))
    }

    /// Destroys a stream that is no longer in use; the driver completes the work on it.
    pub(crate) fn close_stream(&self, stream: Stream) {
        if stream != Stream::NULL
            && let Ok(_current) = self.make_current()
        {
            // SAFETY: the caller owns it.
            let _ = unsafe { (self.driver.cuStreamDestroy_v2)(stream.0) };
        }
    }

    /// Creates an event, with or without timing.
    pub(crate) fn open_event(&self, timing: bool) -> Result<abi::Event> {
        let flags = if timing { 0 } else { NO_TIMING };
        self.query("cuEventCreate", abi::Event::NULL, |driver, event| {
            // SAFETY: the out-parameter is writable, and the context is current.
            unsafe { (driver.cuEventCreate)(&raw mut event.0, flags) }
        })
    }

    /// Destroys events that are no longer in use.
    pub(crate) fn close_events(&self, events: impl IntoIterator<Item = abi::Event>) {
        let Ok(_current) = self.make_current() else { return };
        for event in events {
            // SAFETY: the caller owns it; the driver keeps what it still needs.
            let _ = unsafe { (self.driver.cuEventDestroy_v2)(event.0) };
        }
    }

    /// Whether all work before an event has ended.
    #[inline]
    pub(crate) fn is_event_complete(&self, event: abi::Event) -> Result<bool> {
        // SAFETY: the event is alive.
        match unsafe { (self.driver.cuEventQuery)(event.0) } {
            CuResult::CUDA_SUCCESS => Ok(true),
            CuResult::CUDA_ERROR_NOT_READY => Ok(false),
            code => Err(self.fail("cuEventQuery", code)),
        }
    }

    /// Whether all work on a stream has ended.
    pub(crate) fn is_stream_idle(&self, stream: Stream) -> Result<bool> {
        // SAFETY: the stream is alive.
        match unsafe { (self.driver.cuStreamQuery)(stream.0) } {
            CuResult::CUDA_SUCCESS => Ok(true),
            CuResult::CUDA_ERROR_NOT_READY => Ok(false),
            code => Err(self.fail("cuStreamQuery", code)),
        }
    }
    /// Whether an error means that the device is lost.
    pub(crate) fn is_lost(error: &Error) -> bool {
        error.kind() == ErrorKind::DeviceLost
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: retained once, released once.
        let _ = unsafe { (self.driver.cuDevicePrimaryCtxRelease_v2)(self.ordinal) };
    }
}
