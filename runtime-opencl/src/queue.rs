//! Queues: one in-order OpenCL command queue each.

#![allow(unsafe_code, reason = "submits through the driver")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::abi::{Progress as CompletedPrefix, SubmitInfo};
use runtime_core::backend::{
    Copy2D, FillPattern, HostBytes, HostBytesMut, HostRange, Launch, NativeHandle, Queue, UnreadTimestamps,
};
use runtime_core::{Error, ErrorKind, QueueOptions, Result};

use crate::compile_lock::LaunchedFlag;
use crate::context::SharedContext;
use crate::convert;
use crate::device_state::DeviceState;
use crate::driver::handle::{self, CommandQueue, Event, Owned};
use crate::driver::{Raw, call, enqueue};
use crate::enqueuer::{Enqueuer, Location};
use crate::graph::OpenClGraph;
use crate::hold::Hold;
use crate::kernel::OpenClKernel;
use crate::kernel_binding::KernelBinding;
use crate::launch;
use crate::memory::OpenClBuffer;
use crate::parallel_copy;
use crate::progress::Progress;
use crate::staging::{StagedCopy, Staging};
use crate::timer;

/// Submissions after which the queue is flushed, if it was not flushed before.
const FLUSH_INTERVAL: u32 = 32;
/// `CL_OUT_OF_RESOURCES`.
const OUT_OF_RESOURCES: i64 = -5;

/// State that only submissions use. They never overlap.
#[derive(Debug, Default)]
pub(crate) struct SubmitState {
    /// By kernel slot.
    bindings: Vec<Option<KernelBinding>>,
    noop: Option<Owned<handle::Kernel>>,
}

/// An in-order queue of a device.
#[derive(Debug)]
pub struct OpenClQueue {
    /// That of `shared`, for the launch path.
    context: Arc<SharedContext>,
    shared: Arc<DeviceState>,
    device: usize,
    queue: Owned<CommandQueue>,
    options: QueueOptions,
    submit_state: Mutex<SubmitState>,
    progress: Arc<Progress>,
    timestamps: Mutex<UnreadTimestamps<Owned<Event>>>,
    staging: Staging,
    hold: Hold,
    /// Submissions, markers and barriers since the last flush.
    unflushed: AtomicU32,
}

impl OpenClQueue {
    pub(crate) fn open(shared: &Arc<DeviceState>, device: Raw, options: &QueueOptions) -> Result<Self> {
        shared.context.check_alive()?;
        Ok(Self::over(shared, device, shared.context.create_queue(device, options)?, *options))
    }

    /// A queue over one of the program.
    pub(crate) fn borrow(shared: &Arc<DeviceState>, device: Raw, native: u64) -> Result<Self> {
        shared.context.check_alive()?;
        let (queue, options) = shared.context.borrow_queue(device, native)?;
        Ok(Self::over(shared, device, queue, options))
    }

    fn over(
        shared: &Arc<DeviceState>,
        device: Raw,
        queue: Owned<CommandQueue>,
        options: QueueOptions,
    ) -> Self {
        let context = &shared.context;
        let progress = Arc::new(Progress::new(Arc::clone(context)));
        shared.deferred.register_queue(&progress);
        Self {
            context: Arc::clone(context),
            shared: Arc::clone(shared),
            device: device.expose_provenance(),
            queue,
            options,
            submit_state: Mutex::default(),
            progress,
            timestamps: Mutex::default(),
            staging: Staging::default(),
            hold: Hold::default(),
            unflushed: AtomicU32::new(0),
        }
    }

    #[inline]
    fn raw(&self) -> Raw {
        self.queue.raw()
    }

    /// Records a submission of one command, and flushes a queue that was idle.
    #[inline]
    fn note_submitted(&self, submit: SubmitInfo, event: Owned<Event>) {
        let idle = self.progress.note_submitted(submit.ticket, event);
        self.flush_if_needed(idle);
    }

