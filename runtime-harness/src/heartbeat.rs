//! Signs of life of an evaluation, for whoever limits how long it may take.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two of them.
const DISTANCE: Duration = Duration::from_millis(100);

/// Says from time to time that calls have returned.
pub(crate) struct Heartbeat {
    /// How long may pass without one.
    timeout: Duration,
    say: Box<dyn Fn() + Send + Sync>,
    last: Mutex<Option<Instant>>,
}

/// Calls have returned; `None`: nobody waits.
pub(crate) fn beat(heartbeat: Option<&Heartbeat>) {
    if let Some(heartbeat) = heartbeat {
        heartbeat.beat();
    }
}

/// How long calls may take that are waited for at once: half of what may pass without a sign of life.
pub(crate) fn max_window(heartbeat: Option<&Heartbeat>) -> Duration {
    heartbeat.map_or(Duration::MAX, |heartbeat| heartbeat.timeout / 2)
}

impl Heartbeat {
    pub(crate) fn new(timeout: Duration, say: impl Fn() + Send + Sync + 'static) -> Self {
        Self { timeout, say: Box::new(say), last: Mutex::new(None) }
    }

    fn beat(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= DISTANCE) {
            (self.say)();
            *last = Some(Instant::now());
        }
    }
}

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heartbeat").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn the_first_is_said_at_once_and_others_not_too_often() {
        let said = Arc::new(AtomicUsize::new(0));
        let heartbeat = Heartbeat::new(Duration::from_secs(3), {
            let said = Arc::clone(&said);
            move || {
                said.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert_eq!(
            (max_window(Some(&heartbeat)), max_window(None)),
            (Duration::from_millis(1500), Duration::MAX)
        );
        let begin = Instant::now();
        (0..1000).for_each(|_| heartbeat.beat());
        let said = said.load(Ordering::Relaxed) as u128;
        assert!((1..=1 + begin.elapsed().as_millis() / 100).contains(&said), "{said}");
    }
}
