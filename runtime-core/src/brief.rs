//! A lock for what is held during one submission and no longer, as a rule: releasing it is a plain store.
//!
//! A launch takes one for each of its buffers, and one for its queue. Releasing a lock that wakes sleepers is an atomic
//! exchange, which costs as much as taking it. Here whoever waits looks again and again, and sleeps in between where that
//! lasts longer than a submission does.

#![allow(unsafe_code, reason = "a lock's unsafe trait")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::lock_api::{GuardNoSend, Mutex, RawMutex};

/// How long a waiter looks before it sleeps: several submissions, since between two of one thread it is free for moments.
const LOOKING: Duration = Duration::from_micros(20);
/// Looks between two looks at the clock.
const LOOKS: usize = 16;
/// The first sleep, and the longest.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

const FREE: usize = 0;
const TAKEN: usize = 1;

/// Protects a value by a [`RawBrief`].
pub(crate) type Brief<T> = Mutex<RawBrief, T>;

/// The lock alone; a word, so that it lies before what it protects.
#[derive(Debug)]
pub(crate) struct RawBrief(AtomicUsize);

// SAFETY: whoever swaps in `TAKEN` for `FREE` is alone until it stores `FREE`.
unsafe impl RawMutex for RawBrief {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait wants a constant")]
    const INIT: Self = Self(AtomicUsize::new(FREE));
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.wait();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.swap(TAKEN, Ordering::Acquire) == FREE
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.0.store(FREE, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) == TAKEN
    }
}

impl RawBrief {
    #[cold]
    fn wait(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let begin = Instant::now();
            while begin.elapsed() < LOOKING {
                for _ in 0..LOOKS {
                    if !self.is_locked() && self.try_lock() {
                        return;
                    }
                    std::hint::spin_loop();
                }
                // Whoever holds it may be waiting for this processor.
                std::thread::yield_now();
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_is_inside() {
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let count = Brief::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let mut count = count.lock();
                        let seen = *count;
                        std::hint::black_box(&seen);
                        *count = seen + 1;
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 4 * rounds);
    }

    #[test]
    fn who_waits_gets_in_beside_a_thread_that_takes_it_all_the_time() {
        let (lock, done) = (Brief::new(()), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) == 0 {
                    let held = lock.lock();
                    std::thread::yield_now();
                    drop(held);
                }
            });
            for _ in 0..if cfg!(miri) { 3 } else { 100 } {
                drop(lock.lock());
            }
            done.store(1, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_long_hold_is_slept_through() {
        let lock = Brief::new(1);
        std::thread::scope(|scope| {
            let held = lock.lock();
            let waiter = scope.spawn(|| *lock.lock());
            std::thread::sleep(Duration::from_millis(5));
            assert!(lock.is_locked() && lock.try_lock().is_none());
            drop(held);
            assert_eq!(waiter.join().unwrap(), 1);
        });
        assert!(!lock.is_locked());
    }
}
