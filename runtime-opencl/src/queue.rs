//! Queues: an in-order command queue of the driver each.

#![allow(unsafe_code, reason = "submits through the driver")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cl3::ext::{CL_QUEUE_PRIORITY_KHR, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES};
use parking_lot::Mutex;
use runtime_core::abi::{Place, Progress as Reached};
use runtime_core::backend::{HostBytes, HostBytesMut, Launch, Queue, QueueOptions, RowCopy};
use runtime_core::{Error, ErrorKind, Result};

use crate::compiler::Launched;
use crate::context::Primary;
use crate::convert;
use crate::driver::Raw;
use crate::driver::handle::{CommandQueue, Event, Function, Owned};
use crate::graph::OpenClGraph;
use crate::kernel::{Bound, OpenClKernel};
use crate::launch;
use crate::memory::OpenClBuffer;
use crate::progress::Progress;
use crate::spread;
use crate::staging::{LARGE, Staging, Transfer, Way};
use crate::timer::{self, Timestamps};
use crate::transfer::{End, Lane};

/// Submissions after which the driver is told to begin, if nobody has asked for that.
const BATCH: u32 = 32;
/// `CL_OUT_OF_RESOURCES`.
const OUT_OF_RESOURCES: i64 = -5;
/// `CL_QUEUE_PRIORITY_HIGH_KHR` and `CL_QUEUE_PRIORITY_LOW_KHR`.
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
    progress: Arc<Progress>,
    timestamps: Mutex<Timestamps>,
    staging: Staging,
    /// Submissions, markers and barriers since the last flush.
    unflushed: AtomicU32,
}

