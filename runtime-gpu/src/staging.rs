//! Staging of pageable memory: threads copy between it and pinned slots while the device copies between the slots and its own
//! memory.
//!
//! The driver does the same with one thread and one slot, which leaves most of the bus idle. A transfer starts when its stream
//! has reached it, so that no thread ever waits for a kernel; later submissions to the queue are deferred until the whole
//! transfer is enqueued (see [`crate::queue`]). The life of a [`Job`]:
//!
//! ```text
//!  submit             stream idle           join_job                no pieces left or failed,
//!  ───────> waiting ──────────────> ready ───────────> running ───────────────────────────────> finished
//!                                                       │   ▲       and the last thread leaves   (ends the ticket)
//!                                                       └───┘
//!                                     more threads join; each takes piece after piece
//! ```

#![allow(
    unsafe_code,
    reason = "shares host memory that core keeps until the ticket ends, and calls the driver"
)]

mod slot_ring;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use runtime_core::{Error, ErrorKind, Options, Result};

use crate::driver::Driver;
use crate::driver::abi::{Context, DevicePtr};
use crate::progress::StreamState;
use slot_ring::SlotRing;

/// Name of the threads.
const THREAD_NAME: &str = "cuda-staging";
/// How often a thread polls whether a stream has reached its transfer.
const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// How long closing the device waits for the threads.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// Smallest piece, of which larger ones are multiples.
const MIN_PIECE_BYTES: usize = 64 << 10;

/// Numbers of threads, and the size of their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagingConfig {
    pub(crate) slot_bytes: usize,
    pub(crate) upload_threads: usize,
    pub(crate) download_threads: usize,
}

impl StagingConfig {
    /// Parses the device options; the defaults were fastest on an H200.
    ///
    /// # Errors
    /// `InvalidArgument` for a value out of range.
    pub(crate) fn parse(options: &Options) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
        let option = |key: &str, default: usize, range| {
            let value = options.integer_within(key, default as i64, range);
            value.map(|value| usize::try_from(value).unwrap_or(default))
        };
        Ok(Self {
            slot_bytes: option("staging_slot_kib", 1024, 64..=1 << 16)? << 10,
            upload_threads: option("upload_threads", cores, 1..=64)?,
            download_threads: option("download_threads", cores, 1..=64)?,
        })
    }

    const fn max_threads(self) -> usize {
        if self.upload_threads > self.download_threads { self.upload_threads } else { self.download_threads }
    }

    /// Bytes of a piece: small transfers are cut so that each thread gets two.
    fn piece_bytes(self, bytes: usize, threads: usize) -> usize {
        (bytes / (2 * threads)).next_multiple_of(MIN_PIECE_BYTES).clamp(MIN_PIECE_BYTES, self.slot_bytes)
    }
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Host to device.
    Upload,
    /// Device to host.
    Download,
}

/// A transfer between pageable host memory and the device.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) direction: Direction,
    pub(crate) host: *mut u8,
    pub(crate) device: DevicePtr,
    pub(crate) bytes: usize,
}

/// A transfer in pieces, which the threads take one by one.
#[derive(Debug)]
struct Job {
    transfer: Transfer,
    state: Arc<StreamState>,
    piece_bytes: usize,
    piece_count: usize,
    max_threads: usize,
    next_piece: AtomicUsize,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Threads at work on it; changed only with the list locked.
    active_threads: AtomicUsize,
    /// The stream has reached it; changed only with the list locked.
    ready: AtomicBool,
}

// SAFETY: core keeps the host memory until the ticket ends, and nothing else accesses it meanwhile.
unsafe impl Send for Job {}
// SAFETY: pieces are disjoint, and each is taken by one thread.
unsafe impl Sync for Job {}

#[derive(Debug, Default)]
struct JobList {
    jobs: VecDeque<Arc<Job>>,
    /// A thread is polling for streams to reach their transfers.
    polled: bool,
    threads: usize,
    stop: bool,
}

/// What the threads share.
#[derive(Debug)]
struct Workers {
    driver: &'static Driver,
    context: Context,
    config: StagingConfig,
    list: Mutex<JobList>,
    changed: Condvar,
}

/// The staging threads of a device.
#[derive(Debug)]
pub(crate) struct Staging(Arc<Workers>);

