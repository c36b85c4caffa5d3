//! The worker thread of a queue: runs submissions in order, and ends their tickets.

#![allow(unsafe_code, reason = "copies between raw addresses")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use runtime_core::Result;
use runtime_core::backend::{FillPattern, catch_panic, spin_until};

use crate::arg_packing::{PackedArgs, Scratch};
use crate::call::Function;
use crate::pool::Pool;
use crate::progress::Progress;
use crate::timer::Timestamps;
use crate::work_groups::Extent;

/// How long an idle worker polls for work before it sleeps: waking it costs microseconds.
const SPIN: Duration = Duration::from_micros(20);
/// Number of used submissions that are kept for reuse.
const SPARE: usize = 1024;
/// How often a waiting worker checks whether its queue was closed.
const SLICE: Duration = Duration::from_millis(100);

/// What a submission does.
#[derive(Debug, Default)]
pub(crate) enum Work {
    /// Only ends its ticket.
    #[default]
    Nothing,
    /// Calls a function with the packed arguments.
    Launch(Arc<Function>, Extent),
    /// Moves bytes.
    Copy { destination: *mut u8, source: *const u8, bytes: usize },
    /// Repeats a pattern.
    Fill { destination: *mut u8, bytes: usize, pattern: FillPattern },
    /// Reads the clock.
    Timestamp,
    /// Waits for another queue; has no ticket.
    WaitFor { other: Arc<Shared>, ticket: u64 },
}

// SAFETY: core keeps the memory alive, and orders conflicting accesses, until the ticket ends.
unsafe impl Send for Work {}

impl Work {
    /// Runs a copy or a fill; does nothing for other work.
    pub(crate) fn transfer(&self) {
        match *self {
            Self::Copy { destination, source, bytes } if bytes > 0 => {
                // SAFETY: the submission checked both ranges, and core keeps them alive until the ticket ends.
                unsafe { std::ptr::copy(source, destination, bytes) };
            }
            Self::Fill { destination, bytes, ref pattern } => fill(destination, bytes, pattern.shortest()),
            _ => {}
        }
    }
}

/// Writes the pattern once, then repeatedly copies the beginning, in pieces that stay in the cache.
fn fill(destination: *mut u8, bytes: usize, pattern: &[u8]) {
    const PIECE: usize = 16 << 10;
    let mut done = pattern.len().min(bytes);
    // SAFETY: the submission checked the range, and `done` is within it.
    unsafe { std::ptr::copy_nonoverlapping(pattern.as_ptr(), destination, done) };
    while done < bytes {
        // The size of a piece is a multiple of every pattern size, so each piece starts with a whole pattern.
        let piece = done.min(PIECE).min(bytes - done);
        let target = destination.wrapping_add(done);
        // SAFETY: `piece` bytes behind the `done` ones are in the range, and `piece` is at most `done`.
        unsafe { std::ptr::copy_nonoverlapping(destination, target, piece) };
        done += piece;
    }
}

/// One submission. Reused, together with the memory of its arguments.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    /// Its ticket.
    pub(crate) ticket: u64,
    /// The ticket before it, which may still run on a caller's thread.
    pub(crate) previous_ticket: u64,
    pub(crate) work: Work,
    pub(crate) packed: PackedArgs,
}

/// Submissions that the worker has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    state: Mutex<State>,
    arrived: Condvar,
    /// The number of pushes, so that the worker can poll for one without the lock.
    pushed: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Box<Submission>>,
    #[expect(clippy::vec_box, reason = "boxes move between the two lists")]
    spare: Vec<Box<Submission>>,
    asleep: bool,
    closed: bool,
}

impl WorkQueue {
    /// A blank submission.
    pub(crate) fn blank(&self) -> Box<Submission> {
        self.state.lock().spare.pop().unwrap_or_default()
    }

    /// Returns an unused submission.
    pub(crate) fn give_back(&self, submission: Box<Submission>) {
        self.state.lock().keep(submission);
    }

    /// Adds a submission, and wakes the worker if it is asleep.
    pub(crate) fn push(&self, submission: Box<Submission>) {
        let mut state = self.state.lock();
        state.waiting.push_back(submission);
        self.pushed.fetch_add(1, Ordering::Release);
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.arrived.notify_one();
        }
    }

    /// Closes the queue: the worker ends once all submissions are done.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Waits for the next submission; `None` once closed and empty.
    fn next(&self, used: Option<Box<Submission>>, spin: bool) -> Option<Box<Submission>> {
        let mut state = self.state.lock();
        used.into_iter().for_each(|used| state.keep(used));
        let mut spun = !spin;
        loop {
            if let Some(submission) = state.waiting.pop_front() {
                return Some(submission);
            }
            if state.closed {
                return None;
            }
            if spun {
                state.asleep = true;
                self.arrived.wait(&mut state);
                state.asleep = false;
            } else {
                let seen = self.pushed.load(Ordering::Acquire);
                drop(state);
                spin_until(SPIN, || self.pushed.load(Ordering::Acquire) != seen);
                spun = true;
                state = self.state.lock();
            }
        }
    }
}

