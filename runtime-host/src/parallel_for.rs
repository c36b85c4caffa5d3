//! Parallel loops: several threads take chunks of the iterations until none are left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use runtime_core::backend::{catch_panic, spin_until};
use runtime_core::{Error, Result};

use crate::pool::Pool;

/// Chunks per thread if the grain is not given: enough to balance the load, few enough to cost nothing.
const CHUNKS_PER_THREAD: u64 = 8;
/// How long a thread polls for the end of the loop before it sleeps or returns to the pool.
const SPIN: Duration = Duration::from_micros(20);

/// The iterations `begin..begin + items`, divided into chunks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) begin: i64,
    pub(crate) items: u64,
    pub(crate) grain: u64,
    pub(crate) chunks: u64,
    pub(crate) threads: u64,
}

impl Split {
    /// Divides `items` iterations among `threads` threads; a grain of 0 chooses one. Equal arguments give equal chunks.
    pub(crate) fn new(begin: i64, items: u64, grain: u64, threads: usize) -> Self {
        let threads = threads.max(1) as u64;
        let grain = match grain {
            0 if threads == 1 => items.max(1),
            0 => items.div_ceil(threads.saturating_mul(CHUNKS_PER_THREAD)).max(1),
            grain => grain,
        };
        Self { begin, items, grain, chunks: items.div_ceil(grain), threads }
    }

    /// The number of threads that run the loop.
    pub(crate) fn workers(&self) -> usize {
        usize::try_from(self.chunks.clamp(1, self.threads)).unwrap_or(1)
    }

    /// The bounds of chunk `index`.
    pub(crate) fn chunk(&self, index: u64) -> [i64; 2] {
        let from = index * self.grain;
        let to = self.items.min(from.saturating_add(self.grain));
        [from, to].map(|at| self.begin.wrapping_add(at.cast_signed()))
    }
}

/// The body of a parallel loop.
pub(crate) trait LoopBody: Send + Sync + 'static {
    /// State that one thread keeps between chunks.
    type WorkerState;

    /// Creates the state of the `index`th thread that joins the loop.
    fn worker_state(&self, index: u64) -> Self::WorkerState;

    /// Runs one chunk.
    ///
    /// # Errors
    /// Any failure; chunks that have not started are then skipped.
    fn run(&self, state: &mut Self::WorkerState, chunk: [i64; 2]) -> Result<()>;
}

/// A running loop.
#[derive(Debug)]
pub(crate) struct ParallelFor<P> {
    work: P,
    split: Split,
    started: AtomicUsize,
    taken: AtomicU64,
    ended: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    lock: Mutex<()>,
    all_ended: Condvar,
}

impl<P: LoopBody> ParallelFor<P> {
    /// A loop over all chunks of `split`.
    pub(crate) fn new(work: P, split: Split) -> Self {
        Self {
            work,
            split,
            started: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            lock: Mutex::new(()),
            all_ended: Condvar::new(),
        }
    }

    /// Runs all chunks, on this thread and those of `pool`, and returns when they have ended.
    ///
    /// # Errors
    /// The first failure of a chunk; `OutOfResources` if the pool cannot start.
    pub(crate) fn run(self, pool: &Pool) -> Result<()> {
        let workers = self.split.workers();
        let shared = Arc::new(self);
        if workers > 1 {
            // The pool may be busy with another queue's loop; this thread runs whatever the helpers do not take.
            pool.spawn_helpers(workers - 1, || {
                let shared = Arc::clone(&shared);
                move || {
                    shared.run_worker();
                    // Staying awake until the loop ends saves a wake-up if another call follows at once.
                    spin_until(SPIN, || shared.has_ended());
                }
            })?;
        }
        shared.run_worker();
        shared.wait();
        shared.failure.lock().take().map_or(Ok(()), Err)
    }

    fn run_worker(&self) {
        let state = self.started.fetch_add(1, Ordering::Relaxed) as u64;
        let mut state = self.work.worker_state(state);
        loop {
            let index = self.taken.fetch_add(1, Ordering::Relaxed);
            if index >= self.split.chunks {
                return;
            }
            if !self.failed.load(Ordering::Relaxed)
                && let Err(error) =
                    catch_panic("range", || self.work.run(&mut state, self.split.chunk(index))).flatten()
            {
                self.failure.lock().get_or_insert(error);
                self.failed.store(true, Ordering::Relaxed);
            }
            if self.ended.fetch_add(1, Ordering::AcqRel) + 1 == self.split.chunks {
                drop(self.lock.lock());
                self.all_ended.notify_all();
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) == self.split.chunks
    }

    fn wait(&self) {
        spin_until(SPIN, || self.has_ended());
        let mut guard = self.lock.lock();
        while !self.has_ended() {
            self.all_ended.wait(&mut guard);
        }
    }
}
