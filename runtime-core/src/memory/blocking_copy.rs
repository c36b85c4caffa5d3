//! Blocking copies between host memory and a buffer: by the CPU if the buffer is host-visible, otherwise as submissions
//! on an internal queue of the device.
//!
//! No lock is held while bytes move. A copy is recorded as an access with a ticket, like any other, so that later work
//! waits for it. While the CPU copies or submits, the ticket is one of the host's timeline, and a conflicting
//! submission blocks its thread. Afterwards the ticket is that of the last submission, and a conflicting submission
//! waits on the device, if the device can.

#![allow(unsafe_code, reason = "touches memory of a buffer, and calls the functions of a backend's table")]

use std::sync::Arc;

use crate::abi::{self, Handle, QueueCalls, Status, SubmitInfo};
use crate::memory::buffer::Buffer;
use crate::model::byte_range::check_range;
use crate::model::pitched::Rows;
use crate::timeline::Timeline;
use crate::timeline::hazards::{HOST, Use};
use crate::timeline::host_access::with_host_access;
use crate::{Access, ErrorKind, Result};

/// Pattern sizes that a queue can fill with.
pub(crate) const PATTERN_BYTES: [usize; 5] = [1, 2, 4, 8, 16];
/// Bytes per write of a fill that the device cannot do itself.
const PIECE_BYTES: usize = 1 << 20;
/// Up to this many rows, a fill of each is faster than copies from a filled buffer.
const FEW_ROWS: usize = 8;
/// With more rows than this, filling each takes longer than a detour through host memory.
const MANY_ROWS: usize = 4096;
/// Up to this size, gaps included, the time of a transfer is its latency.
const SMALL_SPAN_BYTES: usize = 64 << 10;

/// Copies by the program to or from one buffer.
pub(crate) struct BlockingCopy<'a> {
    buffer: &'a Buffer,
    /// A queue of the device for these copies alone; `None` where the memory is host-visible.
    queue: Option<Arc<Timeline>>,
    /// The last ticket submitted; 0 if there is none, or it has ended.
    in_flight: u64,
    /// A staging buffer that the submissions use in addition.
    staging: Option<Buffer>,
}

/// Waits for work that conflicts with `access`, lets `start` copy bytes or submit copies, and waits until the bytes have
/// moved. With [`Access::Write`] the whole content is replaced, which clears the failure of an earlier writer.
///
/// # Errors
/// `InvalidArgument` for a frozen or mapped buffer; the failure of the work that wrote what is read, or kept in part; the
/// failure of the copy itself.
pub(crate) fn exclusively<'a>(
    buffer: &'a Buffer,
    access: Access,
    start: impl FnOnce(&mut BlockingCopy<'a>) -> Result<()>,
) -> Result<()> {
    let mut copy = BlockingCopy::new(buffer)?;
    let transfer = Transfer::begin(buffer, access)?;
    let started = start(&mut copy);
    transfer.end(&copy, started.is_ok());
    started?;
    copy.wait()?;
    if let Some(queue) = &copy.queue {
        // Otherwise every later launch would look up this queue. A failed copy stays recorded: its result is unknown.
        buffer.hazards.lock().forget(queue.id);
    }
    Ok(())
}

/// A recorded access of the program to a buffer. Conflicting work waits for it, but not for a lock.
struct Transfer<'a> {
    buffer: &'a Buffer,
    access: Access,
    /// Of the program, lent for this access; `ticket` is its last.
    timeline: Arc<Timeline>,
    ticket: u64,
    /// The last writer before this access.
    writer: Use,
}

impl<'a> Transfer<'a> {
    /// Waits for conflicting work, and records the access.
    fn begin(buffer: &'a Buffer, access: Access) -> Result<Self> {
        let timeline = buffer.device.take_program_timeline();
        let (ticket, queue) = (timeline.begin_by_program(), timeline.id);
        let mut transfer = Self { buffer, access, timeline, ticket, writer: Use { queue: HOST, ticket: 0 } };
        with_host_access(&buffer.device, &buffer.hazards, (access, queue), |hazards| {
            if access.writes() {
                // Under the lock: it may be frozen while this waits.
                buffer.check_writable("write")?;
            }
            hazards.check_unmapped(access)?;
            transfer.writer = hazards.writer();
            hazards.record(access, Use { queue, ticket });
            Ok(())
        })?;
        Ok(transfer)
    }

    /// Replaces the record by that of the last submission of `copy`, if there is one.
    fn end(self, copy: &BlockingCopy<'_>, succeeded: bool) {
        let mut hazards = self.buffer.hazards.lock();
        hazards.forget(self.timeline.id);
        match &copy.queue {
            Some(queue) if copy.in_flight != 0 => {
                hazards.record(self.access, Use { queue: queue.id, ticket: copy.in_flight });
            }
            _ if self.access.writes() && !succeeded => hazards.restore_writer(self.writer),
            _ => {}
        }
    }
}

