//! Data movement on a queue: write, read, copy, fill.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;

use crate::abi::{self, Handle, QueueCalls, Status, SubmitInfo};
use crate::memory::blocking_copy::{PATTERN_BYTES, raw_rows};
use crate::memory::buffer::Buffer;
use crate::model::pitched::Rows;
use crate::queue::submit::{AccessSet, SubmitFlags, Submitted};
use crate::tensor::pitched_copies::PitchedCopies;
use crate::timeline::event::Event;
use crate::timeline::open_device::OpenDevice;
use crate::{Access, DeviceKind, Error, ErrorKind, Placement, Queue, Result, Tensor};

/// Whether two contiguous tensors of one size and one buffer share bytes.
pub(crate) fn overlap(a: &Tensor, b: &Tensor) -> bool {
    a.byte_offset().abs_diff(b.byte_offset()) < a.size_bytes()
}

/// Rejects a copy between tensors of different types, shapes or runtimes.
pub(crate) fn check_copy(destination: &Tensor, source: &Tensor) -> Result<()> {
    if destination.dtype() != source.dtype() || destination.shape() != source.shape() {
        return Err(Error::invalid(format!(
            "destination is {destination:?}, source is {source:?}: types and shapes must be equal"
        )));
    }
    if !Arc::ptr_eq(&destination.device().queues, &source.device().queues) {
        return Err(Error::invalid("the tensors belong to two different Runtimes"));
    }
    destination.device().check()?;
    source.device().check()
}

/// Rejects a fill that no device supports.
pub(crate) fn check_fill(tensor: &Tensor, pattern: &[u8]) -> Result<()> {
    if !PATTERN_BYTES.contains(&pattern.len()) || !tensor.size_bytes().is_multiple_of(pattern.len()) {
        let message = format!(
            "a pattern of {} bytes for a tensor of {}; use a pattern of 1, 2, 4, 8 or 16 bytes that divides the tensor",
            pattern.len(),
            tensor.size_bytes()
        );
        return Err(Error::invalid(message));
    }
    if !tensor.is_contiguous() {
        return Err(Error::unsupported("Queue::fill needs a tensor without gaps; use Tensor::fill"));
    }
    Ok(())
}

/// Rejects a tensor of another device.
pub(crate) fn check_placed_on(device: &Arc<OpenDevice>, tensor: &Tensor) -> Result<()> {
    if Arc::ptr_eq(tensor.device(), device) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the tensor is on {}; use a queue of that device, or copy",
        tensor.device_id()
    )))
}

/// The rows of both tensors, if they have the same number of rows with the same length.
fn paired_rows(destination: &Tensor, source: &Tensor) -> Option<(Rows, Rows)> {
    destination.rows()?.paired(source.rows()?)
}

impl Queue {
    /// Writes row-major bytes into a tensor, in order with the queue's work, and blocks until it is done.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong length or device; the failure of the queue.
    pub fn write(&self, tensor: &Tensor, bytes: &[u8]) -> Result<()> {
        self.check_not_recording("write")?;
        if let Some(real) = self.real_queue() {
            return real.write(tensor, bytes);
        }
        self.check_transfer(tensor, bytes.len(), "write")?;
        if bytes.is_empty() {
            return Ok(());
        }
        if !tensor.is_contiguous() {
            self.wait_idle()?;
            return tensor.write_bytes(bytes);
        }
        let (buffer, offset) = (tensor.buffer("write")?, tensor.byte_offset() as u64);
        self.transfer("write", &[(buffer, Access::Write)], |calls, queue, submit| {
            // SAFETY: the queue is open, and `bytes` is borrowed until the ticket has ended.
            unsafe { (calls.write)(queue, submit, buffer.handle, offset, bytes.as_ptr(), bytes.len() as u64) }
        })
    }

