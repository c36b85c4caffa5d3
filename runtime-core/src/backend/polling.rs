//! How a thread polls for work that ends soon.

use std::time::{Duration, Instant};

/// How long a wait spins.
const SPIN_TIME: Duration = Duration::from_micros(50);
/// How long a wait polls before it sleeps.
pub const POLL_TIME: Duration = Duration::from_millis(2);
/// Longest sleep between two polls.
const MAX_SLEEP: Duration = Duration::from_micros(200);
/// Polls between two looks at the clock.
const POLLS: u32 = 32;

/// Lets other threads run between two polls: the longer the wait has lasted (`elapsed`), the longer. Without
/// `spins` it yields from the start; for work that needs the processor itself.
pub fn backoff(elapsed: Duration, spins: bool) {
    if elapsed < SPIN_TIME && spins {
        // Once: it takes 40 ns and more, and what is awaited is often only a few microseconds away.
        std::hint::spin_loop();
    } else if elapsed < POLL_TIME {
        std::thread::yield_now();
    } else {
        std::thread::sleep((elapsed / 32).min(MAX_SLEEP));
    }
}

/// Polls without a pause until `has_ended` returns true, for about `limit` at most; returns whether it has.
pub fn spin_until(limit: Duration, mut has_ended: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        for _ in 0..POLLS {
            if has_ended() {
                return true;
            }
            std::hint::spin_loop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_ends_with_the_condition_or_the_limit() {
        let mut polls = 0;
        let mut ends_after = |count, limit| {
            polls = 0;
            let ended = spin_until(limit, || {
                polls += 1;
                polls > count
            });
            (ended, polls)
        };
        assert_eq!(ends_after(100, Duration::from_secs(30)), (true, 101));
        assert_eq!(ends_after(0, Duration::ZERO), (false, 0));
        assert!(!ends_after(u64::MAX, Duration::from_micros(1)).0);
    }
}
