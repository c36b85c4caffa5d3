//! Queues: an in-order command queue of the driver each.

#![allow(unsafe_code, reason = "submits through the driver")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cl3::ext::{CL_FALSE, CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES};
use parking_lot::Mutex;
use runtime_core::abi::{Place, Progress as Reached};
use runtime_core::backend::{HostBytes, HostBytesMut, Launch, Queue, QueueOptions, RowCopy};
use runtime_core::{Error, Result};

use crate::builtin;
use crate::context::Primary;
use crate::convert;
use crate::driver::Raw;
use crate::driver::handle::{CommandQueue, Event, Function, Owned};
use crate::graph::OpenClGraph;
use crate::kernel::{Bound, OpenClKernel};
use crate::launch;
use crate::memory::{OpenClBuffer, Reach};
use crate::progress::Progress;
use crate::timer::{self, Timestamps};

/// Bytes up to which an idle queue copies at once what the program sees, too: to hand it to another thread takes longer.
const AT_ONCE: usize = 1 << 20;
/// Submissions after which the driver is told to begin, if nobody has asked for that.
const BATCH: u32 = 32;
/// `CL_QUEUE_PRIORITY_HIGH_KHR`, medium and low.
const HIGH: u64 = 1 << 0;
const LOW: u64 = 1 << 2;

/// What only submissions use, which never overlap.
#[derive(Debug, Default)]
pub(crate) struct Submitting {
    /// By the slots of kernels.
    bound: Vec<Option<Bound>>,
    empty: Option<Owned<Function>>,
}

/// An in-order queue of a device.
#[derive(Debug)]
pub struct OpenClQueue {
    pub(crate) primary: Arc<Primary>,
    device: usize,
    queue: Owned<CommandQueue>,
    options: QueueOptions,
    submitting: Mutex<Submitting>,
    progress: Progress,
    timestamps: Mutex<Timestamps>,
    /// Submissions since the last flush.
    unflushed: AtomicU32,
}

impl OpenClQueue {
    pub(crate) fn open(primary: &Arc<Primary>, device: Raw, options: &QueueOptions) -> Result<Self> {
        primary.check_alive()?;
        Ok(Self {
            primary: Arc::clone(primary),
            device: device.expose_provenance(),
            queue: command_queue(primary, device, options)?,
            options: *options,
            submitting: Mutex::default(),
            progress: Progress::new(Arc::clone(primary)),
            timestamps: Mutex::default(),
            unflushed: AtomicU32::new(0),
        })
    }

    #[inline]
    pub(crate) fn raw(&self) -> Raw {
        self.queue.raw()
    }

    #[inline]
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Notes a submission of one command, and lets a queue that was idle begin.
    #[inline]
    fn took(&self, place: Place, event: Owned<Event>) {
        let idle = self.progress.took(place.ticket, event);
        self.begin(idle);
    }

    /// Notes a submission of several commands, or of none.
    pub(crate) fn took_all(&self, place: Place, events: impl IntoIterator<Item = Owned<Event>>) {
        self.progress.took_all(place.ticket, events);
        self.begin(true);
    }

    #[inline]
    fn begin(&self, idle: bool) {
        let unflushed = self.unflushed.load(Ordering::Relaxed) + 1;
        self.unflushed.store(unflushed, Ordering::Relaxed);
        if idle || unflushed >= BATCH {
            // What it refuses is refused again to whoever waits.
            let _ = self.flush();
        }
    }

    /// Where a small piece of a buffer is, if it can be copied on this thread, now.
    fn at_once(&self, buffer: &OpenClBuffer, offset: usize, bytes: usize) -> Option<*mut u8> {
        let seen = bytes <= AT_ONCE && self.primary.facts.is_processor && !buffer.memory().is_null();
        (seen && self.progress.is_idle()).then(|| buffer.memory().wrapping_add(offset))
    }