    /// Reads a tensor into row-major bytes, in order with the queue's work, and blocks until it is done.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong length or device; the failure of the queue, or of the work that wrote the tensor.
    pub fn read(&self, tensor: &Tensor, bytes: &mut [u8]) -> Result<()> {
        self.check_not_recording("read")?;
        if let Some(real) = self.real_queue() {
            return real.read(tensor, bytes);
        }
        self.check_transfer(tensor, bytes.len(), "read")?;
        if bytes.is_empty() {
            return Ok(());
        }
        if !tensor.is_contiguous() {
            return tensor.read_bytes(bytes);
        }
        let (buffer, offset) = (tensor.buffer("read")?, tensor.byte_offset() as u64);
        self.transfer("read", &[(buffer, Access::Read)], |calls, queue, submit| {
            // SAFETY: the queue is open, and `bytes` is borrowed until the ticket has ended.
            unsafe {
                (calls.read)(queue, submit, buffer.handle, offset, bytes.as_mut_ptr(), bytes.len() as u64)
            }
        })
    }

    /// Submits one transfer of borrowed memory and waits until the memory is no longer used.
    fn transfer(
        &self,
        operation: &str,
        buffers: &[(&Buffer, Access)],
        call: impl FnMut(&QueueCalls, Handle, SubmitInfo) -> Status,
    ) -> Result<()> {
        let mut uses = AccessSet::default();
        buffers
            .iter()
            .try_for_each(|(buffer, access)| uses.add(buffer, *access))
            .map_err(|error| self.annotate(error, operation))?;
        let flags = SubmitFlags { transfer: true, ..SubmitFlags::default() };
        let submitted = self.submit(&uses, flags, call).map_err(|error| self.annotate(error, operation))?;
        let ticket = submitted.ticket();
        let result = self.timeline.wait(ticket, None);
        if result.is_err() {
            // A failure may be known before the device has released the memory.
            self.timeline.wait_host_memory_released(ticket, &*self.device);
        }
        result.map_err(|error| self.annotate(error, operation))
    }

    fn check_transfer(&self, tensor: &Tensor, bytes: usize, operation: &str) -> Result<()> {
        if bytes != tensor.size_bytes() {
            return Err(self.annotate(
                Error::invalid(format!(
                    "the tensor has {} bytes, but the slice has {bytes}",
                    tensor.size_bytes()
                )),
                operation,
            ));
        }
        check_placed_on(&self.device, tensor).map_err(|error| self.annotate(error, operation))
    }

    /// Copies all elements between two tensors of the same type and shape; at least one is on this queue's device.
    ///
    /// The copy is asynchronous between contiguous tensors of this device, or of this device and the host. If the device
    /// supports `copy_2d`, it is also asynchronous between its tensors with gaps: in one submission if the elements form
    /// rows, such as a block of columns, otherwise in up to 4096 (a transposition takes one per row). Every other copy, for
    /// example between two devices without access to each other, is staged through host memory and blocks.
    ///
    /// # Errors
    /// `InvalidArgument` for different types or shapes; the failure of the queue, or of the work that wrote the source.
    pub fn copy(&self, destination: &Tensor, source: &Tensor) -> Result<Event> {
        if let Some(record) = self.recorder() {
            return record.copy(destination, source);
        }
        if let Some(real) = self.real_queue() {
            return real.copy(destination, source);
        }
        self.copy_named(destination, source).map_err(|error| self.annotate(error, "copy"))
    }

    fn copy_named(&self, destination: &Tensor, source: &Tensor) -> Result<Event> {
        if let Some(event) = self.copy_unstaged(destination, source)? {
            return Ok(event);
        }
        self.wait_idle()?;
        destination.write_array(&source.to_array()?)?;
        Ok(Event::new(&self.timeline, self.timeline.last_submitted()))
    }

    /// Copies without a detour through host memory; `None` if the device cannot.
    pub(super) fn copy_unstaged(&self, destination: &Tensor, source: &Tensor) -> Result<Option<Event>> {
        check_copy(destination, source)?;
        let (to, from) = (destination.buffer("copy")?, source.buffer("copy")?);
        let dense = destination.is_contiguous() && source.is_contiguous();
        // Backends copy between ranges that do not overlap.
        let one_buffer = Arc::ptr_eq(to, from);
        if dense && !(one_buffer && overlap(destination, source)) {
            return self.copy_on_device(destination, source, 0);
        }
        match paired_rows(destination, source) {
            Some((at, of)) if !dense && (!one_buffer || at.is_apart_from(&of)) => {
                self.copy_2d_on_device((to, at), (from, of), true)
            }
            None if !one_buffer => self.copy_pieces_on_device((to, destination), (from, source)),
            _ => Ok(None),
        }
    }

