//! An opened chip. A thread of its own makes the calls to it, one after the other, because a call to Kalray's library may never return.

#![allow(unsafe_code, reason = "calls the shim")]

use std::ffi::{CString, c_int, c_void};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use runtime_core::backend::Log;
use runtime_core::{Error, ErrorKind, Result};

use super::call_thread::{CallThread, Request, Started};
use super::call_timeout::Limits;
use super::call_watch::{CHECK_INTERVAL, Calls};
use super::functions::{Functions, check};
use super::shim::{Shim, firmware_name};
use super::simulator::Simulator;

/// Code of host-driven modules in messages.
const HOST_CODE: &str = "a host-driven module";

/// An opened chip; closed when everything made from it is dropped.
#[derive(Debug)]
pub struct Chip {
    shim: Arc<Shim>,
    limit: Duration,
    /// `None` once the chip is being closed.
    requests: Option<mpsc::Sender<Request>>,
    closed: Mutex<mpsc::Receiver<()>>,
    /// Ended after the chip is closed.
    simulator: Option<Simulator>,
    /// Dropped last: the chip may be opened again when they are gone.
    calls: Arc<Calls>,
}

/// How a chip is opened.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) board: u32,
    pub(super) firmware: CString,
    pub(super) simulator: Option<Simulator>,
    pub(super) limits: Limits,
    pub(super) calls: Arc<Calls>,
}

impl Chip {
    /// Opens the chip of a board, which takes seconds, without the log and the options of a device.
    ///
    /// # Errors
    /// `Driver`; `Timeout`; `InvalidArgument` for a firmware with a zero byte in its name.
    pub fn of_board(shim: &Arc<Shim>, board: u32, firmware: &str) -> Result<Arc<Self>> {
        let calls = Arc::new(Calls::new(&format!("chip {board}"), true, Log::silent()));
        let (firmware, limits) = (firmware_name(firmware)?, Limits::USUAL);
        Self::open(shim, Opening { board, firmware, simulator: None, limits, calls })
    }

    /// Opens a chip, and starts the thread that makes its calls.
    ///
    /// # Errors
    /// `Driver`; `Timeout`; `OutOfResources` if no thread can be started; `DeviceLost` with the simulator's output if it ends
    /// meanwhile.
    pub(super) fn open(shim: &Arc<Shim>, opening: Opening) -> Result<Arc<Self>> {
        let Opening { board, firmware, simulator, limits, calls } = opening;
        let thread = CallThread { functions: shim.functions, calls: Arc::clone(&calls), limits };
        let Started { requests, created, closed } = thread.start(board, firmware)?;
        let requests = Some(requests);
        let closed = Mutex::new(closed);
        let chip = Self { shim: Arc::clone(shim), limit: limits.call, requests, closed, simulator, calls };
        chip.explain(chip.wait(&created)?)?;
        chip.record_files()?;
        Ok(Arc::new(chip))
    }

    /// Checks that the chip answers, and that its simulator, if it has one, still runs.
    ///
    /// # Errors
    /// `DeviceLost`, with the simulator's output.
    pub(super) fn check_running(&self) -> Result<()> {
        self.while_running(|| ())
    }

    /// Whether the chip has a simulator. A call in progress may go on after that is lost.
    pub(super) const fn is_simulated(&self) -> bool {
        self.simulator.is_some()
    }

    /// Does something that must not be going on when the loss of the chip is reported, or after that.
    ///
    /// # Errors
    /// As [`Chip::check_running`].
    pub(super) fn while_running<T>(&self, act: impl FnOnce() -> T) -> Result<T> {
        self.calls.while_running(self.simulator.as_ref(), act)
    }

    /// Records what the library has made in the simulator's folder as the simulator's, if the chip has one.
    fn record_files(&self) -> Result<()> {
        self.simulator.as_ref().map_or(Ok(()), Simulator::record_files)
    }

    /// Locks something that is held during calls to the chip, which may never return.
    ///
    /// # Errors
    /// As [`Chip::check_running`].
    pub(super) fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>> {
        loop {
            self.check_running()?;
            if let Some(guard) = mutex.try_lock_for(CHECK_INTERVAL) {
                return Ok(guard);
            }
        }
    }

