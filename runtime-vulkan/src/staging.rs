//! Large transfers of pageable memory, copied in pieces by several threads. If the device memory is mapped and cached, threads
//! access it directly. Otherwise they fill or empty slots in pinned memory, while the device copies other slots.
//!
//! ```text
//! submit: a job waits in the queue -> its dependencies complete -> threads (and the submitter, if it helps) take pieces
//!         -> no pieces are left, or one has failed -> the last thread removes the job and completes its ticket
//! ```
//!
//! One thread at a time waits for the dependencies of a job; the others sleep until there are pieces to copy.

#![allow(unsafe_code, reason = "threads share host memory that core keeps until the ticket completes")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use runtime_core::backend::{HostBytes, HostBytesMut};
use runtime_core::{Error, ErrorKind, OptionSpec, Options, Result};

use crate::driver::{LogicalDevice, Memory, Semaphore};
use crate::progress::QueueProgress;
use crate::staging_slots::StagingSlots;

/// How long a thread waits at a time for the dependencies of a transfer.
const DEPENDENCY_WAIT_SLICE: Duration = Duration::from_millis(1);
/// How long closing a device waits for its threads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
const MIN_PIECE_BYTES: usize = 64 << 10;
/// Smallest piece of a direct copy: a copy this large bypasses the caches.
const MIN_DIRECT_PIECE_BYTES: usize = 32 << 20;
const THREAD_NAME: &str = "vulkan-staging";

/// How transfers are staged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagingConfig {
    slot_bytes: usize,
    threads: usize,
}

/// The device options for staging.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            "staging_slot_kib",
            1024_i64,
            "Size of a slot for large transfers, in KiB, 64 to 65536. Fixed when the device is first opened.",
        ),
        OptionSpec::device(
            "staging_threads",
            8_i64,
            "Threads that copy large transfers, 1 to 64, but at most one per processor. Fixed when the device is first \
             opened.",
        ),
    ]
}

impl StagingConfig {
    /// Reads the options.
    ///
    /// # Errors
    /// `InvalidArgument` for a value out of range.
    pub(crate) fn from_options(options: &Options) -> Result<Self> {
        let integer = |key: &str, default: i64, range| {
            options.integer_within(key, default, range).map(|value| usize::try_from(value).unwrap_or(1))
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            slot_bytes: integer("staging_slot_kib", 1024, 64..=64 << 10)? << 10,
            threads: integer("staging_threads", 8, 1..=64)?.min(processors),
        })
    }

    /// The size of a transfer's pieces: two for each thread, unless they become too small. A direct copy has larger ones.
    fn piece_bytes(&self, bytes: usize, direct: bool) -> usize {
        if direct {
            // Half of the threads saturate memory bandwidth, and the other transfers need threads too.
            let threads = self.threads.div_ceil(2);
            return bytes.div_ceil(threads).next_multiple_of(MIN_PIECE_BYTES).max(MIN_DIRECT_PIECE_BYTES);
        }
        let even = bytes.div_ceil(2 * self.threads).next_multiple_of(MIN_PIECE_BYTES);
        even.clamp(MIN_PIECE_BYTES, self.slot_bytes)
    }
}

/// The host's side of a transfer.
#[derive(Debug)]
pub(crate) enum HostRange {
    /// Written to the device.
    Source(HostBytes),
    /// Read from the device.
    Destination(HostBytesMut),
}

// SAFETY: threads copy pieces of it that do not overlap, and nothing else accesses it until the ticket completes.
unsafe impl Sync for HostRange {}

impl HostRange {
    fn len(&self) -> usize {
        match self {
            Self::Source(bytes) => bytes.len(),
            Self::Destination(bytes) => bytes.len(),
        }
    }
}

/// Whether the host can copy to and from device memory at full speed.
fn is_direct(memory: &Memory) -> bool {
    memory.host_ptr().is_some() && memory.is_host_cached()
}

/// A transfer to stage.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) host: HostRange,
    pub(crate) memory: Arc<Memory>,
    pub(crate) offset: u64,
    pub(crate) ticket: u64,
    /// Semaphore values to wait for: the queue's earlier work, and what that queue waits for.
    pub(crate) dependencies: Vec<(Arc<Semaphore>, u64)>,
}

/// The staging threads of a device.
#[derive(Debug)]
pub(crate) struct Staging(Arc<ThreadPool>);