    /// Submits the copy of host memory to a buffer.
    fn submit_write(
        &self,
        to: &OpenClBuffer,
        offset: usize,
        bytes: usize,
        from: *const u8,
    ) -> Result<Owned<Event>> {
        match to.reach() {
            Reach::Object(object) => self.primary.enqueue("clEnqueueWriteBuffer", |calls, event| {
                let (queue, none) = (self.raw(), std::ptr::null());
                // SAFETY: the range was checked, and core keeps both ends until the ticket has ended.
                Some(unsafe {
                    (calls.clEnqueueWriteBuffer?)(
                        queue,
                        object,
                        CL_FALSE,
                        offset,
                        bytes,
                        from.cast(),
                        0,
                        none,
                        event,
                    )
                })
            }),
            Reach::Svm(start) | Reach::Usm(start) => {
                self.submit_move(to, start.wrapping_add(offset), from, bytes)
            }
        }
    }

    /// Submits the copy of a buffer to host memory.
    fn submit_read(
        &self,
        from: &OpenClBuffer,
        offset: usize,
        bytes: usize,
        to: *mut u8,
    ) -> Result<Owned<Event>> {
        match from.reach() {
            Reach::Object(object) => self.primary.enqueue("clEnqueueReadBuffer", |calls, event| {
                let (queue, none) = (self.raw(), std::ptr::null());
                // SAFETY: the range was checked, and core keeps both ends until the ticket has ended.
                Some(unsafe {
                    (calls.clEnqueueReadBuffer?)(
                        queue,
                        object,
                        CL_FALSE,
                        offset,
                        bytes,
                        to.cast(),
                        0,
                        none,
                        event,
                    )
                })
            }),
            Reach::Svm(start) | Reach::Usm(start) => {
                self.submit_move(from, to, start.wrapping_add(offset), bytes)
            }
        }
    }

    /// Submits a copy between addresses, one of them `buffer`'s.
    fn submit_move(
        &self,
        buffer: &OpenClBuffer,
        to: *mut u8,
        from: *const u8,
        bytes: usize,
    ) -> Result<Owned<Event>> {
        let (queue, none) = (self.raw(), std::ptr::null());
        match (buffer.reach(), self.primary.facts.usm) {
            (Reach::Usm(_), Some(usm)) => self.primary.enqueue("clEnqueueMemcpyINTEL", |_, event| {
                // SAFETY: the ranges were checked, and core keeps both ends until the ticket has ended.
                Some(unsafe {
                    (usm.clEnqueueMemcpyINTEL)(queue, CL_FALSE, to.cast(), from.cast(), bytes, 0, none, event)
                })
            }),
            _ => self.primary.enqueue("clEnqueueSVMMemcpy", |calls, event| {
                // SAFETY: as above.
                Some(unsafe {
                    (calls.clEnqueueSVMMemcpy?)(
                        queue,
                        CL_FALSE,
                        to.cast(),
                        from.cast(),
                        bytes,
                        0,
                        none,
                        event,
                    )
                })
            }),
        }
    }

    /// Submits one fill that the driver takes.
    fn submit_piece(&self, to: &OpenClBuffer, piece: &convert::Piece) -> Result<Owned<Event>> {
        let (queue, none) = (self.raw(), std::ptr::null());
        let (pattern, unit, bytes) = (piece.pattern.as_ptr().cast(), piece.unit, piece.bytes);
        let offset = piece.offset;
        match (to.reach(), self.primary.facts.usm) {
            (Reach::Object(object), _) => self.primary.enqueue("clEnqueueFillBuffer", |calls, event| {
                // SAFETY: the range was checked, core keeps it until the ticket has ended, and the pattern is copied.
                Some(unsafe {
                    (calls.clEnqueueFillBuffer?)(queue, object, pattern, unit, offset, bytes, 0, none, event)
                })
            }),
            (Reach::Usm(start), Some(usm)) => self.primary.enqueue("clEnqueueMemFillINTEL", |_, event| {
                let to = start.wrapping_add(offset).cast();
                // SAFETY: as above.
                Some(unsafe { (usm.clEnqueueMemFillINTEL)(queue, to, pattern, unit, bytes, 0, none, event) })
            }),
            (Reach::Usm(start) | Reach::Svm(start), _) => {
                self.primary.enqueue("clEnqueueSVMMemFill", |calls, event| {
                    let to = start.wrapping_add(offset).cast();
                    // SAFETY: as above.
                    Some(unsafe {
                        (calls.clEnqueueSVMMemFill?)(queue, to, pattern, unit, bytes, 0, none, event)
                    })
                })
            }
        }
    }