    /// Makes a call that does not run code. The chip is lost if it does not return in time.
    ///
    /// # Errors
    /// `kind`; as [`Chip::check_running`].
    pub(super) fn call<T: Send + 'static>(
        &self,
        kind: ErrorKind,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) -> (c_int, T) + Send + 'static,
    ) -> Result<T> {
        self.call_within(Some(self.limit), kind, function, call)
    }

    /// Makes a call that takes as long as it needs. The chip is not lost while it is in progress, unless it is simulated.
    ///
    /// # Errors
    /// As [`Chip::call`].
    pub(super) fn call_unlimited(
        &self,
        kind: ErrorKind,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) -> c_int + Send + 'static,
    ) -> Result<()> {
        self.call_within(None, kind, function, |functions, handle| (call(functions, handle), ()))
    }

    fn call_within<T: Send + 'static>(
        &self,
        limit: Option<Duration>,
        kind: ErrorKind,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) -> (c_int, T) + Send + 'static,
    ) -> Result<T> {
        let answer = self.request(limit, function, call)?;
        let (code, value) = self.wait(&answer)?;
        self.explain(check(kind, function, code))?;
        Ok(value)
    }

    /// Makes a call that releases something, and waits for it, unless code runs or memory of the caller is transferred: the call is made
    /// after that. A failure leaves nothing to do.
    pub(super) fn release(
        &self,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) + Send + 'static,
    ) {
        self.release_within(Some(self.limit), function, call);
    }

    /// As [`Chip::release`], with code of this process, which may take any time.
    pub(super) fn release_host_code(&self, release: impl FnOnce() + Send + 'static) {
        self.release_within(None, HOST_CODE, |_, _| release());
    }

    fn release_within(
        &self,
        limit: Option<Duration>,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) + Send + 'static,
    ) {
        let Ok(answer) = self.request(limit, function, call) else { return };
        while !self.calls.has_unlimited()
            && answer.recv_timeout(CHECK_INTERVAL) == Err(mpsc::RecvTimeoutError::Timeout)
            && self.check_running().is_ok()
        {}
    }

    /// Runs code of this process that calls the library itself, with the address of the structures that it takes.
    ///
    /// # Errors
    /// As [`Chip::check_running`].
    pub(super) fn run_host_code(&self, run: impl FnOnce(*mut c_void) + Send + 'static) -> Result<()> {
        self.call_unlimited(ErrorKind::Failed, HOST_CODE, |functions, handle| {
            // SAFETY: the handle is open.
            run(unsafe { (functions.common_structures)(handle) });
            0
        })?;
        self.check_running()
    }

    /// Size of a command.
    pub(super) fn command_bytes(&self) -> u64 {
        // SAFETY: returns the size of a structure.
        unsafe { (self.shim.functions.command_bytes)() }
    }

    /// A command that runs `function` with the arguments at an address.
    pub(super) fn command(&self, function: u64, arguments: u64) -> Vec<u8> {
        let bytes = self.command_bytes();
        let mut command = vec![0u64; usize::try_from(bytes.div_ceil(8)).unwrap_or(0)];
        // SAFETY: there is room for the structure, aligned as any structure of integers is.
        unsafe { (self.shim.functions.command)(command.as_mut_ptr().cast(), function, arguments) };
        command.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    /// Passes a call on to the thread. Its result arrives unless the chip is lost.
    fn request<T: Send + 'static>(
        &self,
        limit: Option<Duration>,
        function: &str,
        call: impl FnOnce(&Functions, *mut c_void) -> T + Send + 'static,
    ) -> Result<mpsc::Receiver<T>> {
        self.check_running()?;
        let (send, answer) = mpsc::channel();
        let call = Box::new(move |functions: &Functions, handle| {
            // Nobody may wait for it any more.
            let _ = send.send(call(functions, handle));
        });
        let request = Request { function: function.to_owned(), limit, call };
        if let Some(requests) = &self.requests {
            // Without the thread, the answer never comes.
            let _ = requests.send(request);
        }
        Ok(answer)
    }

    /// Waits for the result of a call.
    fn wait<T>(&self, answer: &mpsc::Receiver<T>) -> Result<T> {
        loop {
            match answer.recv_timeout(CHECK_INTERVAL) {
                Ok(answer) => return Ok(answer),
                Err(mpsc::RecvTimeoutError::Timeout) => self.check_running()?,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    self.check_running()?;
                    return Err(Error::new(ErrorKind::Internal, "the thread of the chip has ended"));
                }
            }
        }
    }

    /// The end of the simulator explains any failure.
    fn explain(&self, result: Result<()>) -> Result<()> {
        result.or_else(|error| self.check_running().and(Err(error)))
    }
}

impl Drop for Chip {
    fn drop(&mut self) {
        let is_running = self.check_running().is_ok();
        drop(self.requests.take());
        if is_running {
            // Lost if the library does not close it in time, which is logged.
            let _ = self.wait(&self.closed.lock());
        }
    }
}
