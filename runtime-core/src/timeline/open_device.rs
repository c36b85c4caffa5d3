//! Core's side of an opened device: its state, its queues, what was dropped while in use, and how it is closed.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::any::Any;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::abi::{self, Handle, Status};
use crate::model::throttle_reasons::ThrottleReasons;
use crate::plugin::instance::Instance;
use crate::plugin::negotiate::DispatchTable;
use crate::timeline::deferred_free::{DeferredFree, Resource};
use crate::timeline::device_state::{self, DeviceState};
use crate::timeline::hazards::Use;
use crate::timeline::host_pool::HostPool;
use crate::timeline::queue_table::{QueueStatus, QueueTable};
use crate::timeline::virtual_queue::Unsubmitted;
use crate::timeline::wait_thread::WaitThread;
use crate::timeline::{DeviceServices, LAST_PAUSE, LAST_TRIES, Timeline};
use crate::{DeviceInfo, Error, ErrorKind, QueueOptions, Result};

/// How long closing a device waits for work in flight before it leaks the device.
const DROP_DEADLINE: Duration = Duration::from_secs(5);

/// The number of idle transfer queues that are kept.
const IDLE_TRANSFER_QUEUES: usize = 2;

/// The number of idle timelines of the program that are kept.
const IDLE_PROGRAM_TIMELINES: usize = 8;

/// An opened device, shared by everything that was made from it. Its last reference closes it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct OpenDevice {
    deferred: DeferredFree,
    state: DeviceState,
    /// All queues of the `Runtime`, across backends.
    pub(crate) queues: Arc<QueueTable>,
    wait_thread: WaitThread,
    host_pool: Arc<HostPool>,
    /// Idle queues for blocking copies.
    transfer_queues: Mutex<Vec<Arc<Timeline>>>,
    /// Idle timelines for transfers by the program.
    program_timelines: Mutex<Vec<Arc<Timeline>>>,
    timelines: Mutex<Vec<Arc<Timeline>>>,
    /// What may be shared while somebody holds it, by what identifies it: modules, and the default queue.
    loaded: Mutex<HashMap<[u8; 32], Weak<dyn Any + Send + Sync>>>,
    /// When the last evaluation ended.
    pub(crate) last_timed: Mutex<Option<Instant>>,
    this: Weak<Self>,
}

impl Deref for OpenDevice {
    type Target = DeviceState;

    #[inline]
    fn deref(&self) -> &DeviceState {
        &self.state
    }
}

impl DeviceServices for OpenDevice {
    fn state(&self) -> &DeviceState {
        &self.state
    }

    fn mark_lost(&self, error: &Error) {
        if self.state.set_lost(error) {
            tracing::error!(device = %self.name, %error, "device lost");
            for timeline in self.timelines() {
                timeline.fail_from(timeline.completed() + 1, error);
            }
        }
    }

    fn register_waker(&self, at: (&Arc<Timeline>, u64), registration: &mut u64, waker: &Waker) -> Result<()> {
        self.wait_thread.register(self.this.clone(), at, registration, waker)
    }

    fn forget_waker(&self, registration: u64) {
        if !self.must_leak() {
            self.wait_thread.forget(registration);
        }
    }

    fn reap(&self) -> bool {
        Self::reap(self);
        self.deferred.has_owners()
    }

    fn host_pool(&self) -> &Arc<HostPool> {
        &self.host_pool
    }
}