impl Drop for Transfer<'_> {
    fn drop(&mut self) {
        self.timeline.complete(self.ticket);
        self.buffer.device.give_back_program_timeline(self.timeline.clone());
    }
}

impl<'a> BlockingCopy<'a> {
    fn new(buffer: &'a Buffer) -> Result<Self> {
        let is_host_visible = !buffer.host_pointer.is_null() || buffer.bytes == 0;
        let queue = if is_host_visible { None } else { Some(buffer.device.take_transfer_queue()?) };
        Ok(Self { buffer, queue, in_flight: 0, staging: None })
    }

    /// Copies `source` into the buffer at `offset`.
    pub(crate) fn write(&mut self, offset: usize, source: &'a [u8]) -> Result<()> {
        // SAFETY: `source` is borrowed until the copy has ended.
        unsafe { self.submit_write(offset, source) }
    }

    /// The same, and waits until the bytes have moved.
    pub(crate) fn write_now(&mut self, offset: usize, source: &[u8]) -> Result<()> {
        // SAFETY: the wait below ends before `source` does.
        let submitted = unsafe { self.submit_write(offset, source) };
        submitted.and(self.wait())
    }

    /// # Safety
    /// `source` lives until the copy has ended.
    unsafe fn submit_write(&mut self, offset: usize, source: &[u8]) -> Result<()> {
        check_within(self.buffer, offset, source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        let buffer = self.buffer;
        if !buffer.host_pointer.is_null() {
            // SAFETY: the range was checked.
            let destination = unsafe { buffer.host_pointer.add(offset) };
            // SAFETY: host-visible memory that nothing else touches during this access; a slice cannot overlap it.
            unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), destination, source.len()) };
            return Ok(());
        }
        self.submit("write", |calls, queue, submit| {
            let (offset, bytes) = (offset as u64, source.len() as u64);
            // SAFETY: the caller's promise.
            unsafe { (calls.write)(queue, submit, buffer.handle, offset, source.as_ptr(), bytes) }
        })
    }

    /// Copies from the buffer at `offset`.
    pub(crate) fn read(&mut self, offset: usize, destination: &'a mut [u8]) -> Result<()> {
        // SAFETY: `destination` is borrowed until the copy has ended.
        unsafe { self.submit_read(offset, destination) }
    }

    /// The same, and waits until the bytes have moved.
    pub(crate) fn read_now(&mut self, offset: usize, destination: &mut [u8]) -> Result<()> {
        // SAFETY: the wait below ends before `destination` does.
        let submitted = unsafe { self.submit_read(offset, destination) };
        submitted.and(self.wait())
    }

    /// # Safety
    /// `destination` lives, and is not touched, until the copy has ended.
    unsafe fn submit_read(&mut self, offset: usize, destination: &mut [u8]) -> Result<()> {
        check_within(self.buffer, offset, destination.len())?;
        if destination.is_empty() {
            return Ok(());
        }
        let buffer = self.buffer;
        let (pointer, bytes) = (destination.as_mut_ptr(), destination.len());
        if !buffer.host_pointer.is_null() {
            // SAFETY: the range was checked.
            let source = unsafe { buffer.host_pointer.add(offset) };
            // SAFETY: host-visible memory that nothing writes during this access; a slice cannot overlap it.
            unsafe { std::ptr::copy_nonoverlapping(source, pointer, bytes) };
            return Ok(());
        }
        self.submit("read", |calls, queue, submit| {
            // SAFETY: the caller's promise.
            unsafe { (calls.read)(queue, submit, buffer.handle, offset as u64, pointer, bytes as u64) }
        })
    }

    /// Repeats `pattern`, of any length that divides `bytes`, from `offset` on. Needs little memory, however large the
    /// range.
    pub(crate) fn fill(&mut self, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
        check_within(self.buffer, offset, bytes)?;
        if bytes == 0 || self.fill_on_device(self.buffer.handle, (offset, bytes), pattern)? {
            return Ok(());
        }
        self.write_repeated(std::iter::once(offset), bytes, pattern)
    }

    /// Repeats `pattern` over `bytes` bytes from each of the `offsets` on, by writes of the program.
    fn write_repeated(
        &mut self,
        offsets: impl Iterator<Item = usize>,
        bytes: usize,
        pattern: &[u8],
    ) -> Result<()> {
        let piece = pattern.repeat((PIECE_BYTES / pattern.len()).clamp(1, bytes / pattern.len()));
        for offset in offsets {
            for at in (0..bytes).step_by(piece.len()) {
                self.write_now(offset + at, &piece[..piece.len().min(bytes - at)])?;
            }
        }
        Ok(())
    }

    /// Fills a view with `pattern`, given as copies of rows of one length from `bytes` bytes without gaps. Returns whether it
    /// can be done without more host memory; if not, the view may be filled in part.
    pub(crate) fn fill_pieces(
        &mut self,
        pieces: impl Iterator<Item = (Rows, Rows)> + Clone,
        bytes: usize,
        pattern: &[u8],
    ) -> Result<bool> {
        let Some((first, _)) = pieces.clone().next() else { return Ok(false) };
        // If the pattern ends with each row, all rows have the same content.
        let is_periodic = first.row_bytes.is_multiple_of(pattern.len());
        let offsets =
            pieces.clone().flat_map(|(to, _)| (0..to.rows).map(move |row| to.offset + row * to.pitch_bytes));
        if self.queue.is_none() {
            if is_periodic {
                self.write_repeated(offsets, first.row_bytes, pattern)?;
            }
            return Ok(is_periodic);
        }
        let has_at_most = |rows: usize| is_periodic && offsets.clone().take(rows + 1).count() <= rows;
        if !has_at_most(FEW_ROWS) && self.copy_filled(pieces, bytes, pattern)? {
            return Ok(true);
        }
        Ok(has_at_most(MANY_ROWS) && self.fill_rows(offsets, first.row_bytes, pattern)?)
    }

    /// Fills `bytes` bytes from each of the `offsets` on; returns whether the device can.
    fn fill_rows(
        &mut self,
        mut offsets: impl Iterator<Item = usize>,
        bytes: usize,
        pattern: &[u8],
    ) -> Result<bool> {
        let buffer = self.buffer;
        offsets.try_fold(true, |filled, offset| {
            check_within(buffer, offset, bytes)?;
            Ok(filled && self.fill_on_device(buffer.handle, (offset, bytes), pattern)?)
        })
    }

    /// Fills a dense buffer, and copies its rows to those of the view; returns whether the device can.
    fn copy_filled(
        &mut self,
        pieces: impl Iterator<Item = (Rows, Rows)>,
        bytes: usize,
        pattern: &[u8],
    ) -> Result<bool> {
        let buffer = self.buffer;
        if !buffer.device.info.capabilities.has(abi::CAP_COPY_2D) || !PATTERN_BYTES.contains(&pattern.len()) {
            return Ok(false);
        }
        // If it cannot be allocated, the caller takes the fallback.
        let Ok(dense) = buffer.scratch(bytes) else { return Ok(false) };
        let dense = self.staging.insert(dense).handle;
        if !self.fill_on_device(dense, (0, bytes), pattern)? {
            return Ok(false);
        }
        for (to, from) in pieces {
            check_within(buffer, to.offset, to.span_bytes())?;
            if !if_supported(self.copy_2d((buffer.handle, to), (dense, from)))? {
                // The fill of the scratch buffer is in flight; the fallback does not use it.
                return self.wait().map(|()| false);
            }
        }
        Ok(true)
    }

    /// Fills bytes of a buffer of the device; returns whether it can.
    fn fill_on_device(
        &mut self,
        buffer: Handle,
        (offset, bytes): (usize, usize),
        pattern: &[u8],
    ) -> Result<bool> {
        if self.queue.is_none() || !PATTERN_BYTES.contains(&pattern.len()) {
            return Ok(false);
        }
        if_supported(self.submit("fill", |calls, queue, submit| {
            let pattern_bytes = u32::try_from(pattern.len()).unwrap_or(0);
            let (offset, bytes) = (offset as u64, bytes as u64);
            // SAFETY: the buffer is of the device, nothing else uses it, and `pattern` lives during the call.
            unsafe { (calls.fill)(queue, submit, buffer, offset, bytes, pattern.as_ptr(), pattern_bytes) }
        }))
    }

    /// Scatters `source` over rows of the buffer; returns whether the device can.
    pub(crate) fn write_rows(&mut self, rows: &Rows, source: &'a [u8]) -> Result<bool> {
        let buffer = self.buffer;
        check_within(buffer, rows.offset, rows.span_bytes())?;
        if !buffer.host_pointer.is_null() {
            for (row, bytes) in source.chunks_exact(rows.row_bytes).enumerate() {
                self.write(rows.offset + row * rows.pitch_bytes, bytes)?;
            }
            return Ok(true);
        }
        let Some((dense, staging)) = staging(buffer, rows) else { return Ok(false) };
        let handle = self.staging.insert(staging).handle;
        self.submit("write", |calls, queue, submit| {
            // SAFETY: `source` is borrowed, and the staging buffer kept, until the copy has ended.
            unsafe { (calls.write)(queue, submit, handle, 0, source.as_ptr(), source.len() as u64) }
        })?;
        if if_supported(self.copy_2d((buffer.handle, *rows), (handle, dense)))? {
            return Ok(true);
        }
        // The write to the staging buffer is in flight; the fallback does not use it.
        self.wait().map(|()| false)
    }

    /// Gathers rows of the buffer into `destination`; returns whether the device can.
    pub(crate) fn read_rows(&mut self, rows: &Rows, destination: &mut [u8]) -> Result<bool> {
        let buffer = self.buffer;
        check_within(buffer, rows.offset, rows.span_bytes())?;
        if !buffer.host_pointer.is_null() {
            for (row, bytes) in destination.chunks_exact_mut(rows.row_bytes).enumerate() {
                self.read_now(rows.offset + row * rows.pitch_bytes, bytes)?;
            }
            return Ok(true);
        }
        let Some((dense, staging)) = staging(buffer, rows) else { return Ok(false) };
        let handle = self.staging.insert(staging).handle;
        if !if_supported(self.copy_2d((handle, dense), (buffer.handle, *rows)))? {
            return Ok(false);
        }
        let (pointer, bytes) = (destination.as_mut_ptr(), destination.len() as u64);
        let submitted = self.submit("read", |calls, queue, submit| {
            // SAFETY: the wait below ends before `destination` does.
            unsafe { (calls.read)(queue, submit, handle, 0, pointer, bytes) }
        });
        submitted.and(self.wait()).map(|()| true)
    }

    fn copy_2d(&mut self, destination: (Handle, Rows), source: (Handle, Rows)) -> Result<()> {
        let rows = raw_rows(destination, source);
        self.submit("copy_2d", |calls, queue, submit| {
            // SAFETY: both buffers are of the device, and nothing else uses them until the copy has ended.
            unsafe { (calls.copy_2d)(queue, submit, &raw const rows) }
        })
    }

    fn submit(
        &mut self,
        operation: &'static str,
        call: impl FnOnce(&QueueCalls, Handle, SubmitInfo) -> Status,
    ) -> Result<()> {
        self.buffer.device.check()?;
        if let Some(queue) = &self.queue {
            self.in_flight = queue.submit_next(operation, call)?;
        }
        Ok(())
    }

    /// Waits until everything that was submitted has ended.
    fn wait(&mut self) -> Result<()> {
        let (Some(queue), ticket @ 1..) = (&self.queue, self.in_flight) else { return Ok(()) };
        queue.wait(ticket, None)?;
        self.in_flight = 0;
        Ok(())
    }
}

