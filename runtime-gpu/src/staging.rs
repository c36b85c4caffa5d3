//! Transfers of pageable memory: threads copy between it and a ring of pinned slots while the device copies between slots
//! and its own memory.
//!
//! The driver does the same with one thread and one slot, which leaves most of the bus unused. A transfer starts when its
//! stream has come to it, so that no thread ever waits for somebody's kernel; what follows it on its queue is submitted
//! when its last piece is on the stream.

#![allow(unsafe_code, reason = "touches memory that core keeps until the ticket ends, and calls the driver")]

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use runtime_core::{Error, ErrorKind, Options, Result};

use crate::context::HostBorrowGuard;
use crate::driver::Driver;
use crate::driver::abi::{Context, CuResult, DevicePtr, Event, NO_TIMING, PORTABLE_MAPPED};
use crate::progress::{StreamState, backoff};

/// Slots of a thread: one is filled while the other is on the bus.
const SLOTS: usize = 2;
/// How often a thread looks whether a stream has come to its transfer.
const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// How long the end of the device waits for the threads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// How many threads stage, and in what pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagingConfig {
    pub(crate) slot_bytes: usize,
    pub(crate) upload_threads: usize,
    pub(crate) download_threads: usize,
}

impl StagingConfig {
    /// What the device options say; else what was measured to be best on an H200.
    ///
    /// # Errors
    /// `InvalidArgument` for what is out of range.
    pub(crate) fn parse(options: &Options) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
        let figure = |key: &str, default: usize, range| {
            let given = options.integer_within(key, default as i64, range);
            given.map(|figure| usize::try_from(figure).unwrap_or(default))
        };
        Ok(Self {
            slot_bytes: figure("staging_slot_kib", 1024, 64..=1 << 16)? << 10,
            upload_threads: figure("upload_threads", cores, 1..=64)?,
            download_threads: figure("download_threads", cores, 1..=64)?,
        })
    }

    const fn threads(self) -> usize {
        if self.upload_threads > self.download_threads { self.upload_threads } else { self.download_threads }
    }

    /// Bytes of a piece: small transfers are cut so that every thread has two.
    fn piece_bytes(self, bytes: usize, threads: usize) -> usize {
        (bytes / (2 * threads)).next_multiple_of(64 << 10).clamp(64 << 10, self.slot_bytes)
    }
}

/// Which way a transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Upload,
    Download,
}

