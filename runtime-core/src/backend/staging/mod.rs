//! Staging of large transfers of pageable memory: threads copy pieces of it to and from memory that the device copies fast.
//!
//! A backend says in [`StagedTransfer`] when a transfer may start, how a thread copies pieces, and how the ticket ends; the
//! [`StagingPool`] does the rest:
//!
//! ```text
//!  submit              is_ready                threads join;          no pieces left or one failed,
//!  ───────> waiting ─────────────> ready ───────────────────> running ──────────────────────────────> complete
//!                                               each takes            and the last thread leaves
//!                                               piece after piece
//! ```
//!
//! One thread at a time waits until a transfer is ready; the others sleep until there are pieces to copy.

mod host_range;
mod options;
mod pieces;
mod slots;

use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub use host_range::{Direction, HostRange};
pub use options::StagingOptions;
pub use pieces::{Piece, Pieces};
pub use slots::{StagingSlots, copy_pieces};

use crate::{Error, ErrorKind, Result};

/// How long closing a device or a queue waits for transfers and other work that nobody waited for. They hang only if the driver does.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// A transfer that threads make in pieces.
pub trait StagedTransfer: Send + Sync + 'static {
    /// What a thread keeps between transfers: its slots.
    type Slots;

    /// Name of the threads.
    const THREAD_NAME: &'static str;
    /// How long dropping the pool waits for its threads.
    const SHUTDOWN_TIMEOUT: Duration = SHUTDOWN_TIMEOUT;

    /// Whether pieces can be copied without waiting for earlier work. An error counts as such, if it recurs in
    /// [`copy`](Self::copy).
    fn is_ready(&self) -> bool;

    /// Waits a moment until the transfer may be ready. Returns how long the thread is to pause in addition, which a new
    /// transfer cuts short.
    fn wait_until_ready(&self) -> Duration;

    /// Most threads that copy pieces at a time.
    fn max_threads(&self) -> usize {
        usize::MAX
    }

    /// Copies pieces until none are left. `slots` belong to the calling thread, and are `None` at first.
    ///
    /// # Errors
    /// Why a piece failed.
    fn copy(&self, slots: &mut Option<Self::Slots>, pieces: &Pieces) -> Result<()>;

    /// Ends the ticket: all pieces are copied, or one has failed and no thread is at work on another.
    fn complete(&self, failure: Option<Error>);
}

/// Threads that make transfers, in the order of submission as far as they are ready.
#[derive(Debug)]
pub struct StagingPool<T: StagedTransfer>(Arc<Shared<T>>);

/// What the threads share.
#[derive(Debug)]
struct Shared<T> {
    list: Mutex<JobList<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct JobList<T> {
    entries: Vec<Entry<T>>,
    threads: Vec<ThreadId>,
    /// A thread waits until a transfer is ready.
    has_waiter: bool,
    stop: bool,
}

#[derive(Debug)]
struct Entry<T> {
    job: Arc<Job<T>>,
    is_ready: bool,
    active_threads: usize,
}

#[derive(Debug)]
struct Job<T> {
    transfer: T,
    pieces: Pieces,
}

impl<T: StagedTransfer> Default for StagingPool<T> {
    fn default() -> Self {
        let list = JobList { entries: Vec::new(), threads: Vec::new(), has_waiter: false, stop: false };
        Self(Arc::new(Shared { list: Mutex::new(list), changed: Condvar::new() }))
    }
}

impl<T: StagedTransfer> StagingPool<T> {
    /// Starts threads until `count` of them run.
    ///
    /// # Errors
    /// `OutOfResources` if no thread runs and none can be started.
    pub fn start_threads(&self, count: usize) -> Result<()> {
        let mut list = self.0.list.lock();
        while list.threads.len() < count {
            let shared = Arc::clone(&self.0);
            let thread = thread::Builder::new().name(T::THREAD_NAME.to_owned());
            match thread.spawn(move || shared.run_thread()) {
                Ok(thread) => list.threads.push(thread.thread().id()),
                Err(_) if !list.threads.is_empty() => break,
                Err(error) => {
                    let message = format!("cannot start a staging thread: {error}; end other threads");
                    return Err(Error::new(ErrorKind::OutOfResources, message));
                }
            }
        }
        Ok(())
    }

