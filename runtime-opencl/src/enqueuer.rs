//! Copies and fills between all kinds of memory: `cl_mem` objects, SVM, USM and host memory.

#![allow(unsafe_code, reason = "submits through the driver")]

use std::ptr::null;

use cl3::ext::CL_FALSE;
use runtime_core::Result;
use runtime_core::backend::Copy2D;

use crate::allocation::create_buffer;
use crate::context::SharedContext;
use crate::convert::FillPiece;
use crate::driver::handle::{Event, Owned};
use crate::driver::{Raw, enqueue};

/// The source or destination of a copy, at its first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Location {
    /// A `cl_mem`, and an offset into it.
    Object(Raw, usize),
    /// Shared virtual memory.
    Svm(*mut u8),
    /// Unified shared memory.
    Usm(*mut u8),
    /// Host memory, or a mapped buffer.
    Host(*mut u8),
}

/// The commands of one submission.
pub(crate) type Events = Vec<Owned<Event>>;

/// A command queue of a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enqueuer<'a> {
    pub(crate) context: &'a SharedContext,
    pub(crate) queue: Raw,
}

impl Enqueuer<'_> {
    /// Enqueues a copy of `bytes` bytes, more than 0. The caller keeps both sides alive until it has ended.
    pub(crate) fn copy(self, to: Location, from: Location, bytes: usize) -> Result<Events> {
        let event = match (to, from) {
            (Location::Object(to, at), Location::Object(from, of)) => {
                self.copy_objects((to, at), (from, of), bytes)?
            }
            (Location::Object(to, at), Location::Svm(from) | Location::Usm(from) | Location::Host(from)) => {
                self.write((to, at), from, bytes)?
            }
            (Location::Svm(to) | Location::Usm(to) | Location::Host(to), Location::Object(from, of)) => {
                self.read(to, (from, of), bytes)?
            }
            (Location::Usm(to), Location::Svm(from) | Location::Usm(from) | Location::Host(from))
            | (Location::Svm(to) | Location::Host(to), Location::Usm(from)) => {
                self.copy_usm(to, from, bytes)?
            }
            (Location::Svm(to), Location::Svm(from) | Location::Host(from))
            | (Location::Host(to), Location::Svm(from)) => self.copy_svm(to, from, bytes)?,
            (Location::Host(to), Location::Host(from)) => {
                // OpenCL has no command for it: by way of a temporary buffer, which the driver retains until both have ended.
                let temporary = create_buffer(self.context, 0, bytes, std::ptr::null_mut())?;
                let written = self.write((temporary.raw(), 0), from, bytes)?;
                return match self.read(to, (temporary.raw(), 0), bytes) {
                    Ok(read) => Ok(vec![written, read]),
                    Err(error) => {
                        // Core may free the memory of a refused copy.
                        self.context.synchronise(written.raw());
                        Err(error)
                    }
                };
            }
        };
        Ok(vec![event])
    }

    fn write(self, (to, at): (Raw, usize), from: *const u8, bytes: usize) -> Result<Owned<Event>> {
        let (queue, from) = (self.queue, from.cast());
        // SAFETY: the ranges were checked, and both sides live until the command has ended.
        unsafe { enqueue!(self.context.enqueue, clEnqueueWriteBuffer(queue, to, CL_FALSE, at, bytes, from)) }
    }

    fn read(self, to: *mut u8, (from, of): (Raw, usize), bytes: usize) -> Result<Owned<Event>> {
        let (queue, to) = (self.queue, to.cast());
        // SAFETY: the ranges were checked, and both sides live until the command has ended.
        unsafe { enqueue!(self.context.enqueue, clEnqueueReadBuffer(queue, from, CL_FALSE, of, bytes, to)) }
    }

    fn copy_objects(
        self,
        (to, at): (Raw, usize),
        (from, of): (Raw, usize),
        bytes: usize,
    ) -> Result<Owned<Event>> {
        // SAFETY: the ranges were checked, and both sides live until the command has ended.
        unsafe { enqueue!(self.context.enqueue, clEnqueueCopyBuffer(self.queue, from, to, of, at, bytes)) }
    }

    fn copy_usm(self, to: *mut u8, from: *const u8, bytes: usize) -> Result<Owned<Event>> {
        let (queue, to, from) = (self.queue, to.cast(), from.cast());
        self.context.enqueue("clEnqueueMemcpyINTEL", |_, event| {
            let copy = self.context.caps.usm?.clEnqueueMemcpyINTEL;
            // SAFETY: the ranges were checked, and both sides live until the command has ended.
            Some(unsafe { copy(queue, CL_FALSE, to, from, bytes, 0, null(), event) })
        })
    }

    fn copy_svm(self, to: *mut u8, from: *const u8, bytes: usize) -> Result<Owned<Event>> {
        let (queue, to, from) = (self.queue, to.cast(), from.cast());
        // SAFETY: the ranges were checked, and both sides live until the command has ended.
        unsafe { enqueue!(self.context.enqueue, clEnqueueSVMMemcpy(queue, CL_FALSE, to, from, bytes)) }
    }

    /// Enqueues a fill of a piece that begins at `to`.
    pub(crate) fn fill(self, to: Location, piece: &FillPiece) -> Result<Events> {
        let (queue, pattern, unit, bytes) =
            (self.queue, piece.pattern.as_ptr().cast(), piece.unit, piece.bytes);
        let event = match to {
            // SAFETY: the range was checked, it lives until the command has ended, and the pattern is copied.
            Location::Object(object, at) => unsafe {
                enqueue!(self.context.enqueue, clEnqueueFillBuffer(queue, object, pattern, unit, at, bytes))
            }?,
            Location::Usm(to) => self.context.enqueue("clEnqueueMemFillINTEL", |_, event| {
                let fill = self.context.caps.usm?.clEnqueueMemFillINTEL;
                // SAFETY: the range was checked, it lives until the command has ended, and the pattern is copied.
                Some(unsafe { fill(queue, to.cast(), pattern, unit, bytes, 0, null(), event) })
            })?,
            // SAFETY: the range was checked, it lives until the command has ended, and the pattern is copied.
            Location::Svm(to) => unsafe {
                enqueue!(self.context.enqueue, clEnqueueSVMMemFill(queue, to.cast(), pattern, unit, bytes))
            }?,
            Location::Host(to) => {
                let temporary = create_buffer(self.context, 0, bytes, std::ptr::null_mut())?;
                let mut events = self.fill(Location::Object(temporary.raw(), 0), piece)?;
                events.push(self.read(to, (temporary.raw(), 0), bytes)?);
                return Ok(events);
            }
        };
        Ok(vec![event])
    }

    /// Enqueues a pitched copy between `cl_mem` objects.
    pub(crate) fn copy_2d<B>(
        self,
        (to, at): (Raw, usize),
        (from, of): (Raw, usize),
        rows: &Copy2D<'_, B>,
    ) -> Result<Owned<Event>> {
        // Within the buffers, so all fit a `usize`.
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let region = [size(rows.row_bytes), size(rows.rows), 1];
        let (to_pitch, from_pitch) = (size(rows.destination_pitch), size(rows.source_pitch));
        let (to_origin, from_origin) = (origin(at, to_pitch), origin(of, from_pitch));
        let (to_origin, from_origin, region) = (to_origin.as_ptr(), from_origin.as_ptr(), region.as_ptr());
        // SAFETY: both rectangles lie within their buffers, which live until the command has ended.
        unsafe {
            enqueue!(
                self.context.enqueue,
                clEnqueueCopyBufferRect(
                    self.queue,
                    from,
                    to,
                    from_origin,
                    to_origin,
                    region,
                    from_pitch,
                    0,
                    to_pitch,
                    0
                )
            )
        }
    }
}

/// The origin `[x, y, z]` of an offset, for a row pitch.
fn origin(offset: usize, pitch: usize) -> [usize; 3] {
    [offset % pitch, offset / pitch, 0]
}