    /// Records a submission of several commands, or of none.
    fn note_submitted_all(&self, submit: SubmitInfo, events: impl IntoIterator<Item = Owned<Event>>) {
        self.progress.note_submitted_all(submit.ticket, events);
        self.flush_if_needed(true);
    }

    #[inline]
    fn flush_if_needed(&self, idle: bool) {
        let unflushed = self.unflushed.fetch_add(1, Ordering::Relaxed) + 1;
        if self.hold.is_active() {
            if self.hold.is_full() {
                self.end_hold();
            }
            // The driver gets everything at once, when the hold ends.
            return;
        }
        if idle || unflushed >= FLUSH_INTERVAL {
            // If the flush fails, the next wait flushes again and returns the error.
            let _ = self.flush();
        }
    }

    /// Ends a hold before a submission during which the driver may wait for the queue.
    #[inline]
    fn end_hold(&self) {
        if self.hold.is_active() {
            // If this fails, whoever waits for the queue tries again and returns the error.
            let _ = self.resume();
        }
    }

    #[inline]
    fn enqueuer(&self) -> Enqueuer<'_> {
        Enqueuer { context: &self.context, queue: self.raw() }
    }

    /// The address of host-visible memory, if the calling thread can copy it right now. On a CPU device the driver would do the
    /// same, only later and on fewer threads.
    fn inline_copy_address(&self, buffer: &OpenClBuffer, offset: usize) -> Option<*mut u8> {
        let is_reachable = (self.context.caps.is_processor || buffer.is_mapped()) && !buffer.start.is_null();
        (is_reachable && self.progress.is_idle()).then(|| buffer.start.wrapping_add(offset))
    }

    /// Calls `submit` with the binding of the kernel to this queue.
    #[inline]
    fn with_binding<R>(
        &self,
        kernel: &OpenClKernel,
        submit: impl FnOnce(&mut KernelBinding) -> Result<R>,
    ) -> Result<R> {
        let mut submit_state = self.submit_state.lock();
        let binding = match submit_state.bindings.get_mut(kernel.slot as usize) {
            Some(Some(binding)) if binding.is_for(kernel) => binding,
            _ => create_binding(&mut submit_state.bindings, kernel)?,
        };
        let outcome = submit(binding);
        // The submitted command retains them. Held here, they would keep their buffers from being freed.
        binding.release_sub_buffers();
        outcome
    }

    fn enqueue_noop(&self) -> Result<Owned<Event>> {
        let mut submit_state = self.submit_state.lock();
        let first = LaunchedFlag::default();
        let mut _guard = None;
        let kernel = match &submit_state.noop {
            Some(kernel) => kernel.raw(),
            None => {
                let device = std::ptr::with_exposed_provenance_mut(self.device);
                let noop = self.shared.builtins.noop(&self.context, device)?;
                self.end_hold();
                _guard = self.context.lock_first_launch(self.raw(), &first);
                submit_state.noop.insert(noop).raw()
            }
        };
        launch::enqueue(&self.context, self.raw(), kernel, [[1; 3], [1; 3]])
    }

    /// Transfers a range of a buffer to or from host memory.
    fn transfer(
        &self,
        submit: SubmitInfo,
        buffer: &OpenClBuffer,
        (offset, bytes): (usize, usize),
        host: &HostRange,
    ) -> Result<()> {
        self.end_hold();
        let events = match self.inline_copy_address(buffer, offset) {
            _ if bytes == 0 => Vec::new(),
            Some(device) => {
                let (to, from) = host.direction().order(device, host.as_ptr());
                // SAFETY: the range was checked, nothing is in flight, and core keeps both sides alive until the ticket ends.
                unsafe { parallel_copy::copy(to, from, bytes) };
                Vec::new()
            }
            None => {
                let device = buffer.location(offset);
                if self.copy_staged(submit, host, device) {
                    return Ok(());
                }
                let (to, from) = host.direction().order(device, Location::Host(host.as_ptr()));
                self.enqueuer().copy(to, from, bytes)?
            }
        };
        self.note_submitted_all(submit, events);
        Ok(())
    }

    /// Makes a large transfer of pageable memory through staging buffers, where that is faster. Returns whether it did.
    fn copy_staged(&self, submit: SubmitInfo, host: &HostRange, device: Location) -> bool {
        let Location::Object(object, at) = device else { return false };
        if !Staging::is_worth_it(self.shared.staging, host.size_bytes())
            || !self.context.caps.stages_transfers
            || !self.progress.is_idle()
        {
            return false;
        }
        let copy = StagedCopy { queue: self.raw(), host, object: (object, at) };
        let (mut events, outcome) = self.staging.run(&self.shared, copy);
        match outcome {
            // Nothing was submitted. (After a panic of a thread, that is unknown.)
            Err(error) if events.is_empty() && error.kind() != ErrorKind::Internal => return false,
            Err(error) => self.progress.fail(submit.ticket, error),
            Ok(()) => {}
        }
        // The threads submit in no order, so a marker is the event that ends last.
        match self.enqueue_marker() {
            Ok(marker) => events.push(marker),
            Err(_) => events.iter().for_each(|event| self.context.synchronise(event.raw())),
        }
        self.note_submitted_all(submit, events);
        true
    }

    fn check_same_context(&self, buffers: [&OpenClBuffer; 2]) -> Result<()> {
        if buffers.iter().all(|buffer| Arc::ptr_eq(buffer.context(), &self.context)) {
            return Ok(());
        }
        Err(Error::unsupported("copies between devices need a shared context"))
    }

    /// Makes later submissions wait for an event.
    fn enqueue_barrier(&self, event: &Owned<Event>) -> Result<()> {
        let raw = event.raw();
        let barrier = self.context.enqueue("clEnqueueBarrierWithWaitList", |cl, barrier| {
            // SAFETY: queue and event are alive and in one context.
            Some(unsafe { (cl.clEnqueueBarrierWithWaitList?)(self.raw(), 1, &raw const raw, barrier) })
        })?;
        self.unflushed.fetch_add(1, Ordering::Relaxed);
        self.progress.add_barrier(barrier);
        Ok(())
    }

    fn enqueue_marker(&self) -> Result<Owned<Event>> {
        // SAFETY: the queue is alive; an empty list waits for all earlier commands.
        let marked = unsafe { enqueue!(self.context.enqueue, clEnqueueMarkerWithWaitList(self.raw())) };
        self.unflushed.fetch_add(1, Ordering::Relaxed);
        marked.map_err(|error| match error.driver() {
            // A marker needs no resources: this is the aftermath of a fault.
            Some((_, code @ OUT_OF_RESOURCES)) if self.context.caps.fails_for_good => {
                self.context.declare_lost(i32::try_from(code).unwrap_or(0))
            }
            _ => error,
        })
    }
}

