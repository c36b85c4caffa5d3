//! Deferred release of unused objects, for drivers whose release functions wait for every running kernel.
//!
//! In NVIDIA's driver, `clReleaseMemObject`, `clReleaseProgram` and `clSVMFree` return only when the context is idle. Meanwhile
//! they hold a lock that blocks launches on other threads (measured with driver 580.159.04: 280 ms behind a kernel of 300 ms). So
//! the objects are kept until no queue has work in flight, or until there are too many. Can go when a driver of NVIDIA releases
//! objects without waiting.

#![allow(unsafe_code, reason = "frees shared virtual memory through the driver")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::context::SharedContext;
use crate::driver::handle::{Memory, Owned, Program};
use crate::progress::Progress;

/// Maximum number of deferred objects. Beyond that, a release waits for the device.
const MAX_OBJECTS: usize = 1024;
/// Deferred buffers may take one part in this many of the device's memory. Beyond that, a release waits for the device.
const MEMORY_DIVISOR: u64 = 8;

/// An object whose release may be deferred.
#[derive(Debug)]
pub(crate) enum DeferredObject {
    /// A buffer, its shared virtual memory if any, and their size.
    Memory { object: Option<Owned<Memory>>, svm: *mut c_void, bytes: usize },
    /// A program without kernels.
    Program(Owned<Program>),
}

// SAFETY: the pointer is to memory that the object owns, which any thread may free.
unsafe impl Send for DeferredObject {}

impl DeferredObject {
    const fn bytes(&self) -> u64 {
        match self {
            Self::Memory { bytes, .. } => *bytes as u64,
            Self::Program(_) => 0,
        }
    }

    fn release(self, context: &SharedContext) {
        match self {
            Self::Memory { object, svm, .. } => {
                // The buffer first: it may use the shared virtual memory.
                drop(object);
                if !svm.is_null() {
                    context.free_svm(svm);
                }
            }
            Self::Program(program) => drop(program),
        }
    }
}

/// The deferred objects of a context, and the queues that must be idle before their release.
#[derive(Debug)]
pub(crate) struct DeferredRelease {
    context: Arc<SharedContext>,
    count: AtomicUsize,
    /// Bytes of the buffers in `objects`.
    bytes: AtomicU64,
    objects: Mutex<Vec<DeferredObject>>,
    queues: Mutex<Vec<Weak<Progress>>>,
}

impl DeferredRelease {
    pub(crate) fn new(context: Arc<SharedContext>) -> Self {
        let (objects, queues) = (Mutex::default(), Mutex::default());
        Self { context, count: AtomicUsize::new(0), bytes: AtomicU64::new(0), objects, queues }
    }

    /// Adds a queue that must be idle before a release.
    pub(crate) fn register_queue(&self, queue: &Arc<Progress>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    fn is_idle(&self) -> bool {
        let queues: Vec<_> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        queues.iter().all(|queue| queue.is_idle())
    }

    fn push(&self, object: DeferredObject) {
        let mut objects = self.objects.lock();
        self.bytes.fetch_add(object.bytes(), Ordering::Relaxed);
        objects.push(object);
        self.count.store(objects.len(), Ordering::Relaxed);
    }

    /// Releases an object that is no longer in use: now, or once the device is idle if the driver would wait.
    pub(crate) fn release(&self, object: DeferredObject) {
        if !self.context.caps.releases_wait {
            return object.release(&self.context);
        }
        self.push(object);
        if self.count.load(Ordering::Relaxed) > MAX_OBJECTS
            || self.bytes.load(Ordering::Relaxed) > self.context.caps.memory_bytes / MEMORY_DIVISOR
        {
            self.release_all();
        } else {
            self.release_if_idle();
        }
    }

    /// Releases the deferred objects if no queue has work in flight.
    #[inline]
    pub(crate) fn release_if_idle(&self) {
        if self.count.load(Ordering::Relaxed) != 0 && self.is_idle() {
            self.release_all();
        }
    }

    /// Releases the deferred objects if they may keep an allocation of `bytes` from succeeding.
    pub(crate) fn make_room(&self, bytes: usize) {
        let deferred = self.bytes.load(Ordering::Relaxed);
        let limit = self.context.caps.memory_bytes / MEMORY_DIVISOR;
        if deferred != 0 && bytes as u64 > limit.saturating_sub(deferred) {
            self.release_all();
        }
    }

    #[cold]
    fn release_all(&self) {
        let mut objects = self.objects.lock();
        self.count.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        let released = std::mem::take(&mut *objects);
        drop(objects);
        released.into_iter().for_each(|object| object.release(&self.context));
    }
}

impl Drop for DeferredRelease {
    fn drop(&mut self) {
        self.release_all();
    }
}
