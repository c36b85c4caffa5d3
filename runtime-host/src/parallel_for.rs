//! Work in pieces, on several threads: each takes the next piece until there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use runtime_core::backend::catch_panic;
use runtime_core::{Error, Result};

use crate::pool::Pool;

/// Without a grain every thread gets about this many pieces: enough to even out, few enough to cost nothing.
const PIECES: u64 = 8;
/// Whoever waits for the last pieces looks this long before it sleeps, or goes.
const SPIN: Duration = Duration::from_micros(20);

/// Iterations `begin, begin + 1, …` in pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    pub(crate) begin: i64,
    pub(crate) items: u64,
    pub(crate) grain: u64,
    pub(crate) pieces: u64,
    pub(crate) threads: u64,
}

impl Split {
    /// Cuts `items` iterations for `threads` threads; the grain 0 leaves it open. The same numbers give the same pieces.
    pub(crate) fn new(begin: i64, items: u64, grain: u64, threads: usize) -> Self {
        let threads = threads.max(1) as u64;
        let grain = match grain {
            0 if threads == 1 => items.max(1),
            0 => items.div_ceil(threads.saturating_mul(PIECES)).max(1),
            grain => grain,
        };
        Self { begin, items, grain, pieces: items.div_ceil(grain), threads }
    }

    /// How many threads take part.
    pub(crate) fn hands(&self) -> usize {
        usize::try_from(self.pieces.clamp(1, self.threads)).unwrap_or(1)
    }

    /// Begin and end of piece `index`.
    pub(crate) fn piece(&self, index: u64) -> [i64; 2] {
        let from = index * self.grain;
        let to = self.items.min(from.saturating_add(self.grain));
        [from, to].map(|at| self.begin.wrapping_add(at.cast_signed()))
    }
}

/// What is done in pieces.
pub(crate) trait Pieces: Send + Sync + 'static {
    /// What one thread keeps from piece to piece.
    type Hand;

    /// Makes it, for the thread that is the `index`th to take part.
    fn hand(&self, index: u64) -> Self::Hand;

    /// Does one piece.
    ///
    /// # Errors
    /// Whatever went wrong; the pieces that nobody has begun are left out.
    fn run(&self, hand: &mut Self::Hand, piece: [i64; 2]) -> Result<()>;
}

/// Pieces that are being done.
#[derive(Debug)]
pub(crate) struct Spread<P> {
    work: P,
    split: Split,
    joined: AtomicUsize,
    taken: AtomicU64,
    ended: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    lock: Mutex<()>,
    all_ended: Condvar,
}

impl<P: Pieces> Spread<P> {
    /// All pieces of `split`.
    pub(crate) fn new(work: P, split: Split) -> Self {
        Self {
            work,
            split,
            joined: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            lock: Mutex::new(()),
            all_ended: Condvar::new(),
        }
    }

    /// Runs all pieces, on this thread too, and returns when they have ended.
    ///
    /// # Errors
    /// The first failure of a piece; `OutOfResources` if the pool cannot start.
    pub(crate) fn run(self, pool: &Pool) -> Result<()> {
        let hands = self.split.hands();
        let spread = Arc::new(self);
        if hands > 1 {
            // Others may be busy with another queue's range: what they do not take is done here.
            pool.invite(hands - 1, || {
                let spread = Arc::clone(&spread);
                move || {
                    spread.take_part();
                    // Still awake when the last piece has ended, it is awake for a call that follows at once.
                    spread.spin();
                }
            })?;
        }
        spread.take_part();
        spread.wait();
        spread.failure.lock().take().map_or(Ok(()), Err)
    }

    fn take_part(&self) {
        let hand = self.joined.fetch_add(1, Ordering::Relaxed) as u64;
        let mut hand = self.work.hand(hand);
        loop {
            let index = self.taken.fetch_add(1, Ordering::Relaxed);
            if index >= self.split.pieces {
                return;
            }
            if !self.failed.load(Ordering::Relaxed)
                && let Err(error) =
                    catch_panic("range", || self.work.run(&mut hand, self.split.piece(index))).flatten()
            {
                self.failure.lock().get_or_insert(error);
                self.failed.store(true, Ordering::Relaxed);
            }
            if self.ended.fetch_add(1, Ordering::AcqRel) + 1 == self.split.pieces {
                drop(self.lock.lock());
                self.all_ended.notify_all();
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) == self.split.pieces
    }

    fn spin(&self) {
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < SPIN {
            std::hint::spin_loop();
        }
    }

    fn wait(&self) {
        self.spin();
        let mut guard = self.lock.lock();
        while !self.has_ended() {
            self.all_ended.wait(&mut guard);
        }
    }
}
