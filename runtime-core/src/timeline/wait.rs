//! Waiting for a ticket. A wait blocks in the backend until the ticket ends, or in short slices with a poll after each. It also
//! works while another thread closes the device.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::virtual_queue::{Cause, Location};
use super::{CLOSED, DeviceServices, LAST_PAUSE, LAST_TRIES, OPEN, Timeline, host_pool};
use crate::{Error, ErrorKind, Result};

/// The longest single wait in a backend.
const SLICE: Duration = Duration::from_millis(20);
/// The same while an edge is open: if its source fails, the wait might never end.
const EDGE_SLICE: Duration = Duration::from_millis(1);
/// The same on a serial device, whose only lock is held during the wait.
const SERIAL_SLICE: Duration = Duration::from_micros(50);
/// How long a wait allows for the device to be closed by another thread, which itself waits for the work.
const CLOSING: Duration = Duration::from_secs(10);
/// Rounds of waits that may return early before pauses are added.
const EAGER_ROUNDS: u64 = 64;
/// The pause between two polls where the backend cannot block.
const PAUSE: Duration = Duration::from_micros(50);

impl Timeline {
    /// Waits until `ticket` has a result, or until `deadline`.
    ///
    /// # Errors
    /// The ticket's failure; `Timeout`, which poisons nothing.
    pub(crate) fn wait(self: &Arc<Self>, ticket: u64, deadline: Option<Instant>) -> Result<()> {
        if let Some(result) = self.status(ticket) {
            return result;
        }
        if self.is_virtual() {
            let waited = self.on_real(ticket, |real, at| real.wait(at, deadline))?;
            return waited.map_or_else(|| self.status(ticket).unwrap_or(Ok(())), Ok);
        }
        let _blocked = host_pool::blocking();
        let Some(device) = self.device.upgrade() else {
            let in_time = |now| deadline.is_none_or(|deadline| now < deadline);
            self.while_closing(|now| self.status(ticket).is_none() && in_time(now));
            return self.after_close(ticket);
        };
        device.state().check()?;
        self.wait_open(ticket, deadline)
    }

