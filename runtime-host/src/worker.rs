//! A queue's own thread: takes submissions in order, runs each, and ends its ticket.

#![allow(unsafe_code, reason = "copies between raw addresses")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use runtime_core::Result;
use runtime_core::backend::catch_panic;

use crate::arg_packing::{Packed, Scratch};
use crate::call::Function;
use crate::queue::Shared;
use crate::work_groups::Extent;

/// An idle worker looks this long for work before it sleeps: waking it costs microseconds.
const SPIN: Duration = Duration::from_micros(20);
/// Used submissions that are kept for the next ones.
const SPARE: usize = 1024;
/// A waiting worker looks this often whether its queue was closed.
const SLICE: Duration = Duration::from_millis(100);

/// What a submission does.
#[derive(Debug, Default)]
pub(crate) enum Work {
    /// Ends its ticket.
    #[default]
    Nothing,
    /// Calls a function with the packed arguments.
    Launch(Arc<Function>, Extent),
    /// Moves bytes.
    Copy { destination: *mut u8, source: *const u8, bytes: usize },
    /// Repeats the first `unit` bytes of a pattern.
    Fill { destination: *mut u8, bytes: usize, pattern: [u8; 16], unit: usize },
    /// Reads the clock.
    Timestamp,
    /// Waits for another queue; has no ticket.
    WaitFor { other: Arc<Shared>, ticket: u64 },
}

// SAFETY: the addresses belong to memory that core keeps alive, and keeps others away from, until the ticket ends.
unsafe impl Send for Work {}

impl Work {
    /// Moves the bytes of a copy or a fill; does nothing else.
    pub(crate) fn transfer(&self) {
        match *self {
            Self::Copy { destination, source, bytes } if bytes > 0 => {
                // SAFETY: the submission checked both ranges, and core keeps them alive until the ticket ends.
                unsafe { std::ptr::copy(source, destination, bytes) };
            }
            Self::Fill { destination, bytes, ref pattern, unit } => {
                fill(destination, bytes, &pattern[..unit]);
            }
            _ => {}
        }
    }
}

/// Writes the pattern once, then copies what is there behind itself, in pieces that stay in the cache.
fn fill(destination: *mut u8, bytes: usize, pattern: &[u8]) {
    const PIECE: usize = 16 << 10;
    let mut done = pattern.len().min(bytes);
    // SAFETY: the submission checked the range, and `done` is within it.
    unsafe { std::ptr::copy_nonoverlapping(pattern.as_ptr(), destination, done) };
    while done < bytes {
        // A piece is a multiple of every pattern, so it may begin anywhere that the pattern does.
        let piece = done.min(PIECE).min(bytes - done);
        let target = destination.wrapping_add(done);
        // SAFETY: `piece` bytes behind the `done` ones are in the range, and `piece` is at most `done`.
        unsafe { std::ptr::copy_nonoverlapping(destination, target, piece) };
        done += piece;
    }
}

/// One submission. Recycled, with the memory of its arguments.
#[derive(Debug, Default)]
pub(crate) struct Submission {
    /// Its ticket.
    pub(crate) ticket: u64,
    /// The ticket before it: may still run on a caller's thread.
    pub(crate) before: u64,
    pub(crate) work: Work,
    pub(crate) packed: Packed,
}

/// What was submitted and is not yet taken.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    state: Mutex<State>,
    arrived: Condvar,
    /// Counts pushes, so that a worker can look for one without the lock.
    pushed: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Box<Submission>>,
    #[expect(clippy::vec_box, reason = "the boxes travel between the two lists")]
    spare: Vec<Box<Submission>>,
    asleep: bool,
    closed: bool,
}

impl WorkQueue {
    /// A blank submission.
    pub(crate) fn blank(&self) -> Box<Submission> {
        self.state.lock().spare.pop().unwrap_or_default()
    }

    /// Gives an unused submission back.
    pub(crate) fn give_back(&self, submission: Box<Submission>) {
        self.state.lock().keep(submission);
    }

    /// Adds a submission, and wakes the worker if it sleeps.
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

    /// No more will come: the worker ends when all is done.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.arrived.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// The next submission, as soon as there is one; `None` when closed.
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
                self.look(seen);
                spun = true;
                state = self.state.lock();
            }
        }
    }

    fn look(&self, seen: u64) {
        let start = Instant::now();
        while start.elapsed() < SPIN {
            for _ in 0..32 {
                if self.pushed.load(Ordering::Acquire) != seen {
                    return;
                }
                std::hint::spin_loop();
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

/// The worker's thread: runs until the queue is closed and everything has ended.
pub(crate) fn run(shared: &Shared, spin: bool) {
    shared.pool.pin();
    let mut worker = Worker { shared, scratch: Scratch::default() };
    let mut used = None;
    while let Some(mut submission) = shared.inbox.next(used.take(), spin) {
        worker.perform(&mut submission);
        used = Some(submission);
    }
}

struct Worker<'a> {
    shared: &'a Shared,
    scratch: Scratch,
}

impl Worker<'_> {
    fn perform(&mut self, submission: &mut Submission) {
        let work = std::mem::take(&mut submission.work);
        if let Work::WaitFor { other, ticket } = work {
            self.wait_for(&other, ticket);
            return;
        }
        let Submission { ticket, before, ref mut packed, .. } = *submission;
        let progress = &self.shared.progress;
        while !progress.wait(before, SLICE) {}
        let outcome = match progress.first_failed() {
            0 => catch_panic("worker", || self.execute(ticket, &work, packed)).flatten(),
            _ => Ok(()),
        };
        // Whoever sees the ticket's end may unload the code.
        drop(work);
        match outcome {
            Ok(()) => progress.end(ticket),
            Err(error) => progress.fail(ticket, error),
        }
    }

    fn execute(&mut self, ticket: u64, work: &Work, packed: &mut Packed) -> Result<()> {
        match work {
            Work::Launch(function, extent) => {
                packed.invoke(function, extent, &mut self.scratch, &self.shared.pool)?;
            }
            Work::Timestamp => self.shared.timestamps.record(ticket),
            _ => work.transfer(),
        }
        Ok(())
    }

    /// Waits for the end of a ticket, good or bad: core knows which failures travel.
    fn wait_for(&self, other: &Shared, ticket: u64) {
        while !other.progress.wait(ticket, SLICE) {
            if self.shared.inbox.is_closed() {
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
