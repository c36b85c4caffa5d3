//! Threads that wait for something, so that a test goes on once they do, instead of after a time that should be enough.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// No thread takes this long until it waits.
const DEADLINE: Duration = Duration::from_secs(60);
/// A thread that is seen asleep this many times waits for more than its turn.
const SIGHTINGS: u32 = 3;
const INTERVAL: Duration = Duration::from_millis(1);
/// Miri runs all threads on one of the system's, whose state says nothing.
const MIRI_PAUSE: Duration = Duration::from_millis(100);

/// Runs `work` on a thread of its own, and returns once it sleeps, or has ended: then it waits for what it is to wait for.
///
/// # Panics
/// If it does not fall asleep.
pub fn spawn_until_asleep<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let (sender, receiver) = mpsc::channel();
    let thread = scope.spawn(move || {
        let _ = sender.send(Sleeper::current());
        work()
    });
    if let Ok(sleeper) = receiver.recv() {
        sleeper.wait_until_asleep(|| thread.is_finished());
    }
    thread
}

/// A thread of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeper(PathBuf);

impl Sleeper {
    /// The calling thread.
    #[must_use]
    pub fn current() -> Self {
        Self(
            std::fs::read_link("/proc/thread-self")
                .map_or_else(|_| PathBuf::new(), |task| PathBuf::from("/proc").join(task).join("stat")),
        )
    }

    /// Returns once the thread sleeps, or `has_ended`.
    ///
    /// # Panics
    /// If it does neither.
    pub fn wait_until_asleep(&self, has_ended: impl Fn() -> bool) {
        if cfg!(miri) {
            return std::thread::sleep(MIRI_PAUSE);
        }
        let (begin, mut sightings) = (Instant::now(), 0);
        while sightings < SIGHTINGS && !has_ended() {
            assert!(begin.elapsed() < DEADLINE, "{} does not fall asleep", self.0.display());
            std::thread::sleep(INTERVAL);
            sightings += u32::from(self.is_asleep());
        }
    }

    /// Whether it sleeps now: the state follows the name, which is in parentheses.
    fn is_asleep(&self) -> bool {
        let stat = std::fs::read_to_string(&self.0).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_thread_is_asleep_once_it_waits() {
        let (barrier, may_wait) = (&Barrier::new(2), &AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            scope.spawn(move || {
                sender.send(Sleeper::current()).unwrap();
                while !may_wait.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                barrier.wait();
            });
            let sleeper = receiver.recv().unwrap();
            assert!((0..10).any(|_| !sleeper.is_asleep()), "it runs");
            may_wait.store(true, Ordering::Relaxed);
            sleeper.wait_until_asleep(|| false);
            let second = spawn_until_asleep(scope, || 7);
            assert_eq!(second.join().unwrap(), 7, "one that ends is not waited for");
            barrier.wait();
        });
    }
}