impl OpenDevice {
    /// Wraps a device that a backend has just opened.
    pub(crate) fn new(
        instance: Arc<Instance>,
        queues: Arc<QueueTable>,
        info: DeviceInfo,
        handle: Handle,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            deferred: DeferredFree::default(),
            state: DeviceState::new(instance, info, handle),
            queues,
            wait_thread: WaitThread::default(),
            host_pool: Arc::default(),
            transfer_queues: Mutex::default(),
            program_timelines: Mutex::default(),
            timelines: Mutex::default(),
            loaded: Mutex::default(),
            last_timed: Mutex::default(),
            this: this.clone(),
        })
    }

    /// Calls a function of the backend's tables; a serial device runs one call at a time.
    pub(crate) fn call(
        &self,
        operation: &'static str,
        call: impl FnOnce(&DispatchTable, Handle) -> Status,
    ) -> Result<()> {
        self.check()?;
        let serial = self.lock_serial();
        let status = call(&self.calls, self.handle);
        drop(serial);
        if status.is_null() {
            return Ok(());
        }
        let error = device_state::call_error(&self.name, operation, status);
        if error.kind() == ErrorKind::DeviceLost {
            self.mark_lost(&error);
        }
        Err(error)
    }

    /// Why the device runs slower than it could, now or at any time since the last call.
    pub(crate) fn throttle_reasons(&self) -> Result<ThrottleReasons> {
        let mut reasons = 0;
        // SAFETY: the device is open and the output lives during the call.
        self.call("throttle_reasons", |calls, device| unsafe {
            (calls.device.throttle_reasons)(device, &raw mut reasons)
        })?;
        Ok(ThrottleReasons(reasons))
    }

    /// What was loaded under `key`, if it is still in use.
    pub(crate) fn loaded<T: Any + Send + Sync>(&self, key: &[u8; 32]) -> Option<Arc<T>> {
        let found = self.loaded.lock().get(key)?.upgrade()?;
        found.downcast().ok()
    }

    /// Shares what was loaded under `key`. Returns what another thread has shared meanwhile, if it has and that is `usable`.
    pub(crate) fn share_loaded<T: Any + Send + Sync>(
        &self,
        key: [u8; 32],
        new: Arc<T>,
        usable: impl FnOnce(&Arc<T>) -> bool,
    ) -> Arc<T> {
        let mut loaded = self.loaded.lock();
        let other = loaded.get(&key).and_then(Weak::upgrade).and_then(|other| other.downcast().ok());
        if let Some(other) = other.filter(usable) {
            // Unlock before `new` is dropped.
            drop(loaded);
            return other;
        }
        if loaded.len() == loaded.capacity() {
            loaded.retain(|_, shared| shared.strong_count() > 0);
        }
        let shared: Arc<dyn Any + Send + Sync> = new.clone();
        loaded.insert(key, Arc::downgrade(&shared));
        drop(loaded);
        new
    }

    /// A reference that does not keep the device open.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.this.clone()
    }

    /// All queues of the device, including dropped ones with work in flight.
    pub(crate) fn timelines(&self) -> Vec<Arc<Timeline>> {
        self.timelines.lock().clone()
    }

    /// Opens a backend queue, with its timeline.
    pub(crate) fn open_timeline(&self, options: &QueueOptions) -> Result<Arc<Timeline>> {
        let raw = abi::QueueOptions {
            struct_size: crate::end_of!(abi::QueueOptions, flags),
            priority: options.priority,
            flags: if options.timestamps { abi::QUEUE_TIMESTAMPS } else { 0 },
        };
        self.open_timeline_by("open_queue", |calls, device, handle| {
            // SAFETY: the device is open and the structures live during the call.
            unsafe { (calls.queue.open)(device, &raw const raw, handle) }
        })
    }

    /// Opens a timeline over the backend queue that `open` makes.
    pub(crate) fn open_timeline_by(
        &self,
        operation: &'static str,
        open: impl FnOnce(&DispatchTable, Handle, *mut Handle) -> Status,
    ) -> Result<Arc<Timeline>> {
        self.reap();
        self.reap_timelines();
        let mut handle = std::ptr::null_mut();
        self.call(operation, |calls, device| open(calls, device, &raw mut handle))?;
        self.check_made(operation, "queue", handle)?;
        let timeline = Arc::new(Timeline::new(QueueTable::next_id(), handle, self.this.clone(), self));
        self.queues.insert(&timeline);
        self.timelines.lock().push(timeline.clone());
        Ok(timeline)
    }

    /// Takes a queue for one blocking copy.
    pub(crate) fn take_transfer_queue(&self) -> Result<Arc<Timeline>> {
        self.check()?;
        match self.transfer_queues.lock().pop() {
            Some(queue) => Ok(queue),
            None => self.open_timeline(&QueueOptions::default()),
        }
    }

    /// Returns a queue for the next blocking copy. A failed queue stays failed, so it is closed.
    pub(crate) fn give_back_transfer_queue(&self, queue: Arc<Timeline>) {
        let mut idle = self.transfer_queues.lock();
        if queue.failure().is_none() && idle.len() < IDLE_TRANSFER_QUEUES {
            return idle.push(queue);
        }
        drop((idle, queue));
        self.defer(Resource::Queue, Vec::new());
    }

    /// Takes a timeline for one transfer by the program. No other transfer uses it meanwhile.
    pub(crate) fn take_program_timeline(&self) -> Arc<Timeline> {
        if let Some(timeline) = self.program_timelines.lock().pop() {
            return timeline;
        }
        let (id, none) = (QueueTable::next_id(), std::ptr::null_mut());
        let timeline = Arc::new(Timeline::new(id, none, self.this.clone(), self));
        self.queues.insert(&timeline);
        timeline
    }

    /// Makes the timeline of a virtual queue; [`QueueTable::remove`] ends it.
    pub(crate) fn open_virtual_timeline(
        &self,
        real: &Arc<Timeline>,
        list: Arc<dyn Unsubmitted>,
    ) -> Arc<Timeline> {
        let id = QueueTable::next_id();
        let timeline = Arc::new(Timeline::new_virtual(id, real, list, self.this.clone(), self));
        self.queues.insert(&timeline);
        timeline
    }

    /// Returns a timeline whose tickets have ended.
    pub(crate) fn give_back_program_timeline(&self, timeline: Arc<Timeline>) {
        let mut idle = self.program_timelines.lock();
        if idle.len() < IDLE_PROGRAM_TIMELINES {
            return idle.push(timeline);
        }
        drop(idle);
        self.queues.remove(&timeline);
    }

    /// Frees `resource` now if nothing uses it, otherwise once `until` has ended. Never waits.
    pub(crate) fn defer(&self, resource: Resource, until: Vec<(Arc<Timeline>, u64)>) {
        let is_owned = resource.has_owner();
        if !self.deferred.defer(&self.state, resource, until) && is_owned {
            self.wait_thread.reap_later(self.this.clone());
        }
    }

    /// Frees dropped resources whose work has ended. Costs one load when there are none.
    #[inline]
    pub(crate) fn reap(&self) {
        if !self.deferred.is_empty() {
            self.deferred.reap(&self.state, || self.reap_timelines());
        }
    }

    /// Closes dropped queues whose work has ended.
    pub(crate) fn reap_timelines(&self) {
        // Failures that reach them through edges must be recorded before they are closed.
        for timeline in self.timelines() {
            if timeline.has_edges() {
                let _ = timeline.resolve_edges(false);
            }
        }
        let mut timelines = self.timelines.lock();
        timelines.retain(|timeline| {
            let finished = timeline.is_finished() && self.queues.remove_unused(timeline, 1);
            if finished {
                self.close_queue(timeline.handle);
            }
            !finished
        });
    }

    fn close_queue(&self, queue: Handle) {
        let _serial = self.lock_serial();
        // SAFETY: there is no other reference to the queue, and its work has ended.
        unsafe { (self.calls.queue.close)(queue) };
    }

    /// The accesses among `uses` that may still be in flight.
    pub(crate) fn pending(&self, uses: impl Iterator<Item = Use>) -> Vec<(Arc<Timeline>, u64)> {
        uses.filter_map(|used| match self.queues.find(used.queue) {
            QueueStatus::Live(timeline) if !ended(&timeline, used.ticket) => Some((timeline, used.ticket)),
            _ => None,
        })
        .collect()
    }

    /// Every queue of this device with work in flight. Any of them may use a given module.
    pub(crate) fn all_pending(&self) -> Vec<(Arc<Timeline>, u64)> {
        pending(self.timelines())
    }

    /// Every queue of the `Runtime` with work in flight. Any of them may read a given frozen buffer: queues of other devices copy
    /// from it.
    pub(crate) fn any_in_flight(&self) -> Vec<(Arc<Timeline>, u64)> {
        pending(self.queues.timelines())
    }

    /// Leaks the device and everything on it.
    fn leak(&mut self) {
        self.deferred.leak();
        self.timelines.get_mut().iter().for_each(|timeline| timeline.close(true));
        std::mem::forget(self.instance.clone());
    }

    /// Waits, with a deadline, until all work has ended and all dropped resources are freed; returns whether they are.
    fn drain(&self) -> bool {
        let deadline = Instant::now() + DROP_DEADLINE;
        for timeline in self.timelines() {
            let mut refusals = 0;
            while !self.is_lost() && !timeline.has_ended(timeline.last_submitted()) {
                let polled =
                    timeline.signal_and_flush(timeline.last_submitted()).and_then(|()| timeline.poll_queue());
                // A single refusal does not justify a leak.
                refusals += u32::from(polled.is_err());
                if !self.is_lost() && (refusals > LAST_TRIES || Instant::now() > deadline) {
                    return false;
                }
                std::thread::sleep(if polled.is_err() { LAST_PAUSE } else { Duration::from_micros(50) });
            }
        }
        loop {
            self.reap();
            if self.deferred.is_empty() || Instant::now() > deadline {
                return self.deferred.is_empty();
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// The last ticket of each queue with work in flight.
fn pending(mut timelines: Vec<Arc<Timeline>>) -> Vec<(Arc<Timeline>, u64)> {
    // What a virtual queue lists keeps what it uses alive; what it has handed over is in flight on its real queue.
    timelines.retain(|timeline| !timeline.is_virtual());
    let last = timelines.into_iter().map(|timeline| (timeline.last_submitted(), timeline));
    last.filter(|(tail, timeline)| !ended(timeline, *tail)).map(|(tail, timeline)| (timeline, tail)).collect()
}

/// Whether `ticket` has ended; polls once if that is not known.
fn ended(timeline: &Arc<Timeline>, ticket: u64) -> bool {
    if timeline.has_ended(ticket) {
        return true;
    }
    let Some(_open) = timeline.device.upgrade() else { return !timeline.maybe_running(ticket) };
    timeline.signal_and_flush(ticket).and_then(|()| timeline.poll_queue()).is_ok()
        && timeline.has_ended(ticket)
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        if self.must_leak() {
            return self.leak();
        }
        if !self.drain() {
            tracing::error!(device = %self.name, "work in flight did not end in time; the device is leaked");
            return self.leak();
        }
        let timelines = std::mem::take(&mut *self.timelines.lock());
        for timeline in &timelines {
            // The thread that drops the device may hold the submission lock of a source: do not flush it.
            let _ = timeline.resolve_edges(false);
        }
        for timeline in timelines {
            self.queues.remove(&timeline);
            self.close_queue(timeline.handle);
            timeline.close(false);
        }
        for timeline in self.program_timelines.get_mut().drain(..) {
            self.queues.remove(&timeline);
            timeline.close(false);
        }
        // SAFETY: everything made from the device is closed, and this is its last reference.
        unsafe { (self.calls.device.close)(self.handle) };
    }
}