impl Drop for BlockingCopy<'_> {
    fn drop(&mut self) {
        let Some(queue) = self.queue.take() else { return };
        let device = &self.buffer.device;
        if self.in_flight != 0 {
            // It failed. The memory is borrowed: the device must have released it before this returns.
            queue.wait_host_memory_released(self.in_flight, &**device);
        }
        device.give_back_transfer_queue(queue);
    }
}

/// A buffer for the rows without gaps, if the device can copy rows and the gaps are large.
fn staging(buffer: &Buffer, rows: &Rows) -> Option<(Rows, Buffer)> {
    let capable = buffer.device.info.capabilities.has(abi::CAP_COPY_2D);
    if !capable || rows.span_bytes() <= SMALL_SPAN_BYTES {
        return None;
    }
    let (dense, _) = Rows::dense(0, rows.bytes()).paired(*rows)?;
    // If it cannot be allocated, the caller takes the fallback.
    Some((dense, buffer.scratch(rows.bytes()).ok()?))
}

fn if_supported(result: Result<()>) -> Result<bool> {
    match result {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
        other => other.map(|()| true),
    }
}

fn check_within(buffer: &Buffer, offset: usize, bytes: usize) -> Result<()> {
    check_range("tensor", offset as u64, bytes as u64, buffer.bytes as u64)
}

/// A copy between rows, in the form of the ABI.
pub(crate) fn raw_rows((to, destination): (Handle, Rows), (from, source): (Handle, Rows)) -> abi::Copy2D {
    abi::Copy2D {
        struct_size: crate::end_of!(abi::Copy2D, rows),
        reserved: 0,
        destination: to,
        destination_offset: destination.offset as u64,
        destination_pitch: destination.pitch_bytes as u64,
        source: from,
        source_offset: source.offset as u64,
        source_pitch: source.pitch_bytes as u64,
        row_bytes: source.row_bytes as u64,
        rows: source.rows as u64,
    }
}
