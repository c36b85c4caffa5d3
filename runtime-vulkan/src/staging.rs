//! Large transfers: threads copy pieces of the program's memory, straight into the device's memory where the program
//! reaches it, else by way of slots in pinned memory, while the device copies other slots.

#![allow(unsafe_code, reason = "threads share memory of the program that core keeps until the ticket ends")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use runtime_core::backend::{HostBytes, HostBytesMut};
use runtime_core::{Error, ErrorKind, OptionSpec, Options, Result};

use crate::driver::{Logical, Memory, Semaphore};
use crate::progress::Shared;
use crate::slots::{Slots, gone};

/// How long one thread waits at a time for the work before a transfer.
const SLICE: Duration = Duration::from_millis(1);
/// How long closing a device waits for its threads.
const FAREWELL: Duration = Duration::from_secs(10);
const LEAST_PIECE_BYTES: usize = 64 << 10;
/// Least piece without a slot: so much at once is copied past the caches.
const DIRECT_PIECE_BYTES: usize = 32 << 20;

/// How transfers are staged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    slot_bytes: usize,
    threads: usize,
}

/// The options of a device.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            "staging_slot_kib",
            1024_i64,
            "Size of a slot for large transfers, in KiB, 64 to 65536; the first opening of a device decides.",
        ),
        OptionSpec::device(
            "staging_threads",
            8_i64,
            "Threads that copy large transfers, 1 to 64, but at most one per processor; the first opening of a device decides.",
        ),
    ]
}

impl Tuning {
    /// What the options say.
    ///
    /// # Errors
    /// `InvalidArgument` for what is out of range.
    pub(crate) fn of(options: &Options) -> Result<Self> {
        let figure = |key: &str, default: i64, range| {
            options.integer_within(key, default, range).map(|figure| usize::try_from(figure).unwrap_or(1))
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            slot_bytes: figure("staging_slot_kib", 1024, 64..=64 << 10)? << 10,
            threads: figure("staging_threads", 8, 1..=64)?.min(processors),
        })
    }

    /// Every thread has two pieces of a transfer, if those do not become too small; or, of one without slots, a large one.
    fn piece_bytes(&self, bytes: usize, direct: bool) -> usize {
        if direct {
            // Half of the threads are as fast as the memory, and others have work too.
            let threads = self.threads.div_ceil(2);
            return bytes.div_ceil(threads).next_multiple_of(LEAST_PIECE_BYTES).max(DIRECT_PIECE_BYTES);
        }
        let even = bytes.div_ceil(2 * self.threads).next_multiple_of(LEAST_PIECE_BYTES);
        even.clamp(LEAST_PIECE_BYTES, self.slot_bytes)
    }
}

/// The program's side of a transfer.
#[derive(Debug)]
pub(crate) enum Host {
    /// It is written to the device.
    Source(HostBytes),
    /// It is read from the device.
    Destination(HostBytesMut),
}

// SAFETY: threads copy pieces of it that do not overlap, and nobody else touches it until the ticket ends.
unsafe impl Sync for Host {}

impl Host {
    fn len(&self) -> usize {
        match self {
            Self::Source(bytes) => bytes.len(),
            Self::Destination(bytes) => bytes.len(),
        }
    }
}

/// Whether the program reaches the device's memory as fast as its own.
fn is_direct(memory: &Memory) -> bool {
    memory.host().is_some() && memory.is_cached()
}

/// A transfer to stage.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) host: Host,
    pub(crate) memory: Arc<Memory>,
    pub(crate) offset: u64,
    pub(crate) ticket: u64,
    /// What must have come before: the queue's own work, and what it waits for.
    pub(crate) before: Vec<(Arc<Semaphore>, u64)>,
}

/// The threads that stage transfers of a device.
#[derive(Debug)]
pub(crate) struct Staging(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    logical: Arc<Logical>,
    tuning: Tuning,
    list: Mutex<List>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    jobs: Vec<Arc<Job>>,
    threads: usize,
    /// A thread waits for the work before a transfer.
    watched: bool,
    stop: bool,
}

