//! The threads that help with parallel ranges, and where a device's threads run.
//!
//! `spawn` rather than `rayon::scope`, which waits for every closure: a range would wait for threads that another queue's range
//! keeps busy, where its own thread could do the work.

use std::sync::Arc;

use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use runtime_core::{Error, ErrorKind, Result};

use crate::groups::THREAD_STACK_BYTES;
use crate::platform;

/// A device's threads. They start with the first parallel range, and stay until the device and its queues are closed.
#[derive(Debug)]
pub(crate) struct Pool {
    name: String,
    /// The processors that they keep to; all if there are none here.
    cpus: Vec<usize>,
    /// How many there may be, with the one that asks.
    threads: usize,
    started: Mutex<Option<Arc<ThreadPool>>>,
}

impl Pool {
    /// A pool that keeps to `cpus`, as far as the program may use them, or to none in particular.
    pub(crate) fn new(name: String, cpus: &[usize]) -> Self {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if cpus.is_empty() { available } else { available.min(cpus.len()) };
        Self { name, cpus: cpus.to_vec(), threads, started: Mutex::new(None) }
    }

    /// A pool of a given size, whatever the machine has.
    #[cfg(test)]
    pub(crate) fn with_threads(name: String, threads: usize) -> Self {
        Self { threads, ..Self::new(name, &[]) }
    }

    /// How many threads work on a range at most, with the one that asks for it.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

    /// Whether its work may not run on the caller's thread.
    #[inline]
    pub(crate) fn is_pinned(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Keeps the calling thread to the pool's processors, where the system lets it.
    pub(crate) fn pin(&self) {
        if self.is_pinned() {
            platform::pin_thread(&self.cpus);
        }
    }

    /// Hands `count` pieces of work, each made by `work`, to the threads; does not wait for them.
    ///
    /// # Errors
    /// `OutOfResources` if the threads cannot start.
    pub(crate) fn invite<F: FnOnce() + Send + 'static>(
        &self,
        count: usize,
        work: impl Fn() -> F,
    ) -> Result<()> {
        let pool = self.start()?;
        (0..count).for_each(|_| pool.spawn(work()));
        Ok(())
    }

    fn start(&self) -> Result<Arc<ThreadPool>> {
        let mut started = self.started.lock();
        if let Some(pool) = &*started {
            return Ok(Arc::clone(pool));
        }
        let name = self.name.clone();
        // They keep to the processors of the queue's thread, which starts them.
        let builder = ThreadPoolBuilder::new()
            .num_threads(self.threads.saturating_sub(1).max(1))
            .stack_size(THREAD_STACK_BYTES)
            .thread_name(move |index| format!("{name}-{index}"));
        let pool = builder.build().map_err(|error| {
            let message =
                format!("cannot start the threads of a parallel range: {error}; close other queues");
            Error::new(ErrorKind::OutOfResources, message).with_source(error)
        })?;
        Ok(Arc::clone(started.insert(Arc::new(pool))))
    }
}