/// A transfer, cut into pieces that threads take one by one.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) direction: Direction,
    /// The program's memory.
    pub(crate) host: *mut u8,
    pub(crate) device: DevicePtr,
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct Job {
    transfer: Transfer,
    state: Arc<StreamState>,
    piece_bytes: usize,
    pieces: usize,
    threads: usize,
    next: AtomicUsize,
    failed: AtomicBool,
    failure: Mutex<Option<(&'static str, CuResult)>>,
    /// Threads at it; changed with the list locked.
    active: AtomicUsize,
    /// Its stream has come to it; changed with the list locked.
    started: AtomicBool,
}

// SAFETY: core keeps the program's memory until the ticket ends, and nobody else touches it meanwhile.
unsafe impl Send for Job {}
// SAFETY: pieces are disjoint, and each is taken by one thread.
unsafe impl Sync for Job {}

#[derive(Debug, Default)]
struct List {
    jobs: VecDeque<Arc<Job>>,
    /// A thread is looking when streams come to their transfers.
    watched: bool,
    threads: usize,
    stop: bool,
}

#[derive(Debug)]
struct Inner {
    driver: &'static Driver,
    context: Context,
    host_borrows: Arc<HostBorrowGuard>,
    config: StagingConfig,
    list: Mutex<List>,
    changed: Condvar,
}

/// The threads of a device.
#[derive(Debug)]
pub(crate) struct Staging(Arc<Inner>);

impl Staging {
    pub(crate) fn new(
        driver: &'static Driver,
        context: Context,
        host_borrows: Arc<HostBorrowGuard>,
        config: StagingConfig,
    ) -> Self {
        Self(Arc::new(Inner {
            driver,
            context,
            host_borrows,
            config,
            list: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Takes a transfer on behalf of a queue, as its `ticket`.
    ///
    /// # Errors
    /// `OutOfResources` if no thread can be started; the ticket is not taken.
    pub(crate) fn submit(&self, state: &Arc<StreamState>, ticket: u64, transfer: Transfer) -> Result<()> {
        let inner = &self.0;
        let threads = match transfer.direction {
            Direction::Upload => inner.config.upload_threads,
            Direction::Download => inner.config.download_threads,
        };
        let piece_bytes = inner.config.piece_bytes(transfer.bytes, threads);
        let pieces = transfer.bytes.div_ceil(piece_bytes);
        let mut list = inner.list.lock();
        self.start(&mut list, threads.min(pieces))?;
        // Before any thread can end it.
        state.begin_staging(ticket);
        list.jobs.push_back(Arc::new(Job {
            pieces,
            transfer,
            state: Arc::clone(state),
            piece_bytes,
            threads,
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
            active: AtomicUsize::new(0),
            started: AtomicBool::new(false),
        }));
        drop(list);
        inner.changed.notify_all();
        Ok(())
    }

    /// Starts threads until there are `wanted`.
    fn start(&self, list: &mut List, wanted: usize) -> Result<()> {
        while list.threads < wanted.min(self.0.config.threads()) {
            let inner = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("cuda-staging".to_owned());
            let spawned = thread.spawn(move || inner.work());
            match spawned {
                Ok(_) => list.threads += 1,
                Err(_) if list.threads > 0 => return Ok(()),
                Err(error) => {
                    let message = format!("cannot start a thread for transfers: {error}; end other threads");
                    return Err(Error::new(ErrorKind::OutOfResources, message));
                }
            }
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let begin = Instant::now();
        let mut list = self.0.list.lock();
        list.stop = true;
        self.0.changed.notify_all();
        // A thread of our own may hold the last reference to the device: it cannot wait for itself.
        let own = std::thread::current().name() == Some("cuda-staging");
        while !own && list.threads > 0 && begin.elapsed() < SHUTDOWN_TIMEOUT {
            self.0.changed.wait_for(&mut list, Duration::from_millis(10));
        }
    }
}

impl Inner {
    /// What a thread does.
    fn work(&self) {
        // SAFETY: the context is retained as long as there are threads, and this thread is ours.
        let _ = unsafe { (self.driver.cuCtxSetCurrent)(self.context) };
        let mut ring = Ring::default();
        let mut list = self.list.lock();
        while let Some(job) = self.next(&mut list) {
            MutexGuard::unlocked(&mut list, || {
                let done = ring.prepare(self).and_then(|()| match job.transfer.direction {
                    Direction::Upload => ring.upload(self, &job),
                    Direction::Download => ring.download(self, &job),
                });
                if let Err((function, code)) = done {
                    job.failure.lock().get_or_insert((function, code));
                    job.failed.store(true, Ordering::Release);
                }
            });
            let last = job.active.fetch_sub(1, Ordering::AcqRel) == 1;
            if last && !job.has_work() {
                list.jobs.retain(|other| !Arc::ptr_eq(other, &job));
                MutexGuard::unlocked(&mut list, || job.end());
            }
            // The last reference to a device ends with it, which wants the list.
            MutexGuard::unlocked(&mut list, || drop(job));
        }
        MutexGuard::unlocked(&mut list, || ring.close(self));
        list.threads -= 1;
        self.changed.notify_all();
    }

    /// A job to join; `None` when the device is closed.
    fn next(&self, list: &mut MutexGuard<'_, List>) -> Option<Arc<Job>> {
        loop {
            let found = list.jobs.iter().find(|job| job.is_ready() && job.has_room()).cloned();
            if let Some(job) = found {
                job.active.fetch_add(1, Ordering::AcqRel);
                return Some(job);
            }
            if list.stop {
                return None;
            }
            if list.watched || list.jobs.iter().all(|job| job.started.load(Ordering::Acquire)) {
                self.changed.wait(list);
            } else {
                list.watched = true;
                self.changed.wait_for(list, POLL_INTERVAL);
                list.watched = false;
                self.changed.notify_one();
            }
        }
    }
}

impl Job {
    fn has_work(&self) -> bool {
        !self.failed.load(Ordering::Acquire) && self.next.load(Ordering::Acquire) < self.pieces
    }

    fn has_room(&self) -> bool {
        self.has_work() && self.active.load(Ordering::Acquire) < self.threads
    }

    /// Whether the stream has come to it: then its pieces wait for nobody.
    fn is_ready(&self) -> bool {
        if self.started.load(Ordering::Acquire) {
            return true;
        }
        // An error shows again, and is reported, when the first piece is copied.
        let ready = self.state.primary.is_stream_idle(self.state.stream).unwrap_or(true);
        if ready {
            self.started.store(true, Ordering::Release);
        }
        ready
    }

    /// The next piece: its offset and its length.
    fn take(&self) -> Option<(usize, usize)> {
        if self.failed.load(Ordering::Acquire) {
            return None;
        }
        let piece = self.next.fetch_add(1, Ordering::AcqRel);
        let offset = piece.checked_mul(self.piece_bytes).filter(|&offset| offset < self.transfer.bytes)?;
        Some((offset, self.piece_bytes.min(self.transfer.bytes - offset)))
    }

    fn end(&self) {
        let failure = *self.failure.lock();
        match (failure, self.transfer.direction) {
            (Some((function, code)), _) => self.state.fail_staging(function, code),
            (None, Direction::Upload) => self.state.finish_upload(),
            (None, Direction::Download) => self.state.finish_download(),
        }
    }
}

/// A pinned slot, and the event that passes when the device is through with it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    memory: *mut u8,
    event: Event,
    used: bool,
}

/// What a driver call failed with.
type Done<T = ()> = std::result::Result<T, (&'static str, CuResult)>;

fn check(function: &'static str, code: CuResult) -> Done {
    if code.is_success() { Ok(()) } else { Err((function, code)) }
}

/// The slots of one thread.
#[derive(Debug, Default)]
struct Ring {
    slots: Vec<Slot>,
    memory: Option<*mut c_void>,
}

impl Ring {
    /// Allocates the slots when they are first needed.
    fn prepare(&mut self, inner: &Inner) -> Done {
        if self.slots.len() == SLOTS {
            return Ok(());
        }
        let bytes = inner.config.slot_bytes;
        let memory = match self.memory {
            Some(memory) => memory,
            None => {
                let mut memory = std::ptr::null_mut();
                // SAFETY: the out-parameter is writable, and the context is current on this thread.
                let code =
                    unsafe { (inner.driver.cuMemHostAlloc)(&raw mut memory, SLOTS * bytes, PORTABLE_MAPPED) };
                check("cuMemHostAlloc", code)?;
                *self.memory.insert(memory)
            }
        };
        while self.slots.len() < SLOTS {
            let mut event = Event::NULL;
            // SAFETY: the out-parameter is writable, and the context is current on this thread.
            let code = unsafe { (inner.driver.cuEventCreate)(&raw mut event, NO_TIMING) };
            check("cuEventCreate", code)?;
            let memory = memory.cast::<u8>().wrapping_add(self.slots.len() * bytes);
            self.slots.push(Slot { memory, event, used: false });
        }
        Ok(())
    }

    /// Copies pieces into slots, and submits their way to the device.
    fn upload(&mut self, inner: &Inner, job: &Job) -> Done {
        let mut turn = 0;
        while let Some((offset, bytes)) = job.take() {
            let slot = &mut self.slots[turn % SLOTS];
            turn += 1;
            if slot.used {
                wait_for_event(inner, slot.event)?;
            }
            let from = job.transfer.host.wrapping_add(offset);
            let to = slot.memory;
            let lent = inner.host_borrows.access(|| {
                // SAFETY: the piece lies within the program's memory, and the slot, which is free, holds a piece.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            });
            if !lent {
                return Err(("cuMemcpyAsync", CuResult(709)));
            }
            let source = to.expose_provenance() as DevicePtr;
            let destination = job.transfer.device + offset as DevicePtr;
            copy(inner, job, (destination, source), bytes, slot)?;
        }
        Ok(())
    }

    /// Submits the way of pieces into slots, and copies each to the program when it has come.
    fn download(&mut self, inner: &Inner, job: &Job) -> Done {
        let mut coming: VecDeque<(usize, usize, usize)> = VecDeque::with_capacity(SLOTS);
        let mut turn = 0;
        loop {
            while coming.len() < SLOTS
                && let Some((offset, bytes)) = job.take()
            {
                let index = turn % SLOTS;
                turn += 1;
                let slot = &mut self.slots[index];
                if slot.used {
                    wait_for_event(inner, slot.event)?;
                }
                let destination = slot.memory.expose_provenance() as DevicePtr;
                let source = job.transfer.device + offset as DevicePtr;
                copy(inner, job, (destination, source), bytes, slot)?;
                coming.push_back((index, offset, bytes));
            }
            let Some((index, offset, bytes)) = coming.pop_front() else { return Ok(()) };
            let slot = &mut self.slots[index];
            wait_for_event(inner, slot.event)?;
            slot.used = false;
            let (from, to) = (slot.memory, job.transfer.host.wrapping_add(offset));
            let lent = inner.host_borrows.access(|| {
                // SAFETY: the piece lies within the program's memory, and has arrived in the slot.
                unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
            });
            if !lent {
                return Err(("cuMemcpyAsync", CuResult(709)));
            }
        }
    }

    /// Ends the slots.
    fn close(&mut self, inner: &Inner) {
        for slot in self.slots.drain(..) {
            // SAFETY: ours, and used by nobody any more.
            let _ = unsafe { (inner.driver.cuEventDestroy_v2)(slot.event) };
        }
        if let Some(memory) = self.memory.take() {
            // SAFETY: as above; the driver waits for what is on the bus.
            let _ = unsafe { (inner.driver.cuMemFreeHost)(memory) };
        }
    }
}

/// Submits a copy between a slot and the device.
fn copy(inner: &Inner, job: &Job, (to, from): (DevicePtr, DevicePtr), bytes: usize, slot: &mut Slot) -> Done {
    let stream = job.state.stream;
    // SAFETY: both ranges are of live memory, which is kept until the slot's event has passed.
    check("cuMemcpyAsync", unsafe { (inner.driver.cuMemcpyAsync)(to, from, bytes, stream) })?;
    slot.used = true;
    // SAFETY: event and stream are alive and of one context.
    check("cuEventRecord", unsafe { (inner.driver.cuEventRecord)(slot.event, stream) })
}

/// Waits for an event.
fn wait_for_event(inner: &Inner, event: Event) -> Done {
    let begin = Instant::now();
    loop {
        // SAFETY: the event is alive.
        match unsafe { (inner.driver.cuEventQuery)(event) } {
            CuResult::SUCCESS => return Ok(()),
            CuResult::NOT_READY => backoff(begin.elapsed()),
            code => return Err(("cuEventQuery", code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: StagingConfig =
        StagingConfig { slot_bytes: 1 << 20, upload_threads: 4, download_threads: 8 };

    #[test]
    fn every_thread_has_two_pieces_of_a_small_transfer() {
        assert_eq!(CONFIG.piece_bytes(1 << 30, 4), 1 << 20);
        assert_eq!(CONFIG.piece_bytes(1 << 20, 4), 128 << 10);
        assert_eq!(CONFIG.piece_bytes(100_000, 8), 64 << 10);
    }
}