/// A transfer that threads have.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) transfer: Transfer,
    shared: Arc<Shared>,
    /// The program reaches the device's memory.
    direct: bool,
    piece_bytes: usize,
    next: AtomicUsize,
    active: AtomicUsize,
    started: AtomicBool,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Staging {
    pub(crate) fn new(logical: &Arc<Logical>, tuning: Tuning) -> Self {
        Self(Arc::new(Inner {
            logical: Arc::clone(logical),
            tuning,
            list: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Sees to it that there are threads for a transfer.
    ///
    /// # Errors
    /// `OutOfResources` where none can be started.
    pub(crate) fn prepare(&self, host: &Host, memory: &Memory) -> Result<()> {
        let pieces = host.len().div_ceil(self.0.tuning.piece_bytes(host.len(), is_direct(memory)));
        self.start(&mut self.0.list.lock(), pieces)
    }

    /// Whether one thread makes a transfer of memory that the program reaches.
    pub(crate) fn is_one_piece(&self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| bytes <= self.0.tuning.piece_bytes(bytes, true))
    }

    /// Takes a transfer over; `shared` says when it has ended. This thread `joins` those that make it, where nothing
    /// comes before it.
    pub(crate) fn submit(&self, shared: &Arc<Shared>, transfer: Transfer, joins: bool) {
        let inner = &self.0;
        let direct = is_direct(&transfer.memory);
        let piece_bytes = inner.tuning.piece_bytes(transfer.host.len(), direct);
        shared.begin_staged();
        let job = Arc::new(Job {
            transfer,
            shared: Arc::clone(shared),
            direct,
            piece_bytes,
            next: AtomicUsize::new(0),
            active: AtomicUsize::new(usize::from(joins)),
            started: AtomicBool::new(joins),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
        });
        inner.list.lock().jobs.push(Arc::clone(&job));
        inner.changed.notify_all();
        if joins {
            inner.take_part(&mut inner.list.lock(), &job, &mut None);
        }
    }

    /// Starts threads until there are `wanted`.
    fn start(&self, list: &mut List, wanted: usize) -> Result<()> {
        while list.threads < wanted.min(self.0.tuning.threads) {
            let inner = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("vulkan-staging".to_owned());
            match thread.spawn(move || inner.work()) {
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
        let own = std::thread::current().name() == Some("vulkan-staging");
        while !own && list.threads > 0 && begin.elapsed() < FAREWELL {
            self.0.changed.wait_for(&mut list, Duration::from_millis(10));
        }
    }
}

impl Inner {
    /// What a thread does.
    fn work(&self) {
        let mut slots = None;
        let mut list = self.list.lock();
        while let Some(job) = self.next(&mut list) {
            self.take_part(&mut list, &job, &mut slots);
            // The last reference to a device ends with it, which wants the list.
            MutexGuard::unlocked(&mut list, || drop(job));
        }
        MutexGuard::unlocked(&mut list, || drop(slots));
        list.threads -= 1;
        self.changed.notify_all();
    }

    /// Makes pieces of a transfer until there are no more; the last thread ends it.
    fn take_part(&self, list: &mut MutexGuard<'_, List>, job: &Arc<Job>, slots: &mut Option<Slots>) {
        MutexGuard::unlocked(list, || {
            if let Err(error) = self.copy(job, slots) {
                job.fail(error);
            }
        });
        let last = job.active.fetch_sub(1, Ordering::AcqRel) == 1;
        if last && !job.has_work() {
            list.jobs.retain(|other| !Arc::ptr_eq(other, job));
            MutexGuard::unlocked(list, || job.end());
        }
    }

    /// A job to join; `None` when the device is closed.
    fn next(&self, list: &mut MutexGuard<'_, List>) -> Option<Arc<Job>> {
        loop {
            let has_room =
                |job: &&Arc<Job>| job.has_work() && (job.started.load(Ordering::Acquire) || job.is_ready());
            if let Some(job) = list.jobs.iter().find(has_room).cloned() {
                job.started.store(true, Ordering::Release);
                job.active.fetch_add(1, Ordering::AcqRel);
                return Some(job);
            }
            if list.stop {
                return None;
            }
            let waiting = list.jobs.iter().find(|job| !job.started.load(Ordering::Acquire)).cloned();
            match waiting.filter(|_| !list.watched) {
                Some(job) => {
                    list.watched = true;
                    MutexGuard::unlocked(list, || {
                        job.wait();
                        drop(job);
                    });
                    list.watched = false;
                    self.changed.notify_one();
                }
                None => self.changed.wait(list),
            }
        }
    }

    fn copy(&self, job: &Job, slots: &mut Option<Slots>) -> Result<()> {
        if job.direct {
            return job.copy_direct();
        }
        let slots = match slots {
            Some(slots) => slots,
            none => none.insert(Slots::new(&self.logical, self.tuning.slot_bytes)?),
        };
        match &job.transfer.host {
            Host::Source(source) => slots.fill(job, source),
            Host::Destination(destination) => slots.empty(job, destination),
        }
    }
}

impl Job {
    fn has_work(&self) -> bool {
        let next = self.next.load(Ordering::Acquire);
        !self.failed.load(Ordering::Acquire)
            && next.saturating_mul(self.piece_bytes) < self.transfer.host.len()
    }

    /// Whether all that comes before has ended. An error shows again, and is reported, when the first piece is copied.
    fn is_ready(&self) -> bool {
        self.transfer
            .before
            .iter()
            .all(|(semaphore, value)| semaphore.value().map_or(true, |stands| stands >= *value))
    }

    /// Waits a moment for what comes before.
    fn wait(&self) {
        let open = self
            .transfer
            .before
            .iter()
            .find(|(semaphore, value)| semaphore.value().is_ok_and(|at| at < *value));
        if let Some((semaphore, value)) = open {
            let _ = semaphore.wait(*value, SLICE);
        }
    }

    /// The next piece: its offset and its length.
    pub(crate) fn take(&self) -> Option<(usize, usize)> {
        if self.failed.load(Ordering::Acquire) {
            return None;
        }
        let piece = self.next.fetch_add(1, Ordering::AcqRel);
        let bytes = self.transfer.host.len();
        let offset = piece.checked_mul(self.piece_bytes).filter(|&offset| offset < bytes)?;
        Some((offset, self.piece_bytes.min(bytes - offset)))
    }

    fn copy_direct(&self) -> Result<()> {
        let logical = &self.shared.context.logical;
        while let Some((offset, bytes)) = self.take() {
            // Nothing else here asks the driver, so that a loss would not be seen.
            self.shared.semaphore.value()?;
            let at = self.transfer.offset + offset as u64;
            let memory = &self.transfer.memory;
            let allowed = logical.lending.copy(|| match &self.transfer.host {
                Host::Source(source) => memory.write(at, source, offset, bytes),
                Host::Destination(destination) => memory.read(at, destination, offset, bytes),
            });
            if !allowed {
                return Err(gone(logical));
            }
        }
        Ok(())
    }

    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    fn end(&self) {
        self.shared.end_staged(self.transfer.ticket, self.failure.lock().take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_two_pieces_of_a_small_transfer() {
        let tuning = Tuning { slot_bytes: 1 << 20, threads: 4 };
        assert_eq!(tuning.piece_bytes(1 << 30, false), 1 << 20);
        assert_eq!(tuning.piece_bytes(1 << 20, false), 128 << 10);
        assert_eq!(tuning.piece_bytes(100_000, false), 64 << 10);
        assert_eq!(tuning.piece_bytes(1 << 30, true), 512 << 20);
        assert_eq!(tuning.piece_bytes(5 << 20, true), 32 << 20);
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let tuning = Tuning::of(&Options::new().with("staging_slot_kib", 64_i64)).unwrap();
        assert_eq!(tuning.slot_bytes, 64 << 10);
        for (key, range) in [("staging_slot_kib", "64 to 65536"), ("staging_threads", "1 to 64")] {
            for value in [-1, 0, i64::MAX] {
                let error = Tuning::of(&Options::new().with(key, value)).unwrap_err();
                assert!(error.message().contains(key) && error.message().contains(range), "{error}");
            }
        }
    }
}
