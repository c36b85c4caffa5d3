//! Parallel ranges: `void f(args…, int64_t begin, int64_t end)`, called piece by piece on several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use runtime_core::backend::catch_panic;
use runtime_core::{Error, Result};
use smallvec::SmallVec;

use crate::call::{Class, Function, Word};
use crate::convention::Convention;
use crate::pool::Pool;

/// Without a grain every thread gets about this many pieces: enough to even out, few enough to cost nothing.
const PIECES: u64 = 8;
/// Whoever waits for the last pieces looks this long before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Arguments up to this many, `begin` and `end` included, need no allocation.
const FEW: usize = 18;

/// A half-open range of iterations, and how many of them one call gets; 0: as many as seems right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    begin: i64,
    end: i64,
    grain: u64,
}

impl Span {
    /// The range of a launch of `function`, if it has one.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that ends before it begins, and a negative grain; `Unsupported` for a function
    /// that is not plain.
    #[inline]
    pub(crate) fn of(function: &Function, range: Option<[i64; 2]>, grain: i64) -> Result<Option<Self>> {
        match range {
            None => Ok(None),
            Some(range) => Self::new(function, range, grain).map(Some),
        }
    }

    fn new(function: &Function, [begin, end]: [i64; 2], grain: i64) -> Result<Self> {
        if function.convention() != Convention::Plain {
            return Err(Error::unsupported("range in another convention than plain"));
        }
        if begin > end {
            return Err(Error::invalid(format!("range is [{begin}, {end}]; it ends before it begins")));
        }
        let grain = u64::try_from(grain).map_err(|_| {
            Error::invalid(format!(
                "grain is {grain}; give the iterations of one call, or 0 to leave it open"
            ))
        })?;
        Ok(Self { begin, end, grain })
    }

    /// Cuts the range for `threads` threads. The same range, grain and number give the same pieces.
    pub(crate) fn split(self, threads: usize) -> Split {
        let threads = threads.max(1) as u64;
        let items = self.end.wrapping_sub(self.begin).cast_unsigned();
        let grain = match self.grain {
            0 if threads == 1 => items.max(1),
            0 => items.div_ceil(threads.saturating_mul(PIECES)).max(1),
            grain => grain,
        };
        Split { begin: self.begin, items, grain, pieces: items.div_ceil(grain), threads }
    }
}

/// A range in pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    begin: i64,
    items: u64,
    grain: u64,
    pieces: u64,
    threads: u64,
}

impl Split {
    /// How many threads take part.
    pub(crate) fn hands(&self) -> usize {
        usize::try_from(self.pieces.clamp(1, self.threads)).unwrap_or(1)
    }

    /// Begin and end of piece `index`.
    fn piece(&self, index: u64) -> [i64; 2] {
        let from = index * self.grain;
        let to = self.items.min(from.saturating_add(self.grain));
        [from, to].map(|at| self.begin.wrapping_add(at.cast_signed()))
    }
}

/// A call that is spread over threads: each takes the next piece until there is none.
#[derive(Debug)]
pub(crate) struct Spread {
    function: Arc<Function>,
    /// The arguments, then `begin` and `end`.
    words: SmallVec<[Word; FEW]>,
    /// Arguments that are work-group memory, and how far one thread's is from the next one's.
    locals: SmallVec<[(usize, u64); 4]>,
    split: Split,
    joined: AtomicUsize,
    taken: AtomicU64,
    ended: AtomicU64,
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
    lock: Mutex<()>,
    all_ended: Condvar,
}

impl Spread {
    /// A call of `function` with the arguments `words` for every piece of `split`.
    pub(crate) fn new(
        function: &Arc<Function>,
        words: &[Word],
        locals: SmallVec<[(usize, u64); 4]>,
        split: Split,
    ) -> Self {
        let mut words = SmallVec::from_slice(words);
        words.extend(split.piece(0).map(bound));
        Self {
            function: Arc::clone(function),
            words,
            locals,
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
                move || spread.take_part()
            })?;
        }
        spread.take_part();
        spread.wait();
        spread.failure.lock().take().map_or(Ok(()), Err)
    }

    fn take_part(&self) {
        let hand = self.joined.fetch_add(1, Ordering::Relaxed) as u64;
        let mut words = self.words.clone();
        for &(index, bytes) in &self.locals {
            words[index].bits += hand * bytes;
        }
        let bounds = words.len() - 2;
        loop {
            let index = self.taken.fetch_add(1, Ordering::Relaxed);
            if index >= self.split.pieces {
                return;
            }
            words[bounds..].copy_from_slice(&self.split.piece(index).map(bound));
            if !self.failed.load(Ordering::Relaxed)
                && let Err(error) = catch_panic("range", || self.function.call(&words)).flatten()
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

    fn wait(&self) {
        let start = Instant::now();
        while start.elapsed() < SPIN {
            if self.has_ended() {
                return;
            }
            std::hint::spin_loop();
        }
        let mut guard = self.lock.lock();
        while !self.has_ended() {
            self.all_ended.wait(&mut guard);
        }
    }
}

fn bound(value: i64) -> Word {
    Word { bits: value.cast_unsigned(), class: Class::I64 }
}

#[cfg(test)]
mod tests;