    /// Submits a transfer of one piece or more, for which threads were started. If the calling thread `helps`, it copies pieces
    /// too, for which the transfer must be ready.
    pub fn submit(&self, transfer: T, pieces: Pieces, helps: bool) {
        let job = Arc::new(Job { transfer, pieces });
        let entry = Entry { job: Arc::clone(&job), is_ready: helps, active_threads: usize::from(helps) };
        self.0.list.lock().entries.push(entry);
        self.0.changed.notify_all();
        if helps {
            self.0.copy(&job, &mut None);
        }
    }
}

impl<T: StagedTransfer> Drop for StagingPool<T> {
    fn drop(&mut self) {
        let begin = Instant::now();
        let mut list = self.0.list.lock();
        list.stop = true;
        self.0.changed.notify_all();
        // A transfer may hold the last reference to the device: then a thread of the pool, which cannot wait for itself, drops it.
        let is_own_thread = list.threads.contains(&thread::current().id());
        while !is_own_thread && !list.threads.is_empty() && begin.elapsed() < T::SHUTDOWN_TIMEOUT {
            self.0.changed.wait_for(&mut list, Duration::from_millis(10));
        }
    }
}

// A job is never dropped with the list locked, because with it may go the last reference to the device, whose drop locks the list.
impl<T: StagedTransfer> Shared<T> {
    fn run_thread(&self) {
        let mut slots = None;
        while let Some(job) = self.next_job() {
            self.copy(&job, &mut slots);
        }
        drop(slots);
        self.list.lock().threads.retain(|thread| *thread != thread::current().id());
        self.changed.notify_all();
    }

    /// Waits for a job to work on; `None` when the pool is dropped.
    fn next_job(&self) -> Option<Arc<Job<T>>> {
        let mut list = self.list.lock();
        loop {
            if let Some(job) = self.join(&mut list) {
                return Some(job);
            }
            if list.stop {
                return None;
            }
            let waiting = list.entries.iter().find(|entry| !entry.is_ready).filter(|_| !list.has_waiter);
            let Some(job) = waiting.map(|entry| Arc::clone(&entry.job)) else {
                self.changed.wait(&mut list);
                continue;
            };
            list.has_waiter = true;
            drop(list);
            let pause = job.transfer.wait_until_ready();
            drop(job);
            list = self.list.lock();
            self.changed.wait_for(&mut list, pause);
            list.has_waiter = false;
            self.changed.notify_one();
        }
    }

    /// Joins the first job that is ready and has room for another thread.
    fn join(&self, list: &mut JobList<T>) -> Option<Arc<Job<T>>> {
        let entry = list.entries.iter_mut().find(|entry| entry.has_room() && entry.is_ready())?;
        if !std::mem::replace(&mut entry.is_ready, true) {
            // The others may have gone to sleep before.
            self.changed.notify_all();
        }
        entry.active_threads += 1;
        Some(Arc::clone(&entry.job))
    }

    /// Copies pieces of a job that the calling thread has joined. The last thread to leave completes it.
    fn copy(&self, job: &Arc<Job<T>>, slots: &mut Option<T::Slots>) {
        if let Err(error) = job.transfer.copy(slots, &job.pieces) {
            job.pieces.fail(error);
        }
        if self.leave(job) {
            job.transfer.complete(job.pieces.take_failure());
        }
    }

    /// Leaves a job; returns whether that ends it.
    fn leave(&self, job: &Arc<Job<T>>) -> bool {
        let mut list = self.list.lock();
        let position = list.entries.iter().position(|entry| Arc::ptr_eq(&entry.job, job));
        position.is_some_and(|index| {
            let entry = &mut list.entries[index];
            entry.active_threads -= 1;
            let is_last = entry.active_threads == 0 && !job.pieces.are_left();
            if is_last {
                list.entries.remove(index);
            }
            is_last
        })
    }
}

impl<T: StagedTransfer> Entry<T> {
    fn has_room(&self) -> bool {
        self.active_threads < self.job.transfer.max_threads() && self.job.pieces.are_left()
    }

    fn is_ready(&self) -> bool {
        self.is_ready || self.job.transfer.is_ready()
    }
}

#[cfg(test)]
mod tests;