    /// Copies between contiguous tensors that do not overlap, in order and after `ticket` of this queue.
    pub(crate) fn copy_after(&self, destination: &Tensor, source: &Tensor, ticket: u64) -> Result<Event> {
        match self.copy_on_device(destination, source, ticket) {
            Ok(Some(event)) => Ok(event),
            // It is staged, behind everything submitted so far.
            Ok(None) => self.copy(destination, source),
            Err(error) => Err(self.annotate(error, "copy")),
        }
    }

    /// Copies in one submission, after `ticket` of this queue; `None` if the device cannot, and the copy must be staged.
    fn copy_on_device(&self, destination: &Tensor, source: &Tensor, ticket: u64) -> Result<Option<Event>> {
        let (to, from) = (destination.buffer("copy")?, source.buffer("copy")?);
        let bytes = source.size_bytes() as u64;
        let (to_offset, from_offset) = (destination.byte_offset() as u64, source.byte_offset() as u64);
        let own = |tensor: &Tensor| Arc::ptr_eq(tensor.device(), &self.device);
        let same_backend = Arc::ptr_eq(&destination.device().instance, &source.device().instance);
        let on_host = |tensor: &Tensor| tensor.device().info.kind == DeviceKind::Host;
        let mut uses = AccessSet::default();
        uses.add(to, Access::Write)?;
        uses.add(from, Access::Read)?;
        let flags = SubmitFlags { transfer: true, watched: true, after: ticket, ..SubmitFlags::default() };
        let submitted = if (own(destination) || own(source)) && same_backend {
            self.submit(&uses, flags, |calls, queue, submit| {
                // SAFETY: both buffers are of this backend, and are kept until the ticket has ended.
                unsafe { (calls.copy)(queue, submit, to.handle, to_offset, from.handle, from_offset, bytes) }
            })
        } else if own(destination) && on_host(source) {
            let pointer = from.host_pointer.wrapping_add(source.byte_offset());
            self.submit(&uses, flags, |calls, queue, submit| {
                // SAFETY: the host buffer is kept, and ordered by its hazards, until the ticket has ended.
                unsafe { (calls.write)(queue, submit, to.handle, to_offset, pointer, bytes) }
            })
        } else if own(source) && on_host(destination) {
            let pointer = to.host_pointer.wrapping_add(destination.byte_offset());
            self.submit(&uses, flags, |calls, queue, submit| {
                // SAFETY: the host buffer is kept, and ordered by its hazards, until the ticket has ended.
                unsafe { (calls.read)(queue, submit, from.handle, from_offset, pointer, bytes) }
            })
        } else {
            return Err(Error::invalid("neither tensor is on this queue's device"));
        };
        self.event_if_supported(submitted)
    }

    /// Copies tensors whose elements do not form rows, in several submissions; `None` if they must be staged.
    fn copy_pieces_on_device(
        &self,
        (to, destination): (&Buffer, &Tensor),
        (from, source): (&Buffer, &Tensor),
    ) -> Result<Option<Event>> {
        let size = source.dtype().bytes();
        let Some(pieces) = PitchedCopies::of(destination.layout(), source.layout(), size) else {
            return Ok(None);
        };
        let mut last = None;
        let mut pieces = pieces.iter().peekable();
        while let Some((at, of)) = pieces.next() {
            // Only the last one is waited for: do not watch, and so signal, the others.
            drop(last.take());
            match self.copy_2d_on_device((to, at), (from, of), pieces.peek().is_none())? {
                Some(event) => last = Some(event),
                None => return Ok(None),
            }
        }
        Ok(last)
    }