#[derive(Debug)]
struct ThreadPool {
    logical: Arc<LogicalDevice>,
    config: StagingConfig,
    queue: Mutex<JobQueue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct JobQueue {
    jobs: Vec<Arc<Job>>,
    threads: usize,
    /// A thread is waiting for the dependencies of a job.
    has_dependency_waiter: bool,
    stop: bool,
}

/// A transfer in progress.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) transfer: Transfer,
    progress: Arc<QueueProgress>,
    /// Copied directly, without slots.
    direct: bool,
    piece_bytes: usize,
    next_piece: AtomicUsize,
    active_threads: AtomicUsize,
    started: AtomicBool,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Staging {
    pub(crate) fn new(logical: &Arc<LogicalDevice>, config: StagingConfig) -> Self {
        Self(Arc::new(ThreadPool {
            logical: Arc::clone(logical),
            config,
            queue: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Starts threads for a transfer, as far as they are missing.
    ///
    /// # Errors
    /// `OutOfResources` if there is no thread and none can be started.
    pub(crate) fn ensure_threads(&self, host: &HostRange, memory: &Memory) -> Result<()> {
        let piece_bytes = self.0.config.piece_bytes(host.len(), is_direct(memory));
        self.start_threads(&mut self.0.queue.lock(), host.len().div_ceil(piece_bytes))
    }

    /// Whether a direct copy of so many bytes is a single piece.
    pub(crate) fn is_one_piece(&self, bytes: u64) -> bool {
        usize::try_from(bytes).is_ok_and(|bytes| bytes <= self.0.config.piece_bytes(bytes, true))
    }

    /// Starts a transfer; `progress` completes its ticket. If the calling thread `helps`, it copies pieces too, for which
    /// the transfer must have no pending dependencies.
    pub(crate) fn submit(&self, progress: &Arc<QueueProgress>, transfer: Transfer, helps: bool) {
        let pool = &self.0;
        let direct = is_direct(&transfer.memory);
        let piece_bytes = pool.config.piece_bytes(transfer.host.len(), direct);
        progress.begin_staging();
        let job = Arc::new(Job {
            transfer,
            progress: Arc::clone(progress),
            direct,
            piece_bytes,
            next_piece: AtomicUsize::new(0),
            active_threads: AtomicUsize::new(usize::from(helps)),
            started: AtomicBool::new(helps),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
        });
        pool.queue.lock().jobs.push(Arc::clone(&job));
        pool.changed.notify_all();
        if helps {
            pool.run_job(&job, &mut None);
        }
    }

    fn start_threads(&self, queue: &mut JobQueue, wanted: usize) -> Result<()> {
        while queue.threads < wanted.min(self.0.config.threads) {
            let pool = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
            match thread.spawn(move || pool.run_thread()) {
                Ok(_) => queue.threads += 1,
                Err(_) if queue.threads > 0 => return Ok(()),
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
        let mut queue = self.0.queue.lock();
        queue.stop = true;
        self.0.changed.notify_all();
        // If a staging thread holds the last reference to the device, it cannot wait for itself.
        let is_staging_thread = std::thread::current().name() == Some(THREAD_NAME);
        while !is_staging_thread && queue.threads > 0 && begin.elapsed() < SHUTDOWN_TIMEOUT {
            self.0.changed.wait_for(&mut queue, Duration::from_millis(10));
        }
    }
}

impl ThreadPool {
    fn run_thread(&self) {
        let mut slots = None;
        while let Some(job) = self.next_job() {
            self.run_job(&job, &mut slots);
        }
        drop(slots);
        self.queue.lock().threads -= 1;
        self.changed.notify_all();
    }

    /// Copies pieces of a job until none are left. The last thread to finish completes the job.
    fn run_job(&self, job: &Arc<Job>, slots: &mut Option<StagingSlots>) {
        if let Err(error) = self.copy(job, slots) {
            job.fail(error);
        }
        let mut queue = self.queue.lock();
        let is_last = job.active_threads.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && !job.has_pieces() {
            queue.jobs.retain(|other| !Arc::ptr_eq(other, job));
            drop(queue);
            job.complete();
        }
    }

    /// Waits for a job with pieces to copy; `None` when the device is closed.
    fn next_job(&self) -> Option<Arc<Job>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.iter().find(|job| job.can_run()).cloned() {
                job.started.store(true, Ordering::Release);
                job.active_threads.fetch_add(1, Ordering::AcqRel);
                return Some(job);
            }
            if queue.stop {
                return None;
            }
            let waiting = queue.jobs.iter().find(|job| !job.started.load(Ordering::Acquire)).cloned();
            match waiting.filter(|_| !queue.has_dependency_waiter) {
                Some(job) => {
                    queue.has_dependency_waiter = true;
                    drop(queue);
                    job.wait_for_dependencies();
                    // Before the queue is locked again: dropping the last reference to a device locks it, too.
                    drop(job);
                    queue = self.queue.lock();
                    queue.has_dependency_waiter = false;
                    self.changed.notify_one();
                }
                None => self.changed.wait(&mut queue),
            }
        }
    }

    fn copy(&self, job: &Job, slots: &mut Option<StagingSlots>) -> Result<()> {
        if job.direct {
            return job.copy_direct();
        }
        let slots = match slots {
            Some(slots) => slots,
            none => none.insert(StagingSlots::new(&self.logical, self.config.slot_bytes)?),
        };
        match &job.transfer.host {
            HostRange::Source(source) => slots.upload(job, source),
            HostRange::Destination(destination) => slots.download(job, destination),
        }
    }
}

impl Job {
    fn has_pieces(&self) -> bool {
        let next = self.next_piece.load(Ordering::Acquire);
        !self.failed.load(Ordering::Acquire)
            && next.saturating_mul(self.piece_bytes) < self.transfer.host.len()
    }

    fn can_run(&self) -> bool {
        self.has_pieces() && (self.started.load(Ordering::Acquire) || self.is_ready())
    }

    /// Whether all dependencies have completed. An error counts as such: it is reported when the first piece is copied.
    fn is_ready(&self) -> bool {
        let mut dependencies = self.transfer.dependencies.iter();
        dependencies.all(|(semaphore, value)| semaphore.value().map_or(true, |current| current >= *value))
    }

    /// Waits briefly for a pending dependency.
    fn wait_for_dependencies(&self) {
        let mut dependencies = self.transfer.dependencies.iter();
        let pending =
            dependencies.find(|(semaphore, value)| semaphore.value().is_ok_and(|current| current < *value));
        if let Some((semaphore, value)) = pending {
            let _ = semaphore.wait(*value, DEPENDENCY_WAIT_SLICE);
        }
    }

    /// Takes the next piece: its offset and its length.
    pub(crate) fn next_piece(&self) -> Option<(usize, usize)> {
        if self.failed.load(Ordering::Acquire) {
            return None;
        }
        let piece = self.next_piece.fetch_add(1, Ordering::AcqRel);
        let bytes = self.transfer.host.len();
        let offset = piece.checked_mul(self.piece_bytes).filter(|&offset| offset < bytes)?;
        Some((offset, self.piece_bytes.min(bytes - offset)))
    }

    fn copy_direct(&self) -> Result<()> {
        let logical = &self.progress.context.logical;
        while let Some((offset, bytes)) = self.next_piece() {
            // The only call of the driver here, so that a loss of the device is noticed.
            self.progress.semaphore.value()?;
            let at = self.transfer.offset + offset as u64;
            let memory = &self.transfer.memory;
            let allowed = logical.host_borrows.access(|| match &self.transfer.host {
                HostRange::Source(source) => memory.write(at, source, offset, bytes),
                HostRange::Destination(destination) => memory.read(at, destination, offset, bytes),
            });
            if !allowed {
                return Err(logical.device_lost());
            }
        }
        Ok(())
    }

    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    fn complete(&self) {
        self.progress.end_staging(self.transfer.ticket, self.failure.lock().take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_two_pieces_of_a_small_transfer() {
        let config = StagingConfig { slot_bytes: 1 << 20, threads: 4 };
        assert_eq!(config.piece_bytes(1 << 30, false), 1 << 20);
        assert_eq!(config.piece_bytes(1 << 20, false), 128 << 10);
        assert_eq!(config.piece_bytes(100_000, false), 64 << 10);
        assert_eq!(config.piece_bytes(1 << 30, true), 512 << 20);
        assert_eq!(config.piece_bytes(5 << 20, true), 32 << 20);
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let config = StagingConfig::from_options(&Options::new().with("staging_slot_kib", 64_i64)).unwrap();
        assert_eq!(config.slot_bytes, 64 << 10);
        for (key, range) in [("staging_slot_kib", "64 to 65536"), ("staging_threads", "1 to 64")] {
            for value in [-1, 0, i64::MAX] {
                let error = StagingConfig::from_options(&Options::new().with(key, value)).unwrap_err();
                assert!(error.message().contains(key) && error.message().contains(range), "{error}");
            }
        }
    }
}
