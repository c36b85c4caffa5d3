//! Queues.

use std::time::Duration;

use super::Kernel;
use crate::abi::{Progress, SubmitInfo};
use crate::backend::{Buffer, FillPattern, HostBytes, HostBytesMut, Launch, NativeHandle};
use crate::{Error, ErrorKind, Result};

/// An in-order queue. A submission returns without waiting; if it fails, its ticket has not been taken.
pub trait Queue: Send + Sync + 'static {
    /// A buffer of the device.
    type Buffer: Buffer;
    /// A kernel of the device.
    type Kernel: Kernel;
    /// A graph of the device.
    type Graph;

    /// Submits a kernel launch. The arguments are valid during the call; the buffers live until the ticket
    /// ends.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn launch(
        &self,
        submit: SubmitInfo,
        kernel: &Self::Kernel,
        launch: &Launch<'_, Self::Buffer>,
    ) -> Result<()>;

    /// Claims `ticket` for a launch on the calling thread, if the queue is idle. If this returns true, core
    /// calls `run_inline`.
    fn try_begin_inline(&self, _ticket: u64) -> bool {
        false
    }

    /// Runs a claimed launch on the calling thread and ends its ticket.
    ///
    /// # Errors
    /// The failure of the kernel, which also fails the ticket.
    fn run_inline(
        &self,
        _ticket: u64,
        _kernel: &Self::Kernel,
        _launch: &Launch<'_, Self::Buffer>,
    ) -> Result<()> {
        Err(Error::new(ErrorKind::Internal, "`run_inline` without a successful `try_begin_inline`"))
    }

    /// Runs a claimed no-op launch along the same path as [`Queue::run_inline`], and ends its ticket.
    ///
    /// # Errors
    /// `Internal` by default.
    fn run_inline_noop(&self, _ticket: u64) -> Result<()> {
        Err(Error::new(ErrorKind::Internal, "`run_inline` without a successful `try_begin_inline`"))
    }

    /// Submits a copy from host memory to a buffer. The host memory stays valid until the ticket ends.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn write(
        &self,
        submit: SubmitInfo,
        destination: &Self::Buffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()>;

    /// Submits a copy from a buffer to host memory. The host memory stays valid until the ticket ends.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn read(
        &self,
        submit: SubmitInfo,
        source: &Self::Buffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()>;

    /// Submits a copy between buffers of this backend.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn copy(
        &self,
        submit: SubmitInfo,
        destination: (&Self::Buffer, u64),
        source: (&Self::Buffer, u64),
        bytes: u64,
    ) -> Result<()>;

    /// Submits a pitched 2-D copy between buffers of this backend. With the capability `ROWS` it must work
    /// between any two buffers of the device.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken. On `Unsupported`, the default, core falls back to other
    /// copies.
    fn copy_2d(&self, _submit: SubmitInfo, _rows: &Copy2D<'_, Self::Buffer>) -> Result<()> {
        Err(Error::unsupported("copy_2d is not supported"))
    }

    /// Submits a fill of `bytes` bytes with a repeated pattern.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn fill(
        &self,
        submit: SubmitInfo,
        destination: (&Self::Buffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()>;

    /// Submits a no-op kernel.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn noop(&self, _submit: SubmitInfo) -> Result<()> {
        Err(Error::unsupported("noop is not supported"))
    }

    /// Submits a device timestamp.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn timestamp(&self, _submit: SubmitInfo) -> Result<()> {
        Err(Error::unsupported("timestamp is not supported"))
    }

    /// Reads the timestamp of an ended ticket, in nanoseconds of the device's clock.
    ///
    /// # Errors
    /// `Unsupported` by default; `NotFound` if the ticket is not a timestamp or has been read already.
    fn read_timestamp(&self, _ticket: u64) -> Result<u64> {
        Err(Error::unsupported("read_timestamp is not supported"))
    }

    /// Submits a native graph under one ticket.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn replay(&self, _submit: SubmitInfo, _graph: &Self::Graph) -> Result<()> {
        Err(Error::unsupported("replay is not supported"))
    }

    /// Submits foreign work: calls `work` once, on this thread, with the objects of the queue. What it hands to the driver runs
    /// behind earlier submissions, and before later ones; the ticket ends with it. Once `work` has been called this must succeed:
    /// work whose end cannot be observed is waited for.
    ///
    /// # Errors
    /// `Unsupported` by default; core then runs the work once everything before it has ended. Any kind before `work` is called;
    /// the ticket is then not taken.
    fn submit_native(&self, _submit: SubmitInfo, _work: &mut dyn FnMut(&[NativeHandle])) -> Result<()> {
        Err(Error::unsupported("native work is not supported"))
    }

    /// Makes the completion of the last submission, `ticket`, individually observable.
    ///
    /// # Errors
    /// Any error of the driver.
    fn signal(&self, _ticket: u64) -> Result<()> {
        Ok(())
    }

    /// Submits batched work to the driver.
    ///
    /// # Errors
    /// Any error of the driver.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Reports the progress of the queue. Never blocks.
    ///
    /// # Errors
    /// `DeviceLost`.
    fn poll(&self) -> Result<Progress>;

    /// Waits about `slice` at most for a signaled ticket; may return early.
    ///
    /// # Errors
    /// `DeviceLost`.
    fn wait(&self, ticket: u64, slice: Duration) -> Result<()>;

    /// Blocks in the driver until `ticket` has ended; may return early. The ticket need not be signaled or
    /// flushed. Must not wait for later tickets or hold up other calls. For drivers whose own wait is faster
    /// than polling.
    ///
    /// # Errors
    /// `Unsupported` by default; core then signals, flushes and waits in slices. `DeviceLost`.
    fn wait_blocking(&self, _ticket: u64) -> Result<()> {
        Err(Error::unsupported("wait_blocking is not supported"))
    }

    /// Makes later submissions wait, on the device, until `ticket` of `other` has ended. This is an execution
    /// dependency only: they run even if the ticket failed, because core decides which failures propagate.
    /// Must not block: core holds locks during the call.
    ///
    /// # Errors
    /// `Unsupported` by default, and for anything the device cannot wait for; core then blocks the submitting
    /// thread instead, with a deadline and without holding locks.
    fn wait_for(&self, _other: &Self, _ticket: u64) -> Result<()> {
        Err(Error::unsupported("wait_for is not supported"))
    }

    /// Holds the queue: launches, no-ops and timestamps submitted from now on do not start until [`Queue::resume`]. Earlier
    /// work is not affected. End the hold before a submission that cannot be held, or that would block because the
    /// driver's queue is full.
    ///
    /// # Errors
    /// `Unsupported` by default; any error of the driver. The queue is then not held.
    fn hold(&self) -> Result<()> {
        Err(Error::unsupported("hold is not supported"))
    }

    /// Ends a hold, if there is one, and submits the held work to the driver. Returns whether the queue was held until
    /// now. May be called during any other call; core calls it before it waits for held work.
    ///
    /// # Errors
    /// Any error of the driver.
    fn resume(&self) -> Result<bool> {
        Ok(false)
    }

    /// The error of the ticket `first_failed`.
    fn failure(&self) -> Option<Error>;
}

/// A pitched 2-D copy, e.g. of a block of columns. Source and destination do not overlap.
#[derive(Debug)]
pub struct Copy2D<'a, B> {
    /// Destination buffer, and offset of the first byte written.
    pub destination: (&'a B, u64),
    /// Bytes between the starts of consecutive destination rows; at least `row_bytes`.
    pub destination_pitch: u64,
    /// Source buffer, and offset of the first byte read.
    pub source: (&'a B, u64),
    /// Bytes between the starts of consecutive source rows; at least `row_bytes`.
    pub source_pitch: u64,
    /// Bytes per row; at least 1.
    pub row_bytes: u64,
    /// Number of rows; at least 1.
    pub rows: u64,
}

impl<B> Copy2D<'_, B> {
    /// Bytes from the first byte of the first row to the last byte of the last row, with rows `pitch` bytes
    /// apart.
    #[must_use]
    pub const fn span_bytes(&self, pitch: u64) -> u64 {
        pitch.saturating_mul(self.rows.saturating_sub(1)).saturating_add(self.row_bytes)
    }
}
