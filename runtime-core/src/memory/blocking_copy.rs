//! Blocking transfers between the program and a buffer: direct where the memory is host-visible, else through a
//! queue of the device's own that nothing else uses.

#![allow(unsafe_code, reason = "touches memory of a buffer, and calls the functions of a backend's table")]

use std::time::Duration;

use crate::abi::{self, Handle, Place, Progress, Status};
use crate::device::Device;
use crate::memory::buffer::Buffer;
use crate::queue::timeline::{LAST_PAUSE, LAST_TRIES, UNANSWERED, wrong_progress};
use crate::tensor::pitched::Rows;
use crate::{Error, ErrorKind, Result};

const SLICE: Duration = Duration::from_millis(20);

/// The device's own queue for blocking transfers; its tickets never leave this module.
#[derive(Debug)]
pub(crate) struct TransferQueue {
    handle: Handle,
    ticket: u64,
    /// The backend has not said that it cannot block until a ticket has ended.
    finishes: bool,
}

// SAFETY: a backend queue, used under the lock of its device.
unsafe impl Send for TransferQueue {}

impl TransferQueue {
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}

/// Patterns that the fill of a queue repeats.
pub(crate) const PATTERN_BYTES: [usize; 5] = [1, 2, 4, 8, 16];
/// Bytes that a fill writes at once where the device does not repeat the pattern.
const PIECE_BYTES: usize = 1 << 20;
/// Up to so many bytes, gaps included, one transfer is as fast as its latency.
const SMALL_SPAN_BYTES: usize = 64 << 10;

/// Which way and with what.
enum Transfer<'a> {
    Write(&'a Buffer, usize, &'a [u8]),
    Read(&'a Buffer, usize, &'a mut [u8]),
    Rows((&'a Buffer, Rows), (&'a Buffer, Rows)),
    /// A pattern, repeated so that it fills so many bytes from an offset on.
    Fill(&'a Buffer, usize, usize, &'a [u8]),
}

/// Copies `source` into `buffer` at `offset`. The caller holds the buffer's hazards, and nothing is in flight on it.
pub(crate) fn write(buffer: &Buffer, offset: usize, source: &[u8]) -> Result<()> {
    check_range(buffer, offset, source.len())?;
    if source.is_empty() {
        return Ok(());
    }
    if buffer.host_pointer.is_null() {
        return through_queue(&buffer.device, Transfer::Write(buffer, offset, source));
    }
    // SAFETY: the range was checked.
    let destination = unsafe { buffer.host_pointer.add(offset) };
    // SAFETY: host-visible memory that nothing else touches while the hazards are held; a slice cannot overlap it.
    unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), destination, source.len()) };
    Ok(())
}

/// Copies from `buffer` at `offset`. The caller holds the buffer's hazards, and nothing writes it.
pub(crate) fn read(buffer: &Buffer, offset: usize, destination: &mut [u8]) -> Result<()> {
    check_range(buffer, offset, destination.len())?;
    if destination.is_empty() {
        return Ok(());
    }
    if buffer.host_pointer.is_null() {
        return through_queue(&buffer.device, Transfer::Read(buffer, offset, destination));
    }
    // SAFETY: the range was checked.
    let source = unsafe { buffer.host_pointer.add(offset) };
    // SAFETY: host-visible memory that nothing writes while the hazards are held; a slice cannot overlap it.
    unsafe { std::ptr::copy_nonoverlapping(source, destination.as_mut_ptr(), destination.len()) };
    Ok(())
}

/// Repeats `pattern`, of any length that divides `bytes`, from `offset` on; as [`write`]. Needs little memory, however large
/// the range.
pub(crate) fn fill(buffer: &Buffer, offset: usize, bytes: usize, pattern: &[u8]) -> Result<()> {
    check_range(buffer, offset, bytes)?;
    if bytes == 0 {
        return Ok(());
    }
    if buffer.host_pointer.is_null() && PATTERN_BYTES.contains(&pattern.len()) {
        let filled = through_queue(&buffer.device, Transfer::Fill(buffer, offset, bytes, pattern));
        if if_supported(filled)? {
            return Ok(());
        }
    }
    let piece = pattern.repeat((PIECE_BYTES / pattern.len()).clamp(1, bytes / pattern.len()));
    for at in (0..bytes).step_by(piece.len()) {
        write(buffer, offset + at, &piece[..piece.len().min(bytes - at)])?;
    }
    Ok(())
}

/// Spreads `source` over rows of `buffer`, as [`write`]; says whether it could.
pub(crate) fn write_rows(buffer: &Buffer, rows: &Rows, source: &[u8]) -> Result<bool> {
    check_range(buffer, rows.offset, rows.span_bytes())?;
    if !buffer.host_pointer.is_null() {
        for (row, bytes) in source.chunks_exact(rows.row_bytes).enumerate() {
            write(buffer, rows.offset + row * rows.pitch_bytes, bytes)?;
        }
        return Ok(true);
    }
    let Some((dense, staging)) = staging(buffer, rows) else { return Ok(false) };
    through_queue(&buffer.device, Transfer::Write(&staging, 0, source))?;
    if_supported(through_queue(&buffer.device, Transfer::Rows((buffer, *rows), (&staging, dense))))
}