impl Staging {
    pub(crate) fn new(driver: &'static Driver, context: Context, config: StagingConfig) -> Self {
        let (list, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Workers { driver, context, config, list, changed }))
    }

    /// Submits a transfer as `ticket` of a queue.
    ///
    /// # Errors
    /// `OutOfResources` if no thread can be started; the ticket is not taken.
    pub(crate) fn submit(&self, state: &Arc<StreamState>, ticket: u64, transfer: Transfer) -> Result<()> {
        let workers = &self.0;
        let max_threads = match transfer.direction {
            Direction::Upload => workers.config.upload_threads,
            Direction::Download => workers.config.download_threads,
        };
        let piece_bytes = workers.config.piece_bytes(transfer.bytes, max_threads);
        let piece_count = transfer.bytes.div_ceil(piece_bytes);
        let mut list = workers.list.lock();
        self.start_threads(&mut list, max_threads.min(piece_count))?;
        // Before any thread can finish it.
        state.begin_staging(ticket);
        list.jobs.push_back(Arc::new(Job {
            transfer,
            state: Arc::clone(state),
            piece_bytes,
            piece_count,
            max_threads,
            next_piece: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::default(),
            active_threads: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
        }));
        drop(list);
        workers.changed.notify_all();
        Ok(())
    }

    /// Starts threads until `count` of them run.
    fn start_threads(&self, list: &mut JobList, count: usize) -> Result<()> {
        while list.threads < count.min(self.0.config.max_threads()) {
            let workers = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
            match thread.spawn(move || workers.run()) {
                Ok(_) => list.threads += 1,
                Err(_) if list.threads > 0 => return Ok(()),
                Err(error) => {
                    let message = format!("cannot start a staging thread: {error}; end other threads");
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
        // A staging thread may drop the last reference to the device: it cannot wait for itself.
        let is_worker = std::thread::current().name() == Some(THREAD_NAME);
        while !is_worker && list.threads > 0 && begin.elapsed() < SHUTDOWN_TIMEOUT {
            self.0.changed.wait_for(&mut list, Duration::from_millis(10));
        }
    }
}

impl Workers {
    /// The loop of a thread.
    fn run(&self) {
        // SAFETY: the context is retained as long as there are threads, and this thread is ours.
        let _ = unsafe { (self.driver.cuCtxSetCurrent)(self.context.0) };
        let mut ring = SlotRing::default();
        while let Some(job) = self.join_job() {
            if let Err(error) = ring.transfer(&job, self.config.slot_bytes) {
                job.fail(error);
            }
            self.leave_job(job);
        }
        ring.close(self.driver);
        self.list.lock().threads -= 1;
        self.changed.notify_all();
    }

    /// Waits for a job to work on; `None` when the device is closed.
    fn join_job(&self) -> Option<Arc<Job>> {
        let mut list = self.list.lock();
        loop {
            let found = list.jobs.iter().find(|job| job.is_ready() && job.has_room());
            if let Some(job) = found {
                job.active_threads.fetch_add(1, Ordering::AcqRel);
                return Some(Arc::clone(job));
            }
            if list.stop {
                return None;
            }
            self.wait_for_change(&mut list);
        }
    }

    /// Waits for a change of the list or, if a job is not ready and no other thread polls, for the poll interval.
    fn wait_for_change(&self, list: &mut MutexGuard<'_, JobList>) {
        if list.polled || list.jobs.iter().all(|job| job.ready.load(Ordering::Acquire)) {
            self.changed.wait(list);
        } else {
            list.polled = true;
            self.changed.wait_for(list, POLL_INTERVAL);
            list.polled = false;
            self.changed.notify_one();
        }
    }

    /// Leaves a job; the last thread to leave finishes it.
    fn leave_job(&self, job: Arc<Job>) {
        let mut list = self.list.lock();
        let is_last = job.active_threads.fetch_sub(1, Ordering::AcqRel) == 1;
        let is_finished = is_last && !job.has_work();
        if is_finished {
            list.jobs.retain(|other| !Arc::ptr_eq(other, &job));
        }
        drop(list);
        if is_finished {
            job.finish();
        }
        // With the list unlocked: the job may hold the last reference to the device, whose drop locks the list.
        drop(job);
    }
}

impl Job {
    fn has_work(&self) -> bool {
        !self.failed.load(Ordering::Acquire) && self.next_piece.load(Ordering::Acquire) < self.piece_count
    }

    fn has_room(&self) -> bool {
        self.has_work() && self.active_threads.load(Ordering::Acquire) < self.max_threads
    }

    /// Whether the stream has reached the transfer, so that its pieces need not wait.
    fn is_ready(&self) -> bool {
        if self.ready.load(Ordering::Acquire) {
            return true;
        }
        // An error recurs, and is reported, when the first piece is copied.
        let ready = self.state.primary.is_stream_idle(self.state.stream).unwrap_or(true);
        if ready {
            self.ready.store(true, Ordering::Release);
        }
        ready
    }

    /// Takes the next piece; returns its offset and length.
    fn take_piece(&self) -> Option<(usize, usize)> {
        if self.failed.load(Ordering::Acquire) {
            return None;
        }
        let piece = self.next_piece.fetch_add(1, Ordering::AcqRel);
        let offset = piece.checked_mul(self.piece_bytes).filter(|&offset| offset < self.transfer.bytes)?;
        Some((offset, self.piece_bytes.min(self.transfer.bytes - offset)))
    }

    /// Records a failure, the first one, and stops the other threads.
    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    /// Ends the ticket.
    fn finish(&self) {
        let failure = self.failure.lock().take();
        self.state.finish_staging(failure.map_or(Ok(self.transfer.direction), Err));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: StagingConfig =
        StagingConfig { slot_bytes: 1 << 20, upload_threads: 4, download_threads: 8 };

    #[test]
    fn small_transfers_have_two_pieces_per_thread() {
        assert_eq!(CONFIG.piece_bytes(1 << 30, 4), 1 << 20);
        assert_eq!(CONFIG.piece_bytes(1 << 20, 4), 128 << 10);
        assert_eq!(CONFIG.piece_bytes(100_000, 8), 64 << 10);
    }
}
