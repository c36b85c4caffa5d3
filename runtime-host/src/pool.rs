//! The thread pool of a device, which helps with parallel loops, and the processors its threads are pinned to.
//!
//! It uses `spawn` rather than `rayon::scope`, which waits for every closure: a parallel loop would wait for threads that
//! are busy with the loop of another queue, while its own thread could do the work.

use std::sync::Arc;

use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use runtime_core::{Error, ErrorKind, Result};

use crate::platform;

/// Stack size of the backend's own threads.
pub(crate) const THREAD_STACK_BYTES: usize = 4 << 20;

/// A device's thread pool. It starts at the first parallel loop and ends when the device and its queues are closed.
#[derive(Debug)]
pub(crate) struct Pool {
    name: String,
    /// The processors that the threads are pinned to; if empty, they are not pinned.
    cpus: Vec<usize>,
    /// The maximum number of threads of a loop, including the caller's.
    threads: usize,
    started: Mutex<Option<Arc<ThreadPool>>>,
}

impl Pool {
    /// A pool pinned to `cpus`, as far as the process may use them; not pinned if `cpus` is empty.
    pub(crate) fn new(name: String, cpus: &[usize]) -> Self {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if cpus.is_empty() { available } else { available.min(cpus.len()) };
        Self { name, cpus: cpus.to_vec(), threads, started: Mutex::new(None) }
    }

    /// The same pool for loops that run on their caller's thread only.
    pub(crate) const fn without_helpers(mut self) -> Self {
        self.threads = 1;
        self
    }

    /// A pool of a given size, whatever the number of processors.
    #[cfg(test)]
    pub(crate) fn with_threads(name: String, threads: usize) -> Self {
        Self { threads, ..Self::new(name, &[]) }
    }

    /// The maximum number of threads that run a loop, including the caller's.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

    /// Whether the threads are pinned, so that work must not run on the caller's thread.
    #[inline]
    pub(crate) fn is_pinned(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Pins the calling thread to the pool's processors, if the system allows it.
    pub(crate) fn pin(&self) {
        if self.is_pinned() {
            platform::pin_thread(&self.cpus);
        }
    }

    /// Submits `count` closures, each made by `work`, to the pool; does not wait for them.
    ///
    /// # Errors
    /// `OutOfResources` if the threads cannot start.
    pub(crate) fn spawn_helpers<F: FnOnce() + Send + 'static>(
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
        // They inherit the affinity of the queue's thread, which starts them.
        let builder = ThreadPoolBuilder::new()
            .num_threads(self.threads.saturating_sub(1).max(1))
            .stack_size(THREAD_STACK_BYTES)
            .thread_name(move |index| format!("{name}-{index}"));
        let pool = builder.build().map_err(|error| {
            let message = format!("cannot start the threads of a parallel loop: {error}; close other queues");
            Error::new(ErrorKind::OutOfResources, message).with_source(error)
        })?;
        Ok(Arc::clone(started.insert(Arc::new(pool))))
    }
}