impl Drop for OpenClQueue {
    fn drop(&mut self) {
        self.end_hold();
    }
}

#[cold]
fn create_binding<'a>(
    bindings: &'a mut Vec<Option<KernelBinding>>,
    kernel: &OpenClKernel,
) -> Result<&'a mut KernelBinding> {
    let slot = kernel.slot as usize;
    if bindings.len() <= slot {
        bindings.resize_with(slot + 1, || None);
    }
    let entry = &mut bindings[slot];
    Ok(entry.insert(KernelBinding::new(kernel)?))
}

impl Queue for OpenClQueue {
    type Buffer = OpenClBuffer;
    type Kernel = OpenClKernel;
    type Graph = OpenClGraph;

    #[inline]
    fn launch(
        &self,
        submit: SubmitInfo,
        kernel: &OpenClKernel,
        launch: &Launch<'_, OpenClBuffer>,
    ) -> Result<()> {
        launch::check_supported(launch)?;
        let shape = [launch.groups(), launch.group_size()];
        if shape[0].contains(&0) {
            self.note_submitted_all(submit, None);
            return Ok(());
        }
        let mut first = self.context.lock_first_launch(self.raw(), &kernel.launched);
        if first.is_some() {
            self.end_hold();
        }
        let grids = [(kernel.name.as_c_str(), shape)];
        self.with_binding(kernel, |binding| {
            if !binding.set_args(kernel, launch.args())? {
                self.end_hold();
                let ticket = (&*self.progress, submit.ticket);
                let guard = self.hold.keep_apart(&self.context, self.raw(), &grids);
                let events = launch::launch_with_copies(self.enqueuer(), ticket, kernel, binding, launch)?;
                if let (Some(guard), Some(last)) = (guard, events.last()) {
                    guard.note(&grids, last);
                }
                self.note_submitted_all(submit, events);
                return Ok(());
            }
            if self.context.caps.fails_for_good {
                let submitted =
                    launch::enqueue_without_event(&self.context, self.raw(), binding.raw(), shape);
                submitted.map_err(|error| kernel.with_name(error))?;
                self.progress.note_without_event(submit.ticket);
                self.flush_if_needed(false);
                return Ok(());
            }
            let guard = self.hold.keep_apart(&self.context, self.raw(), &grids);
            let event = launch::enqueue(&self.context, self.raw(), binding.raw(), shape);
            let event = event.map_err(|error| kernel.with_name(error))?;
            if let Some(guard) = guard {
                guard.note(&grids, &event);
            }
            if let Some(first) = first.take() {
                first.wait_until_running(event.raw());
            }
            self.note_submitted(submit, event);
            Ok(())
        })
    }