impl State {
    fn keep(&mut self, mut submission: Box<Submission>) {
        if self.spare.len() < SPARE {
            submission.packed.clear();
            self.spare.push(submission);
        }
    }
}

/// State shared by a queue and its worker thread.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) progress: Progress,
    pub(crate) work_queue: WorkQueue,
    pub(crate) timestamps: Timestamps,
    /// Helps with parallel loops; also determines the processors of the worker.
    pub(crate) pool: Arc<Pool>,
    /// The last ticket that was submitted. Written by submissions only, which never overlap.
    pub(crate) last_submitted: AtomicU64,
    /// Number of submitted waits for other queues that have not ended.
    pub(crate) waits: AtomicU64,
}

impl Shared {
    /// The state of an idle queue.
    pub(crate) fn new(epoch: Instant, pool: Arc<Pool>) -> Self {
        Self {
            progress: Progress::default(),
            work_queue: WorkQueue::default(),
            timestamps: Timestamps::new(epoch),
            pool,
            last_submitted: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        }
    }

    /// Whether nothing is in flight and nothing has failed, so that the next ticket may run on the caller's thread.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.progress.completed() == self.last_submitted.load(Ordering::Relaxed)
            && self.waits.load(Ordering::Acquire) == 0
            && self.progress.first_failed() == 0
    }

    /// Notes that a wait for another queue has ended.
    fn waited(&self) {
        self.waits.fetch_sub(1, Ordering::Release);
    }
}

/// The main function of the thread: runs until the queue is closed and all submissions are done.
pub(crate) fn run(shared: &Shared, spin: bool) {
    shared.pool.pin();
    let mut worker = Worker { shared, scratch: Scratch::default() };
    let mut used = None;
    while let Some(mut submission) = shared.work_queue.next(used.take(), spin) {
        worker.run(&mut submission);
        used = Some(submission);
    }
}

struct Worker<'a> {
    shared: &'a Shared,
    scratch: Scratch,
}

impl Worker<'_> {
    fn run(&mut self, submission: &mut Submission) {
        let work = std::mem::take(&mut submission.work);
        if let Work::WaitFor { other, ticket } = work {
            self.wait_for(&other, ticket);
            return;
        }
        let Submission { ticket, previous_ticket, ref mut packed, .. } = *submission;
        let progress = &self.shared.progress;
        while !progress.wait(previous_ticket, SLICE) {}
        let outcome = match progress.first_failed() {
            0 => catch_panic("worker", || self.execute(ticket, &work, packed)).flatten(),
            _ => Ok(()),
        };
        // Once the ticket has ended, the code may be unloaded.
        drop(work);
        match outcome {
            Ok(()) => progress.end(ticket),
            Err(error) => progress.fail(ticket, error),
        }
    }

    fn execute(&mut self, ticket: u64, work: &Work, packed: &mut PackedArgs) -> Result<()> {
        match work {
            Work::Launch(function, extent) => {
                packed.invoke(function, extent, &mut self.scratch, &self.shared.pool)?;
            }
            Work::Timestamp => self.shared.timestamps.record(ticket),
            _ => work.transfer(),
        }
        Ok(())
    }

    /// Waits until a ticket has ended, successfully or not: core decides which failures propagate.
    fn wait_for(&self, other: &Shared, ticket: u64) {
        while !other.progress.wait(ticket, SLICE) {
            if self.shared.work_queue.is_closed() {
                return;
            }
        }
        self.shared.waited();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_repeated_to_the_last_byte() {
        for unit in [1, 2, 4, 8, 16] {
            let pattern: Vec<u8> = (1..=unit).collect();
            for bytes in [0, 1, 3].map(|units| units * usize::from(unit)).into_iter().chain([
                48,
                64 << 10,
                (1 << 20) + 16,
            ]) {
                let mut memory = vec![0_u8; bytes + 1];
                fill(memory.as_mut_ptr(), bytes, &pattern);
                assert!(
                    memory[..bytes].iter().zip(pattern.iter().cycle()).all(|(a, b)| a == b),
                    "{unit} {bytes}"
                );
                assert_eq!(memory[bytes], 0, "nothing is written behind the end");
            }
        }
    }
}