    /// Submits a copy between memory objects.
    pub(crate) fn submit_copy(
        &self,
        (to, to_offset): (Raw, usize),
        (from, from_offset): (Raw, usize),
        bytes: usize,
    ) -> Result<Owned<Event>> {
        self.primary.enqueue("clEnqueueCopyBuffer", |calls, event| {
            let (queue, none) = (self.raw(), std::ptr::null());
            // SAFETY: the ranges were checked, and both objects live until the command has ended.
            Some(unsafe {
                (calls.clEnqueueCopyBuffer?)(queue, from, to, from_offset, to_offset, bytes, 0, none, event)
            })
        })
    }

    /// Calls `submit` with the kernel bound to this queue.
    #[inline]
    fn with_bound<R>(
        &self,
        kernel: &OpenClKernel,
        submit: impl FnOnce(&mut Bound) -> Result<R>,
    ) -> Result<R> {
        let mut submitting = self.submitting.lock();
        match submitting.bound.get_mut(kernel.slot()) {
            Some(Some(bound)) if bound.is_of(kernel) => submit(bound),
            _ => submit(bind(&mut submitting.bound, kernel)?),
        }
    }

    fn submit_empty(&self) -> Result<Owned<Event>> {
        let mut submitting = self.submitting.lock();
        let function = match &submitting.empty {
            Some(function) => function.raw(),
            None => {
                let device = std::ptr::with_exposed_provenance_mut(self.device);
                submitting.empty.insert(builtin::empty(&self.primary, device)?).raw()
            }
        };
        launch::submit(&self.primary, self.raw(), function, [[1; 3], [1; 3]])
    }

    fn submit_marker(&self) -> Result<Owned<Event>> {
        self.primary.enqueue("clEnqueueMarkerWithWaitList", |calls, event| {
            // SAFETY: the queue is alive; an empty list waits for everything before.
            Some(unsafe { (calls.clEnqueueMarkerWithWaitList?)(self.raw(), 0, std::ptr::null(), event) })
        })
    }
}

#[cold]
fn bind<'a>(bound: &'a mut Vec<Option<Bound>>, kernel: &OpenClKernel) -> Result<&'a mut Bound> {
    if bound.len() <= kernel.slot() {
        bound.resize_with(kernel.slot() + 1, || None);
    }
    let place = &mut bound[kernel.slot()];
    Ok(place.insert(Bound::new(kernel)?))
}

/// Column, row and slice of an offset.
fn origin(offset: usize, pitch: usize) -> [usize; 3] {
    [offset % pitch, offset / pitch, 0]
}

pub(crate) fn command_queue(
    primary: &Primary,
    device: Raw,
    options: &QueueOptions,
) -> Result<Owned<CommandQueue>> {
    let (driver, context) = (primary.driver, primary.context.raw());
    let flags = if options.timestamps { CL_QUEUE_PROFILING_ENABLE } else { 0 };
    let raw = if primary.facts.version >= (2, 0) {
        let priority = match options.priority {
            0 => None,
            1.. => Some(HIGH),
            _ => Some(LOW),
        };
        let priority = priority.filter(|_| primary.facts.has("cl_khr_priority_hints"));
        let mut properties = [u64::from(CL_QUEUE_PROPERTIES), flags, 0, 0, 0];
        if let Some(priority) = priority {
            properties[2..4].copy_from_slice(&[CL_QUEUE_PRIORITY_KHR, priority]);
        }
        driver.make("clCreateCommandQueueWithProperties", |calls, code| {
            let list = properties.as_ptr();
            // SAFETY: the device is the context's, and the list ends with 0.
            Some(unsafe { (calls.clCreateCommandQueueWithProperties?)(context, device, list, code) })
        })?
    } else {
        driver.make("clCreateCommandQueue", |calls, code| {
            // SAFETY: the device is the context's.
            Some(unsafe { (calls.clCreateCommandQueue?)(context, device, flags, code) })
        })?
    };
    // SAFETY: it was just made.
    Ok(unsafe { Owned::new(driver, raw) })
}