/// Collects rows of `buffer` into `destination`, as [`read`]; says whether it could.
pub(crate) fn read_rows(buffer: &Buffer, rows: &Rows, destination: &mut [u8]) -> Result<bool> {
    check_range(buffer, rows.offset, rows.span_bytes())?;
    if !buffer.host_pointer.is_null() {
        for (row, bytes) in destination.chunks_exact_mut(rows.row_bytes).enumerate() {
            read(buffer, rows.offset + row * rows.pitch_bytes, bytes)?;
        }
        return Ok(true);
    }
    let Some((dense, staging)) = staging(buffer, rows) else { return Ok(false) };
    let collected = through_queue(&buffer.device, Transfer::Rows((&staging, dense), (buffer, *rows)));
    if !if_supported(collected)? {
        return Ok(false);
    }
    through_queue(&buffer.device, Transfer::Read(&staging, 0, destination))?;
    Ok(true)
}

/// A buffer that holds the rows without gaps, where the device copies rows and there is much between them.
fn staging(buffer: &Buffer, rows: &Rows) -> Option<(Rows, Buffer)> {
    let capable = buffer.device.info.capabilities.has(abi::CAP_ROWS);
    if !capable || rows.span_bytes() <= SMALL_SPAN_BYTES {
        return None;
    }
    let (dense, _) = Rows::dense(0, rows.bytes()).paired(*rows)?;
    // Without memory for it there is still the other way.
    Some((dense, buffer.scratch(rows.bytes()).ok()?))
}

fn if_supported(result: Result<()>) -> Result<bool> {
    match result {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(false),
        other => other.map(|()| true),
    }
}

fn check_range(buffer: &Buffer, offset: usize, bytes: usize) -> Result<()> {
    if offset.checked_add(bytes).is_some_and(|end| end <= buffer.bytes) {
        return Ok(());
    }
    Err(Error::invalid(format!("bytes {offset}..{offset}+{bytes} of a buffer of {} bytes", buffer.bytes)))
}

fn through_queue(device: &Device, transfer: Transfer<'_>) -> Result<()> {
    let mut slot = device.transfer.lock();
    let mut queue = match slot.take() {
        Some(queue) => queue,
        None => TransferQueue {
            handle: open_queue(device)?,
            ticket: 0,
            // A wait would hold the only lock of a serial device.
            finishes: device.serial.is_none(),
        },
    };
    let result = run(device, &mut queue, transfer);
    if result.is_ok() || device.is_lost() {
        // That of a lost device is closed with the device.
        *slot = Some(queue);
    } else {
        // Failure is permanent for a queue: the next transfer gets a new one.
        // SAFETY: the queue is known here only; what it ran has ended or failed.
        let _ = device.call("close_queue", |calls, _| unsafe {
            (calls.queue.close)(queue.handle);
            std::ptr::null_mut()
        });
    }
    result
}

fn open_queue(device: &Device) -> Result<Handle> {
    let options =
        abi::QueueOptions { struct_size: crate::end_of!(abi::QueueOptions, flags), priority: 0, flags: 0 };
    let mut handle = std::ptr::null_mut();
    // SAFETY: the device is open and the structures live during the call.
    device.call("open_queue", |calls, device| unsafe {
        (calls.queue.open)(device, &raw const options, &raw mut handle)
    })?;
    device.check_made("open_queue", "queue", handle)?;
    Ok(handle)
}

fn run(device: &Device, queue: &mut TransferQueue, transfer: Transfer<'_>) -> Result<()> {
    let (handle, place) = (queue.handle, Place { ticket: queue.ticket + 1, after: queue.ticket });
    match transfer {
        Transfer::Write(buffer, offset, source) => {
            let (offset, bytes) = (offset as u64, source.len() as u64);
            device.call("write", |calls, _| {
                // SAFETY: `source` is borrowed until this function returns, after the ticket has ended.
                unsafe { (calls.queue.write)(handle, place, buffer.handle, offset, source.as_ptr(), bytes) }
            })?;
        }
        Transfer::Read(buffer, offset, destination) => {
            let (offset, bytes) = (offset as u64, destination.len() as u64);
            let pointer = destination.as_mut_ptr();
            device.call("read", |calls, _| {
                // SAFETY: `destination` is borrowed until this function returns, after the ticket has ended.
                unsafe { (calls.queue.read)(handle, place, buffer.handle, offset, pointer, bytes) }
            })?;
        }
        Transfer::Fill(buffer, offset, bytes, pattern) => {
            let (offset, bytes) = (offset as u64, bytes as u64);
            let pattern_bytes = u32::try_from(pattern.len()).unwrap_or(0);
            device.call("fill", |calls, _| {
                // SAFETY: the buffer is of the device, nothing else uses it, and `pattern` lives during the call.
                unsafe {
                    (calls.queue.fill)(
                        handle,
                        place,
                        buffer.handle,
                        offset,
                        bytes,
                        pattern.as_ptr(),
                        pattern_bytes,
                    )
                }
            })?;
        }
        Transfer::Rows(destination, source) => {
            let rows = raw_rows(destination, source);
            device.call("copy_rows", |calls, _| {
                // SAFETY: both buffers are of the device, and nothing else uses them until the ticket has ended.
                unsafe { (calls.queue.copy_rows)(handle, place, &raw const rows) }
            })?;
        }
    }
    queue.ticket = place.ticket;
    let waited = wait(device, queue, place.ticket);
    if waited.is_err() && !device.is_lost() {
        // The memory is borrowed: it must not be given back while the device may still touch it.
        release_borrowed(device, handle, place.ticket);
    }
    waited
}

