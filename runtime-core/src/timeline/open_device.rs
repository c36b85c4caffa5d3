//! Core's side of an opened device: what tensors, modules and queues share, and how it ends.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::abi::{self, Handle, Status};
use crate::plugin::convert;
use crate::plugin::instance::Instance;
use crate::plugin::negotiate::DispatchTable;
use crate::process;
use crate::timeline::deferred_free::{DeferredFree, Resource};
use crate::timeline::hazards::Use;
use crate::timeline::queue_table::{QueueStatus, QueueTable};
use crate::timeline::wait_thread::WaitThread;
use crate::timeline::{LAST_PAUSE, LAST_TRIES, Timeline};
use crate::{DeviceInfo, Error, ErrorKind, QueueOptions, Result};

/// How long the last drop of a device waits for work in flight before it leaks the device.
const DROP_DEADLINE: Duration = Duration::from_secs(5);

/// So many queues of blocking copies are kept while nobody copies.
const IDLE_TRANSFER_QUEUES: usize = 2;

/// An opened device, shared by everything that was made from it. What every launch reads lies together.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct OpenDevice {
    generation: u32,
    lost: OnceLock<Error>,
    /// Its backend counts wrongly: what was given to it may be in use for ever.
    distrusted: AtomicBool,
    pub(crate) deferred: DeferredFree,
    pub(crate) instance: Arc<Instance>,
    /// The queues of the `Runtime`, across its backends.
    pub(crate) queues: Arc<QueueTable>,
    pub(crate) info: DeviceInfo,
    /// The device string.
    pub(crate) name: String,
    pub(crate) handle: Handle,
    pub(crate) calls: DispatchTable,
    /// The one lock of a device that declares itself serial.
    pub(crate) serial: Option<Arc<Mutex<()>>>,
    pub(crate) waiter: WaitThread,
    /// Idle queues of blocking copies.
    transfer_queues: Mutex<Vec<Arc<Timeline>>>,
    timelines: Mutex<Vec<Arc<Timeline>>>,
    this: Weak<Self>,
}

// SAFETY: `handle` is a backend device; the contract of the table lets any thread use it.
unsafe impl Send for OpenDevice {}
// SAFETY: as above.
unsafe impl Sync for OpenDevice {}

impl OpenDevice {
    /// Wraps a device that a backend has just opened.
    pub(crate) fn new(
        instance: Arc<Instance>,
        queues: Arc<QueueTable>,
        info: DeviceInfo,
        handle: Handle,
    ) -> Arc<Self> {
        let serial = info.capabilities.has(abi::CAP_SERIAL).then(Arc::default);
        Arc::new_cyclic(|this| Self {
            calls: instance.calls,
            name: info.id.to_string(),
            instance,
            queues,
            handle,
            serial,
            deferred: DeferredFree::default(),
            waiter: WaitThread::default(),
            transfer_queues: Mutex::default(),
            timelines: Mutex::default(),
            generation: process::generation(),
            lost: OnceLock::new(),
            distrusted: AtomicBool::new(false),
            this: this.clone(),
            info,
        })
    }

