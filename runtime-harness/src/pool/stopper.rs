//! Ending a pool's workers from another thread than that of the pool.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::task_queue::TaskQueue;

const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Ends the workers of a [`Pool`](super::Pool), for a program that a signal ends.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<State>);

#[derive(Debug, Default)]
struct State {
    queues: Mutex<Vec<Weak<TaskQueue>>>,
    running: AtomicUsize,
}

impl Stopper {
    /// Asks all workers to end, with all that descends from them, and waits until they have. No candidate gets a further
    /// row. Returns `false` if workers are left after `timeout`.
    #[must_use]
    pub fn stop(&self, timeout: Duration) -> bool {
        let begin = Instant::now();
        for queue in self.0.queues.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            queue.upgrade().iter().for_each(|queue| queue.stop());
        }
        while self.0.running.load(Ordering::SeqCst) > 0 {
            if begin.elapsed() > timeout {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        true
    }

    pub(super) fn add(&self, queue: &Arc<TaskQueue>) {
        let mut queues = self.0.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }
}

/// A thread that has a worker, until it is dropped.
#[derive(Debug)]
pub(super) struct Running(Stopper);

impl Running {
    pub(super) fn new(stopper: &Stopper) -> Self {
        stopper.0.running.fetch_add(1, Ordering::SeqCst);
        Self(stopper.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}