/// A copy of as many rows on both sides, as it crosses the seam.
pub(crate) fn raw_rows((to, destination): (&Buffer, Rows), (from, source): (&Buffer, Rows)) -> abi::RowCopy {
    abi::RowCopy {
        struct_size: crate::end_of!(abi::RowCopy, rows),
        reserved: 0,
        destination: to.handle,
        destination_offset: destination.offset as u64,
        destination_pitch: destination.pitch_bytes as u64,
        source: from.handle,
        source_offset: source.offset as u64,
        source_pitch: source.pitch_bytes as u64,
        row_bytes: source.row_bytes as u64,
        rows: source.rows as u64,
    }
}

fn publish(device: &Device, queue: Handle, ticket: u64) -> Result<()> {
    queue_call(device, "mark", |calls| {
        // SAFETY: the queue is open and `ticket` is its last.
        unsafe { (calls.mark)(queue, ticket) }
    })?;
    queue_call(device, "flush", |calls| {
        // SAFETY: the queue is open.
        unsafe { (calls.flush)(queue) }
    })
}

fn wait(device: &Device, queue: &mut TransferQueue, ticket: u64) -> Result<()> {
    if finish(device, queue, ticket)? && has_ended(device, queue.handle, ticket)? {
        return Ok(());
    }
    let queue = queue.handle;
    publish(device, queue, ticket)?;
    let slice_ns = u64::try_from(SLICE.as_nanos()).unwrap_or(u64::MAX);
    while !has_ended(device, queue, ticket)? {
        queue_call(device, "wait", |calls| {
            // SAFETY: the queue is open and the ticket is marked.
            unsafe { (calls.wait)(queue, ticket, slice_ns) }
        })?;
    }
    Ok(())
}

/// Lets the backend block until `ticket` has ended; says whether it did.
fn finish(device: &Device, queue: &mut TransferQueue, ticket: u64) -> Result<bool> {
    if !queue.finishes {
        return Ok(false);
    }
    let blocked = queue_call(device, "wait", |calls| {
        // SAFETY: the queue is open, and the ticket was taken.
        unsafe { (calls.finish)(queue.handle, ticket) }
    });
    queue.finishes = if_supported(blocked)?;
    Ok(queue.finishes)
}

/// Whether `ticket` has ended well.
fn has_ended(device: &Device, queue: Handle, ticket: u64) -> Result<bool> {
    let progress = poll(device, queue, ticket)?;
    if progress.first_failed == 0 {
        return Ok(progress.completed >= ticket);
    }
    queue_call(device, "transfer", |calls| {
        // SAFETY: the queue is open; it answers an owned error or null.
        unsafe { (calls.failure)(queue) }
    })?;
    Err(Error::new(ErrorKind::Failed, "the transfer failed without a reason").on_device(&device.name))
}

/// Waits until the device has let go of the memory; one that does not even say so is given up for lost.
fn release_borrowed(device: &Device, queue: Handle, ticket: u64) {
    let mut errors = 0;
    while !device.is_lost() && !device.must_leak() {
        let looked = publish(device, queue, ticket).and_then(|()| poll(device, queue, ticket));
        match looked {
            Ok(progress) if progress.completed >= ticket => return,
            Ok(_) => {}
            Err(_) if errors == LAST_TRIES => return device.give_up(),
            Err(_) => errors += 1,
        }
        std::thread::sleep(LAST_PAUSE);
    }
}

/// Looks how far the queue is, of which `last` was submitted last.
fn poll(device: &Device, queue: Handle, last: u64) -> Result<Progress> {
    let mut progress = UNANSWERED;
    queue_call(device, "poll", |calls| {
        // SAFETY: the queue is open and `progress` is writable.
        unsafe { (calls.poll)(queue, &raw mut progress) }
    })?;
    if progress.completed.max(progress.first_failed) > last {
        let error = wrong_progress(progress, last).in_operation("poll").on_device(&device.name);
        device.distrust(&error);
        return Err(error);
    }
    Ok(progress)
}

fn queue_call(
    device: &Device,
    operation: &'static str,
    call: impl FnOnce(&abi::QueueCalls) -> Status,
) -> Result<()> {
    device.call(operation, |calls, _| call(&calls.queue))
}