    fn write(
        &self,
        submit: SubmitInfo,
        destination: &OpenClBuffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()> {
        let range = destination.range("write", offset, source.len() as u64)?;
        self.transfer(submit, destination, range, &HostRange::Source(source))
    }

    fn read(
        &self,
        submit: SubmitInfo,
        source: &OpenClBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        let range = source.range("read", offset, destination.len() as u64)?;
        self.transfer(submit, source, range, &HostRange::Destination(destination))
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        destination: (&OpenClBuffer, u64),
        source: (&OpenClBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        let ((to, at), (from, of)) = (destination, source);
        let (at, bytes) = to.range("copy: destination", at, bytes)?;
        let (of, _) = from.range("copy: source", of, bytes as u64)?;
        self.check_same_context([to, from])?;
        self.end_hold();
        let events = match bytes {
            0 => Vec::new(),
            _ => self.enqueuer().copy(to.location(at), from.location(of), bytes)?,
        };
        self.note_submitted_all(submit, events);
        Ok(())
    }

    fn copy_2d(&self, submit: SubmitInfo, rows: &Copy2D<'_, OpenClBuffer>) -> Result<()> {
        let ((to, at), (from, of)) = (rows.destination, rows.source);
        let (at, _) = to.range("copy: destination", at, rows.span_bytes(rows.destination_pitch))?;
        let (of, _) = from.range("copy: source", of, rows.span_bytes(rows.source_pitch))?;
        self.check_same_context([to, from])?;
        let (Location::Object(to, at), Location::Object(from, of)) = (to.location(at), from.location(of))
        else {
            return Err(Error::unsupported("pitched copies need `cl_mem` buffers on both sides"));
        };
        if to == from && rows.destination_pitch != rows.source_pitch {
            return Err(Error::unsupported("pitched copies within one buffer need equal pitches"));
        }
        self.end_hold();
        self.note_submitted(submit, self.enqueuer().copy_2d((to, at), (from, of), rows)?);
        Ok(())
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        destination: (&OpenClBuffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()> {
        let (offset, bytes) = destination.0.range("fill", destination.1, bytes)?;
        self.end_hold();
        let mut events = Vec::new();
        for piece in convert::split_fill(offset, bytes, pattern) {
            match self.enqueuer().fill(destination.0.location(piece.offset), &piece) {
                Ok(more) => events.extend(more),
                Err(error) if events.is_empty() => return Err(error),
                Err(error) => {
                    self.progress.fail(submit.ticket, error);
                    break;
                }
            }
        }
        self.note_submitted_all(submit, events);
        Ok(())
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        self.note_submitted(submit, self.enqueue_noop()?);
        Ok(())
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        if !self.options.timestamps {
            return Err(Error::unsupported("timestamps need a queue that was opened with `timestamps`"));
        }
        let event = self.enqueue_marker()?;
        let mut timestamps = self.timestamps.lock();
        drop(timestamps.discard(submit.ticket));
        timestamps.add(submit.ticket, event.share()?);
        drop(timestamps);
        self.note_submitted(submit, event);
        Ok(())
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        let read = |event: &_| match self.progress.poll()? < ticket {
            true => Ok(None),
            false => timer::end_time_ns(&self.context, event).map(Some),
        };
        self.timestamps.lock().read(ticket, read).map(|(_, time_ns)| time_ns)
    }

    fn replay(&self, submit: SubmitInfo, graph: &OpenClGraph) -> Result<()> {
        self.end_hold();
        self.note_submitted(submit, graph.enqueue(self.raw(), self.options, &self.hold)?);
        Ok(())
    }

    fn submit_native(&self, submit: SubmitInfo, work: &mut dyn FnMut(&[NativeHandle])) -> Result<()> {
        self.context.check_alive()?;
        self.end_hold();
        let device: Raw = std::ptr::with_exposed_provenance_mut(self.device);
        let handles = [
            NativeHandle::pointer("cl_command_queue", self.raw()),
            NativeHandle::pointer("cl_context", self.context.handle.raw()),
            NativeHandle::pointer("cl_device_id", device),
        ];
        // Under the lock of a library that is not thread-safe.
        self.context.driver.call("native", |_| {
            work(&handles);
            Some(())
        })?;
        match self.enqueue_marker() {
            Ok(marker) => self.note_submitted(submit, marker),
            Err(_) => {
                self.context.finish_queue(self.raw());
                self.note_submitted_all(submit, None);
            }
        }
        Ok(())
    }

    fn signal(&self, ticket: u64) -> Result<()> {
        if !self.progress.is_watched(ticket) {
            self.progress.add_marker(ticket, self.enqueue_marker()?);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        if self.unflushed.swap(0, Ordering::Relaxed) == 0 {
            return Ok(());
        }
        // SAFETY: the queue is alive.
        let flushed = unsafe { call!(self.context.check, clFlush(self.raw())) };
        if flushed.is_err() {
            // The next flush tries again.
            self.unflushed.fetch_add(1, Ordering::Relaxed);
        }
        flushed
    }

    fn poll(&self) -> Result<CompletedPrefix> {
        if self.context.caps.fails_for_good
            && let Some(last) = self.progress.last_unwatched()
        {
            // Core signals no ticket here, and memory in use waits for this one.
            self.progress.add_marker(last, self.enqueue_marker()?);
            self.flush()?;
        }
        let completed = self.progress.poll()?;
        self.shared.deferred.release_if_idle();
        Ok(CompletedPrefix { completed, first_failed: self.progress.first_failed() })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.progress.wait(ticket, slice)?;
        self.shared.deferred.release_if_idle();
        Ok(())
    }

    fn wait_blocking(&self, ticket: u64) -> Result<()> {
        if self.context.quirks.polls || self.context.driver.is_serial() {
            return Err(Error::unsupported("blocking waits are not supported by this driver; poll instead"));
        }
        self.progress.wait_blocking(ticket, self.raw())?;
        self.shared.deferred.release_if_idle();
        Ok(())
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        if !Arc::ptr_eq(&self.context, &other.context) {
            return Err(Error::unsupported("waits between devices need a shared context"));
        }
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        let Some(event) = other.progress.event(ticket)? else { return Ok(()) };
        self.enqueue_barrier(&event)
    }

    fn hold(&self) -> Result<()> {
        let gate = self.context.create_user_event()?;
        self.enqueue_barrier(&gate)?;
        self.hold.begin(gate);
        Ok(())
    }

    fn resume(&self) -> Result<bool> {
        let lasted = self.hold.end(&self.context, self.raw())?;
        self.flush()?;
        Ok(lasted)
    }

    fn failure(&self) -> Option<Error> {
        self.progress.failure()
    }
}