    /// Refuses to go on in a forked child, and on a lost device.
    ///
    /// # Errors
    /// `Unavailable` after a fork; `DeviceLost`.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.generation == process::generation() && self.lost.get().is_none() {
            Ok(())
        } else {
            Err(self.unusable())
        }
    }

    #[cold]
    fn unusable(&self) -> Error {
        match self.lost.get() {
            Some(error) => error.clone(),
            None => Error::new(
                ErrorKind::Unavailable,
                "this process was forked after the device was opened; make a new `Runtime` in the child and open it there",
            )
            .on_device(&self.name),
        }
    }

    /// Remembers that the device is gone for good.
    pub(crate) fn mark_lost(&self, error: &Error) {
        if self.lost.set(error.clone()).is_ok() {
            tracing::error!(device = %self.name, %error, "device lost");
            for timeline in self.timelines() {
                timeline.fail_from(timeline.completed() + 1, error);
            }
        }
    }

    /// Declares the device lost, and leaks what it was given: its backend has said what cannot be.
    pub(crate) fn distrust(&self, error: &Error) {
        self.distrusted.store(true, Ordering::Relaxed);
        self.mark_lost(error);
    }

    /// Declares the device lost: it does not say any more whether it still uses borrowed memory.
    pub(crate) fn declare_lost(&self) {
        let error = Error::new(ErrorKind::DeviceLost, "it does not answer any more, with memory borrowed");
        self.mark_lost(&error.on_device(&self.name));
    }

    /// Calls a function of the backend's tables, one at a time on a serial device.
    pub(crate) fn call(
        &self,
        operation: &'static str,
        call: impl FnOnce(&DispatchTable, Handle) -> Status,
    ) -> Result<()> {
        self.check()?;
        let serial = self.serial.as_ref().map(|serial| serial.lock());
        let status = call(&self.calls, self.handle);
        drop(serial);
        if status.is_null() {
            return Ok(());
        }
        // SAFETY: a non-null status of the table is an owned error object, taken here once.
        let error = unsafe { convert::from_status(status) }
            .err()
            .unwrap_or_else(|| Error::new(ErrorKind::Internal, "empty error"));
        let error = error.in_operation(operation).on_device(&self.name);
        if error.kind() == ErrorKind::DeviceLost {
            self.mark_lost(&error);
        }
        Err(error)
    }

    /// Refuses to go on where a call has succeeded without the object that it makes.
    ///
    /// # Errors
    /// `AbiMismatch` for a null handle.
    pub(crate) fn check_made(&self, operation: &str, what: &str, handle: Handle) -> Result<()> {
        convert::check_handle(what, handle)
            .map_err(|error| error.in_operation(operation).on_device(&self.name))
    }

    /// Itself, for those who must not keep it open.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.this.clone()
    }

    /// All queues of the device, abandoned ones with work in flight included.
    pub(crate) fn timelines(&self) -> Vec<Arc<Timeline>> {
        self.timelines.lock().clone()
    }

    /// Makes a backend queue and its timeline.
    pub(crate) fn open_timeline(&self, options: &QueueOptions) -> Result<Arc<Timeline>> {
        self.reap();
        self.reap_timelines();
        let raw = abi::QueueOptions {
            struct_size: crate::end_of!(abi::QueueOptions, flags),
            priority: options.priority,
            flags: if options.timestamps { abi::QUEUE_TIMESTAMPS } else { 0 },
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the device is open and the structures live during the call.
        self.call("open_queue", |calls, device| unsafe {
            (calls.queue.open)(device, &raw const raw, &raw mut handle)
        })?;
        self.check_made("open_queue", "queue", handle)?;
        let timeline = Arc::new(Timeline::new(QueueTable::next_id(), handle, self, self.this.clone()));
        self.queues.insert(&timeline);
        self.timelines.lock().push(timeline.clone());
        Ok(timeline)
    }

    /// A queue for one blocking copy at a time.
    pub(crate) fn take_transfer_queue(&self) -> Result<Arc<Timeline>> {
        self.check()?;
        match self.transfer_queues.lock().pop() {
            Some(queue) => Ok(queue),
            None => self.open_timeline(&QueueOptions::default()),
        }
    }

    /// Keeps a queue for the next blocking copy. One that has failed does so for good, and is closed.
    pub(crate) fn give_back_transfer_queue(&self, queue: Arc<Timeline>) {
        let mut idle = self.transfer_queues.lock();
        if queue.failure().is_none() && idle.len() < IDLE_TRANSFER_QUEUES {
            return idle.push(queue);
        }
        drop((idle, queue));
        self.deferred.defer(self, Resource::Queue, Vec::new());
    }

    /// Frees what was dropped while in use and has ended since. Costs one load when there is nothing.
    #[inline]
    pub(crate) fn reap(&self) {
        if !self.deferred.is_empty() {
            self.deferred.reap(self);
        }
    }

    /// Closes queues that the user dropped and whose work has ended.
    pub(crate) fn reap_timelines(&self) {
        // What reached them through edges must be known before they are forgotten.
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
        let _serial = self.serial.as_ref().map(|serial| serial.lock());
        // SAFETY: nobody else knows the queue any more, and its work has ended.
        unsafe { (self.calls.queue.close)(queue) };
    }

    /// The queues and tickets behind `uses` that may still be in flight.
    pub(crate) fn pending(&self, uses: impl Iterator<Item = Use>) -> Vec<(Arc<Timeline>, u64)> {
        uses.filter_map(|used| match self.queues.find(used.queue) {
            QueueStatus::Live(timeline) if !ended(&timeline, used.ticket) => Some((timeline, used.ticket)),
            _ => None,
        })
        .collect()
    }

    /// Every queue of the device with work in flight: what a module may be used by.
    pub(crate) fn all_pending(&self) -> Vec<(Arc<Timeline>, u64)> {
        pending(self.timelines())
    }

    /// Every queue of the `Runtime` with work in flight: what a frozen buffer may be used by, since queues of other
    /// devices copy from it.
    pub(crate) fn any_in_flight(&self) -> Vec<(Arc<Timeline>, u64)> {
        pending(self.queues.timelines())
    }

    /// Whether drops must leak: the driver may be gone, belongs to the parent process, or does not say what it uses.
    pub(crate) fn must_leak(&self) -> bool {
        process::exiting()
            || self.generation != process::generation()
            || self.distrusted.load(Ordering::Relaxed)
    }

    /// Whether the device is gone for good.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    /// Leaves everything to the backend as it is.
    fn leak(&mut self) {
        self.deferred.leak();
        self.timelines.get_mut().iter().for_each(|timeline| timeline.close(true));
        std::mem::forget(self.instance.clone());
    }

    /// Waits, with a deadline, until all work has ended and all that was dropped is freed.
    fn finish(&self) -> bool {
        let deadline = Instant::now() + DROP_DEADLINE;
        for timeline in self.timelines() {
            let mut refusals = 0;
            while !self.is_lost() && !timeline.has_ended(timeline.last_submitted()) {
                let looked =
                    timeline.signal_and_flush(timeline.last_submitted()).and_then(|()| timeline.poll());
                // One refusal is no reason to leave everything behind.
                refusals += u32::from(looked.is_err());
                if !self.is_lost() && (refusals > LAST_TRIES || Instant::now() > deadline) {
                    return false;
                }
                std::thread::sleep(if looked.is_err() { LAST_PAUSE } else { Duration::from_micros(50) });
            }
        }
        loop {
            self.deferred.reap(self);
            if self.deferred.is_empty() || Instant::now() > deadline {
                return self.deferred.is_empty();
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// The last ticket of each queue whose work is in flight.
fn pending(timelines: Vec<Arc<Timeline>>) -> Vec<(Arc<Timeline>, u64)> {
    let last = timelines.into_iter().map(|timeline| (timeline.last_submitted(), timeline));
    last.filter(|(tail, timeline)| !ended(timeline, *tail)).map(|(tail, timeline)| (timeline, tail)).collect()
}

/// Whether `ticket` has ended, after one look at the device if need be.
fn ended(timeline: &Arc<Timeline>, ticket: u64) -> bool {
    if timeline.has_ended(ticket) {
        return true;
    }
    let Some(_open) = timeline.device.upgrade() else { return !timeline.maybe_running(ticket) };
    timeline.signal_and_flush(ticket).and_then(|()| timeline.poll()).is_ok() && timeline.has_ended(ticket)
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        if self.must_leak() {
            return self.leak();
        }
        if !self.finish() {
            tracing::error!(device = %self.name, "closed with work in flight that does not end; the device is leaked");
            return self.leak();
        }
        let timelines = std::mem::take(&mut *self.timelines.lock());
        for timeline in &timelines {
            // Whoever drops the device may hold the lock of a queue that is a source.
            let _ = timeline.resolve_edges(false);
        }
        for timeline in timelines {
            self.queues.remove(&timeline);
            self.close_queue(timeline.handle);
            timeline.close(false);
        }
        // SAFETY: everything made from the device is gone, and so is its last user.
        unsafe { (self.calls.device.close)(self.handle) };
    }
}