    /// Waits until `ticket` has ended, successfully or not: a failed one may still use its memory.
    ///
    /// # Errors
    /// What prevents the poll; never the ticket's own failure.
    pub(crate) fn wait_ended(self: &Arc<Self>, ticket: u64, deadline: Option<Instant>) -> Result<()> {
        if self.is_virtual() {
            let real = self.to_real(ticket, Cause::Event);
            return real.map_or(Ok(()), |(real, at)| real.wait_ended(at, deadline));
        }
        match self.wait(ticket, deadline) {
            Err(error) if self.status(ticket).is_none() => return Err(error),
            _ => {}
        }
        let _blocked = host_pool::blocking();
        while self.maybe_running(ticket) {
            let Some(_open) = self.device.upgrade() else {
                self.while_closing(|_| !self.has_ended(ticket));
                return if self.maybe_running(ticket) { Err(self.cancelled()) } else { Ok(()) };
            };
            self.signal_and_flush(ticket)?;
            self.poll_queue()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.timeout(ticket));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Waits until the device has released host memory that is borrowed for `ticket`. A device that cannot be polled is
    /// declared lost.
    pub(crate) fn wait_host_memory_released(self: &Arc<Self>, ticket: u64, device: &dyn DeviceServices) {
        for _ in 0..LAST_TRIES {
            match self.wait_ended(ticket, None) {
                Ok(()) => return,
                Err(error) if device.state().is_lost() || device.state().must_leak() => return drop(error),
                Err(_) => std::thread::sleep(LAST_PAUSE),
            }
        }
        let error =
            Error::new(ErrorKind::DeviceLost, "the device stopped responding while using host memory");
        device.mark_lost(&error.on_device(&self.name));
    }

    /// Whether the device may still be running `ticket`, as of the last poll.
    pub(crate) fn maybe_running(&self, ticket: u64) -> bool {
        if let Location::Real(real, at) = self.locate(ticket) {
            return real.maybe_running(at);
        }
        !self.has_ended(ticket)
            && match self.device.upgrade() {
                Some(device) => !device.state().is_lost(),
                None => self.end.load(Ordering::Acquire) != CLOSED,
            }
    }

    /// Pauses while another thread closes the device and `waits` is true.
    fn while_closing(&self, waits: impl Fn(Instant) -> bool) {
        let deadline = Instant::now() + CLOSING;
        while self.end.load(Ordering::Acquire) == OPEN && Instant::now() < deadline && waits(Instant::now()) {
            std::thread::sleep(PAUSE);
        }
    }

    /// The result of `ticket` after a poll; `None` while it is in flight. Never blocks.
    pub(crate) fn poll_result(self: &Arc<Self>, ticket: u64) -> Result<Option<Result<()>>> {
        if let Some(result) = self.status(ticket) {
            return Ok(Some(result));
        }
        if self.is_virtual() {
            let polled = self.on_real(ticket, |real, at| real.poll_result(at))?;
            return Ok(polled.unwrap_or_else(|| self.status(ticket)));
        }
        let Some(device) = self.device.upgrade() else {
            // While another thread closes the device, which waits for the work, nothing is cancelled yet.
            let closing = self.end.load(Ordering::Acquire) == OPEN;
            return Ok(if closing { self.status(ticket) } else { Some(self.after_close(ticket)) });
        };
        device.state().check()?;
        self.signal_and_flush(ticket)?;
        self.poll_with_sources()?;
        Ok(self.status(ticket))
    }

    fn after_close(self: &Arc<Self>, ticket: u64) -> Result<()> {
        let _ = self.resolve_edges(true);
        self.status(ticket).unwrap_or_else(|| Err(self.cancelled()))
    }

    pub(super) fn cancelled(&self) -> Error {
        Error::new(ErrorKind::Cancelled, "the device was closed before this work ended").on_device(&self.name)
    }

    fn timeout(&self, ticket: u64) -> Error {
        Error::new(ErrorKind::Timeout, format!("ticket {ticket} timed out; the work is still running"))
            .in_operation("wait")
            .on_device(&self.name)
    }

    /// The same as [`Timeline::wait`], on a device that is known to be open.
    pub(crate) fn wait_open(self: &Arc<Self>, ticket: u64, deadline: Option<Instant>) -> Result<()> {
        self.resume()?;
        // At exit the driver is torn down while a host task may still run: it must not be blocked inside the driver.
        if deadline.is_none() && !host_pool::is_worker() && self.wait_blocking(ticket)? {
            self.poll_queue()?;
            if let Some(result) = self.status(ticket) {
                return result;
            }
        }
        self.signal_and_flush(ticket)?;
        for round in 0u64.. {
            host_pool::check_exit()?;
            self.poll_with_sources()?;
            if let Some(result) = self.status(ticket) {
                return result;
            }
            let mut slice = match (&self.serial, self.edge_count.load(Ordering::Acquire)) {
                (Some(_), _) => SERIAL_SLICE,
                (None, 0) => SLICE,
                (None, _) => EDGE_SLICE,
            };
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(self.timeout(ticket));
                }
                slice = slice.min(left);
            }
            if self.is_of_program() {
                std::thread::sleep(slice.min(PAUSE));
                continue;
            }
            let slice_ns = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
            // SAFETY: the queue is open and the ticket is signaled.
            self.raw("wait", |calls, queue| unsafe { (calls.wait)(queue, ticket, slice_ns) })?;
            if round > EAGER_ROUNDS {
                std::thread::sleep(slice.min(PAUSE));
            }
        }
        Ok(())
    }

    /// Blocks in the backend until `ticket` has ended; returns whether it did. Not done while another queue's failure may still
    /// arrive, for which core must poll, nor where it would hold the only lock of a serial device.
    fn wait_blocking(&self, ticket: u64) -> Result<bool> {
        if self.serial.is_some() || self.has_edges() || !self.can_block.load(Ordering::Relaxed) {
            return Ok(false);
        }
        // SAFETY: the queue is open, and the ticket was taken.
        match self.raw("wait", |calls, queue| unsafe { (calls.wait_blocking)(queue, ticket) }) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                self.can_block.store(false, Ordering::Relaxed);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