impl OpenClQueue {
    pub(crate) fn open(primary: &Arc<Primary>, device: Raw, options: &QueueOptions) -> Result<Self> {
        primary.check_alive()?;
        let progress = Arc::new(Progress::new(Arc::clone(primary)));
        primary.deferred.watch(&progress);
        Ok(Self {
            primary: Arc::clone(primary),
            device: device.expose_provenance(),
            queue: command_queue(primary, device, options)?,
            options: *options,
            submitting: Mutex::default(),
            progress,
            timestamps: Mutex::default(),
            staging: Staging::default(),
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
        let unflushed = self.unflushed.fetch_add(1, Ordering::Relaxed) + 1;
        if idle || unflushed >= BATCH {
            // What it refuses is refused again to whoever waits.
            let _ = self.flush();
        }
    }

    #[inline]
    pub(crate) fn lane(&self) -> Lane<'_> {
        Lane { primary: &self.primary, queue: self.raw() }
    }

    /// Where memory that the processor sees is, if it can be copied here, now: on a device that is the processor, the driver
    /// does nothing else, later and on fewer threads.
    fn at_once(&self, buffer: &OpenClBuffer, offset: usize) -> Option<*mut u8> {
        let here = (self.primary.facts.is_processor || buffer.is_mapped()) && !buffer.memory().is_null();
        (here && self.progress.is_idle()).then(|| buffer.memory().wrapping_add(offset))
    }

    /// Calls `submit` with the kernel bound to this queue.
    #[inline]
    fn with_bound<R>(
        &self,
        kernel: &OpenClKernel,
        submit: impl FnOnce(&mut Bound) -> Result<R>,
    ) -> Result<R> {
        let mut submitting = self.submitting.lock();
        let bound = match submitting.bound.get_mut(kernel.slot()) {
            Some(Some(bound)) if bound.is_of(kernel) => bound,
            _ => bind(&mut submitting.bound, kernel)?,
        };
        let outcome = submit(bound);
        // What was submitted keeps them; kept here, they would keep their memory from being freed.
        bound.release_parts();
        outcome
    }

    fn submit_empty(&self) -> Result<Owned<Event>> {
        let mut submitting = self.submitting.lock();
        let first = Launched::default();
        let mut _alone = None;
        let function = match &submitting.empty {
            Some(function) => function.raw(),
            None => {
                let device = std::ptr::with_exposed_provenance_mut(self.device);
                let function = self.primary.builtins.empty(&self.primary, device)?;
                _alone = self.primary.first_launch(self.raw(), &first);
                submitting.empty.insert(function).raw()
            }
        };
        launch::submit(&self.primary, self.raw(), function, [[1; 3], [1; 3]])
    }

    /// Carries a large transfer of pageable memory out by threads, if that is faster; says whether it did.
    fn stage(&self, place: Place, way: Way, host: *mut u8, end: End, bytes: usize) -> bool {
        let End::Object(object, at) = end else { return false };
        if bytes < LARGE || !self.primary.facts.stages || !self.progress.is_idle() {
            return false;
        }
        let transfer = Transfer { queue: self.raw(), way, host, object: (object, at), bytes };
        let (mut events, outcome) = self.staging.run(&self.primary, transfer);
        match outcome {
            // Nothing was begun; but what a thread that panicked had begun is unknown.
            Err(error) if events.is_empty() && error.kind() != ErrorKind::Internal => return false,
            Err(error) => self.progress.fail(place.ticket, error),
            Ok(()) => {}
        }
        // The threads' commands are in no order: the last event must be that of the end.
        match self.submit_marker() {
            Ok(marker) => events.push(marker),
            Err(_) => events.iter().for_each(|event| self.primary.synchronise(event.raw())),
        }
        self.took_all(place, events);
        true
    }

    fn check_own(&self, buffers: [&OpenClBuffer; 2]) -> Result<()> {
        if buffers.iter().all(|buffer| Arc::ptr_eq(buffer.primary(), &self.primary)) {
            return Ok(());
        }
        Err(Error::unsupported("devices that share no context do not copy between each other"))
    }

    fn submit_marker(&self) -> Result<Owned<Event>> {
        let marked = self.primary.enqueue("clEnqueueMarkerWithWaitList", |calls, event| {
            // SAFETY: the queue is alive; an empty list waits for everything before.
            Some(unsafe { (calls.clEnqueueMarkerWithWaitList?)(self.raw(), 0, std::ptr::null(), event) })
        });
        self.unflushed.fetch_add(1, Ordering::Relaxed);
        marked.map_err(|error| match error.driver() {
            // A marker takes nothing: this is what is left after a fault.
            Some((_, code @ OUT_OF_RESOURCES)) if self.primary.facts.fails_for_good => {
                self.primary.lose(i32::try_from(code).unwrap_or(0))
            }
            _ => error,
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
        let mut first = self.primary.first_launch(self.raw(), &kernel.launched);
        self.with_bound(kernel, |bound| {
            if !bound.set_all(kernel, launch.args())? {
                return launch::submit_copied(self, place, kernel, bound, launch);
            }
            if self.primary.facts.fails_for_good {
                let taken = launch::submit_unseen(&self.primary, self.raw(), bound.function(), shape);
                taken.map_err(|error| kernel.named(error))?;
                self.progress.took_unseen(place.ticket);
                self.begin(false);
                return Ok(());
            }
            let event = launch::submit(&self.primary, self.raw(), bound.function(), shape);
            let event = event.map_err(|error| kernel.named(error))?;
            if let Some(first) = first.take() {
                first.wait_until_running(event.raw());
            }
            self.took(place, event);
            Ok(())
        })
    }

    fn write(&self, place: Place, destination: &OpenClBuffer, offset: u64, source: HostBytes) -> Result<()> {
        let (offset, bytes) = destination.range("write", offset, source.len() as u64)?;
        let from = source.as_ptr();
        let events = match self.at_once(destination, offset) {
            _ if bytes == 0 => Vec::new(),
            Some(to) => {
                // SAFETY: the range was checked, nothing is in flight, and core keeps both ends until the ticket has ended.
                unsafe { spread::copy(to, from, bytes) };
                Vec::new()
            }
            None => {
                let (to, from) = (destination.end(offset), from.cast_mut());
                if self.stage(place, Way::ToDevice, from, to, bytes) {
                    return Ok(());
                }
                self.lane().copy(to, End::Host(from), bytes)?
            }
        };
        self.took_all(place, events);
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
        let to = destination.as_ptr();
        let events = match self.at_once(source, offset) {
            _ if bytes == 0 => Vec::new(),
            Some(from) => {
                // SAFETY: the range was checked, nothing is in flight, and core keeps both ends until the ticket has ended.
                unsafe { spread::copy(to, from, bytes) };
                Vec::new()
            }
            None => {
                let from = source.end(offset);
                if self.stage(place, Way::ToHost, to, from, bytes) {
                    return Ok(());
                }
                self.lane().copy(End::Host(to), from, bytes)?
            }
        };
        self.took_all(place, events);
        Ok(())
    }

    fn copy(
        &self,
        place: Place,
        destination: (&OpenClBuffer, u64),
        source: (&OpenClBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        let ((to, at), (from, of)) = (destination, source);
        let (at, bytes) = to.range("copy: destination", at, bytes)?;
        let (of, _) = from.range("copy: source", of, bytes as u64)?;
        self.check_own([to, from])?;
        let events = match bytes {
            0 => Vec::new(),
            _ => self.lane().copy(to.end(at), from.end(of), bytes)?,
        };
        self.took_all(place, events);
        Ok(())
    }

    fn copy_rows(&self, place: Place, rows: &RowCopy<'_, OpenClBuffer>) -> Result<()> {
        let ((to, at), (from, of)) = (rows.destination, rows.source);
        let (at, _) = to.range("copy: destination", at, rows.span_bytes(rows.destination_pitch))?;
        let (of, _) = from.range("copy: source", of, rows.span_bytes(rows.source_pitch))?;
        self.check_own([to, from])?;
        let (End::Object(to, at), End::Object(from, of)) = (to.end(at), from.end(of)) else {
            return Err(Error::unsupported(
                "a copy of rows of memory that is no buffer of the driver is not supported",
            ));
        };
        if to == from && rows.destination_pitch != rows.source_pitch {
            return Err(Error::unsupported(
                "rows within a buffer are not copied between pitches that differ",
            ));
        }
        self.took(place, self.lane().copy_rows((to, at), (from, of), rows)?);
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
            match self.lane().fill(destination.0.end(piece.offset), &piece) {
                Ok(more) => events.extend(more),
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
            return Err(Error::unsupported(
                "a timestamp of a queue opened without `timestamps` is not supported",
            ));
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

    fn mark(&self, ticket: u64) -> Result<()> {
        if !self.progress.is_covered(ticket) {
            self.progress.cover(ticket, self.submit_marker()?);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        if self.unflushed.swap(0, Ordering::Relaxed) == 0 {
            return Ok(());
        }
        // SAFETY: the queue is alive.
        let flushed = self.primary.check("clFlush", |calls| Some(unsafe { (calls.clFlush?)(self.raw()) }));
        if flushed.is_err() {
            // Whoever asks next tries again.
            self.unflushed.fetch_add(1, Ordering::Relaxed);
        }
        flushed
    }

    fn poll(&self) -> Result<Reached> {
        if self.primary.facts.fails_for_good
            && let Some(tail) = self.progress.uncovered()
        {
            // Nobody marks it, and memory waits for its end.
            self.progress.cover(tail, self.submit_marker()?);
            self.flush()?;
        }
        let completed = self.progress.poll()?;
        Ok(Reached { completed, first_failed: self.progress.first_failed() })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.progress.wait(ticket, slice)
    }

    fn finish(&self, ticket: u64) -> Result<()> {
        if self.primary.quirks.polls || self.primary.driver.is_serial() {
            return Err(Error::unsupported("a wait that blocks in this driver is not supported"));
        }
        self.progress.finish(ticket, self.raw())
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        if !Arc::ptr_eq(&self.primary, &other.primary) {
            return Err(Error::unsupported("the device cannot wait for one that shares no context with it"));
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
        self.unflushed.fetch_add(1, Ordering::Relaxed);
        self.progress.waits(barrier);
        Ok(())
    }

    fn failure(&self) -> Option<Error> {
        self.progress.failure()
    }
}