impl Queue for OpenClQueue {
    type Buffer = OpenClBuffer;
    type Kernel = OpenClKernel;
    type Graph = OpenClGraph;

    #[inline]
    fn launch(&self, place: Place, kernel: &OpenClKernel, launch: &Launch<'_, OpenClBuffer>) -> Result<()> {
        launch::check(launch)?;
        let shape = [launch.groups(), launch.group_size()];
        if shape[0].contains(&0) {
            self.took_all(place, None);
            return Ok(());
        }
        self.with_bound(kernel, |bound| {
            if !bound.set_all(kernel, launch.args())? {
                return launch::submit_copied(self, place, kernel, bound, launch);
            }
            let event = launch::submit(&self.primary, self.raw(), bound.function(), shape);
            self.took(place, event.map_err(|error| kernel.named(error))?);
            Ok(())
        })
    }

    fn write(&self, place: Place, destination: &OpenClBuffer, offset: u64, source: HostBytes) -> Result<()> {
        let (offset, bytes) = destination.range("write", offset, source.len() as u64)?;
        if bytes == 0 {
            self.took_all(place, None);
            return Ok(());
        }
        if let Some(to) = self.at_once(destination, offset, bytes) {
            // SAFETY: the range was checked, nothing is in flight, and core keeps both ends until the ticket has ended.
            unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), to, bytes) };
            self.took_all(place, None);
            return Ok(());
        }
        self.took(place, self.submit_write(destination, offset, bytes, source.as_ptr())?);
        Ok(())
    }

    fn read(
        &self,
        place: Place,
        source: &OpenClBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        let (offset, bytes) = source.range("read", offset, destination.len() as u64)?;
        if bytes == 0 {
            self.took_all(place, None);
            return Ok(());
        }
        if let Some(from) = self.at_once(source, offset, bytes) {
            // SAFETY: the range was checked, nothing is in flight, and core keeps both ends until the ticket has ended.
            unsafe { std::ptr::copy_nonoverlapping(from, destination.as_ptr(), bytes) };
            self.took_all(place, None);
            return Ok(());
        }
        self.took(place, self.submit_read(source, offset, bytes, destination.as_ptr())?);
        Ok(())
    }

    fn copy(
        &self,
        place: Place,
        destination: (&OpenClBuffer, u64),
        source: (&OpenClBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        let ((to, to_offset), (from, from_offset)) = (destination, source);
        let (to_offset, bytes) = to.range("copy: destination", to_offset, bytes)?;
        let (from_offset, _) = from.range("copy: source", from_offset, bytes as u64)?;
        if !Arc::ptr_eq(to.primary(), &self.primary) || !Arc::ptr_eq(from.primary(), &self.primary) {
            return Err(Error::unsupported("a copy on the device between devices that share no context"));
        }
        if bytes == 0 {
            self.took_all(place, None);
            return Ok(());
        }
        let event = match (to.reach(), from.reach()) {
            (Reach::Object(object), Reach::Object(other)) => {
                self.submit_copy((object, to_offset), (other, from_offset), bytes)?
            }
            (Reach::Object(_), Reach::Svm(start) | Reach::Usm(start)) => {
                self.submit_write(to, to_offset, bytes, start.wrapping_add(from_offset))?
            }
            (Reach::Svm(start) | Reach::Usm(start), _) => {
                self.submit_read(from, from_offset, bytes, start.wrapping_add(to_offset))?
            }
        };
        self.took(place, event);
        Ok(())
    }

    fn copy_rows(&self, place: Place, rows: &RowCopy<'_, OpenClBuffer>) -> Result<()> {
        let ((to, to_offset), (from, from_offset)) = (rows.destination, rows.source);
        let to_span = rows.span_bytes(rows.destination_pitch);
        let (to_offset, _) = to.range("copy: destination", to_offset, to_span)?;
        let from_span = rows.span_bytes(rows.source_pitch);
        let (from_offset, _) = from.range("copy: source", from_offset, from_span)?;
        let own = [to, from].iter().all(|buffer| Arc::ptr_eq(buffer.primary(), &self.primary));
        let (Reach::Object(object), Reach::Object(other), true) = (to.reach(), from.reach(), own) else {
            return Err(Error::unsupported("rows of memory that is no buffer of this device's context"));
        };
        // Within the buffers, so all fit the address space.
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let region = [size(rows.row_bytes), size(rows.rows), 1];
        let (to_pitch, from_pitch) = (size(rows.destination_pitch), size(rows.source_pitch));
        let (to_origin, from_origin) = (origin(to_offset, to_pitch), origin(from_offset, from_pitch));
        let event = self.primary.enqueue("clEnqueueCopyBufferRect", |calls, event| {
            let (from_origin, to_origin, region) =
                (from_origin.as_ptr(), to_origin.as_ptr(), region.as_ptr());
            // SAFETY: both rectangles lie within their buffers, which live until the command has ended.
            Some(unsafe {
                (calls.clEnqueueCopyBufferRect?)(
                    self.raw(),
                    other,
                    object,
                    from_origin,
                    to_origin,
                    region,
                    from_pitch,
                    0,
                    to_pitch,
                    0,
                    0,
                    std::ptr::null(),
                    event,
                )
            })
        })?;
        self.took(place, event);
        Ok(())
    }

    fn fill(
        &self,
        place: Place,
        destination: (&OpenClBuffer, u64),
        bytes: u64,
        pattern: &[u8],
    ) -> Result<()> {
        let (offset, bytes) = destination.0.range("fill", destination.1, bytes)?;
        let pieces = convert::pieces(offset, bytes, pattern).ok_or_else(|| {
            let unit = pattern.len();
            Error::invalid(format!(
                "fill: {bytes} bytes with a pattern of {unit}; 1, 2, 4, 8 or 16 that divide it"
            ))
        })?;
        let mut events = Vec::new();
        for piece in pieces {
            match self.submit_piece(destination.0, &piece) {
                Ok(event) => events.push(event),
                Err(error) if events.is_empty() => return Err(error),
                Err(error) => {
                    self.progress.fail(place.ticket, error);
                    break;
                }
            }
        }
        self.took_all(place, events);
        Ok(())
    }

    fn empty(&self, place: Place) -> Result<()> {
        self.took(place, self.submit_empty()?);
        Ok(())
    }

    fn timestamp(&self, place: Place) -> Result<()> {
        if !self.options.timestamps {
            return Err(Error::unsupported("a timestamp of a queue opened without `timestamps`"));
        }
        let event = self.submit_marker()?;
        self.timestamps.lock().add(place.ticket, event.share()?);
        self.took(place, event);
        Ok(())
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        let mut timestamps = self.timestamps.lock();
        let event = timestamps.take(ticket)?;
        if self.progress.poll()? < ticket {
            timestamps.add(ticket, event);
            return Err(Error::invalid(format!("ticket {ticket} has not ended; wait for its event first")));
        }
        drop(timestamps);
        timer::end(&self.primary, &event)
    }

    fn replay(&self, place: Place, graph: &OpenClGraph) -> Result<()> {
        self.took(place, graph.enqueue(self.raw(), self.options)?);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        if self.unflushed.swap(0, Ordering::Relaxed) == 0 {
            return Ok(());
        }
        // SAFETY: the queue is alive.
        self.primary.check("clFlush", |calls| Some(unsafe { (calls.clFlush?)(self.raw()) }))
    }

    fn poll(&self) -> Result<Reached> {
        let completed = self.progress.poll()?;
        Ok(Reached { completed, first_failed: self.progress.first_failed() })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.progress.wait(ticket, slice)
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        if !Arc::ptr_eq(&self.primary, &other.primary) {
            return Err(Error::unsupported("a wait on the device for another one, which shares no context,"));
        }
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        let Some(event) = other.progress.event(ticket)? else { return Ok(()) };
        let raw = event.raw();
        let barrier = self.primary.enqueue("clEnqueueBarrierWithWaitList", |calls, barrier| {
            // SAFETY: queue and event are alive and of one context.
            Some(unsafe { (calls.clEnqueueBarrierWithWaitList?)(self.raw(), 1, &raw const raw, barrier) })
        })?;
        self.progress.waits(barrier);
        Ok(())
    }

    fn failure(&self) -> Option<Error> {
        self.progress.failure()
    }
}