    /// Copies rows in one submission if the device can; `None` if they must be staged. Unless it is the `last` of several, it
    /// is not signaled.
    fn copy_2d_on_device(
        &self,
        (to, destination): (&Buffer, Rows),
        (from, source): (&Buffer, Rows),
        last: bool,
    ) -> Result<Option<Event>> {
        let own = |buffer: &Buffer| std::ptr::eq(Arc::as_ptr(&buffer.device), Arc::as_ptr(&self.device));
        if !self.device.info.capabilities.has(abi::CAP_COPY_2D) || !own(to) || !own(from) {
            return Ok(None);
        }
        let mut uses = AccessSet::default();
        uses.add(to, Access::Write)?;
        uses.add(from, Access::Read)?;
        let rows = raw_rows((to.handle, destination), (from.handle, source));
        let flags = SubmitFlags { transfer: last, watched: last, ..SubmitFlags::default() };
        let submitted = self.submit(&uses, flags, |calls, queue, submit| {
            // SAFETY: both buffers are of this device, and are kept until the ticket has ended.
            unsafe { (calls.copy_2d)(queue, submit, &raw const rows) }
        });
        self.event_if_supported(submitted)
    }

    /// Returns the tensor itself if it is contiguous, otherwise a contiguous copy with the same shape and memory space, as a
    /// launch requires. The copy is made in order with this queue's work, like [`Queue::copy`].
    ///
    /// ```
    /// # use runtime_core::{QueueOptions, Runtime, Tensor};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let queue = device.queue()?;
    /// let matrix = device.tensor(&[2, 3], &[0i32, 1, 2, 3, 4, 5])?;
    /// let transposed = queue.contiguous(&matrix.permute(&[1, 0])?)?;
    /// assert_eq!((transposed.shape(), transposed.strides()), (&[3, 2][..], &[2, 1][..]));
    /// assert_eq!(transposed.to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for a tensor of another device; the failure of the queue, or of the work that wrote
    /// the tensor.
    pub fn contiguous(&self, tensor: &Tensor) -> Result<Tensor> {
        if let Some(real) = self.real_queue() {
            return real.contiguous(tensor);
        }
        check_placed_on(&self.device, tensor).map_err(|error| self.annotate(error, "contiguous"))?;
        if tensor.is_contiguous() {
            return Ok(tensor.clone());
        }
        self.check_not_recording("contiguous")?;
        let copy = self.allocate(tensor.dtype(), tensor.shape(), &Placement::space(tensor.space()))?;
        drop(self.copy_named(&copy, tensor).map_err(|error| self.annotate(error, "contiguous"))?);
        Ok(copy)
    }

    fn event_if_supported(&self, submitted: Result<Submitted>) -> Result<Option<Event>> {
        match submitted {
            Ok(submitted) => Ok(Some(Event::new(&self.timeline, submitted.ticket()))),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fills a contiguous tensor with a repeated pattern of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Errors
    /// `InvalidArgument` for a pattern of another size, or one that does not divide the tensor; `Unsupported` for a tensor
    /// with gaps, which `Tensor::fill` supports.
    pub fn fill(&self, tensor: &Tensor, pattern: &[u8]) -> Result<Event> {
        if let Some(record) = self.recorder() {
            return record.fill(tensor, pattern);
        }
        if let Some(real) = self.real_queue() {
            return real.fill(tensor, pattern);
        }
        self.fill_after(tensor, pattern, 0)
    }

    /// As [`Queue::fill`], and after `ticket` of this queue.
    pub(crate) fn fill_after(&self, tensor: &Tensor, pattern: &[u8], ticket: u64) -> Result<Event> {
        self.fill_named(tensor, pattern, ticket).map_err(|error| self.annotate(error, "fill"))
    }

    fn fill_named(&self, tensor: &Tensor, pattern: &[u8], ticket: u64) -> Result<Event> {
        check_placed_on(&self.device, tensor).map_err(|error| self.annotate(error, "fill"))?;
        check_fill(tensor, pattern)?;
        let buffer = tensor.buffer("fill")?;
        let mut uses = AccessSet::default();
        uses.add(buffer, Access::Write)?;
        let (offset, bytes) = (tensor.byte_offset() as u64, tensor.size_bytes() as u64);
        let pattern_bytes = u32::try_from(pattern.len()).unwrap_or(0);
        let flags = SubmitFlags { transfer: true, watched: true, after: ticket, ..SubmitFlags::default() };
        let submitted = self.submit(&uses, flags, |calls, queue, submit| {
            // SAFETY: the queue is open, and the pattern lives during the call.
            unsafe {
                (calls.fill)(queue, submit, buffer.handle, offset, bytes, pattern.as_ptr(), pattern_bytes)
            }
        })?;
        Ok(Event::new(&self.timeline, submitted.ticket()))
    }
}
