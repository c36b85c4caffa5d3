//! Deferred freeing: resources that are dropped while in use are freed once the work on them has ended.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::abi::Handle;
use crate::timeline::Timeline;
use crate::timeline::device_state::DeviceState;

/// The owner of memory that a buffer only wraps. It is dropped once, after all work on the memory has ended and the backend
/// has released it, on the thread that notices, with no lock held. It is leaked where the device must be leaked.
pub(crate) struct ExternalOwner(Box<dyn Send>);

impl ExternalOwner {
    pub(crate) fn new(owner: impl Send + 'static) -> Self {
        Self(Box::new(owner))
    }
}

impl fmt::Debug for ExternalOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalOwner({:p})", self.0)
    }
}

/// A backend object without any reference left.
#[derive(Debug)]
pub(crate) enum Resource {
    /// A buffer, and the owner of its memory if that is not the backend.
    Buffer(Handle, Option<ExternalOwner>),
    /// Memory of the program that a transfer uses.
    HostMemory(ExternalOwner),
    Kernel(Handle),
    Module(Handle),
    Graph(Handle),
    /// A dropped queue. The device holds it in its list.
    Queue,
}

impl Resource {
    /// Whether it is memory of an external owner that the device must release.
    pub(super) const fn has_owner(&self) -> bool {
        matches!(self, Self::Buffer(_, Some(_)))
    }
}

#[derive(Debug)]
struct Deferred {
    resource: Resource,
    until: Vec<(Arc<Timeline>, u64)>,
}

/// The dropped resources of a device, in the order of the drops, so that a kernel is released before its module.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct DeferredFree {
    /// Length of `list`; first, since every launch reads it.
    count: AtomicUsize,
    list: Mutex<Vec<Deferred>>,
    /// Held while resources taken off the list are freed.
    freeing: Mutex<()>,
}

// SAFETY: the handles are backend objects that any thread may free.
unsafe impl Send for DeferredFree {}
// SAFETY: as above; the list is locked.
unsafe impl Sync for DeferredFree {}

impl DeferredFree {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Frees `resource` now if nothing uses it, otherwise once `until` has ended, and returns whether it did. Never waits.
    pub(super) fn defer(
        &self,
        device: &DeviceState,
        resource: Resource,
        until: Vec<(Arc<Timeline>, u64)>,
    ) -> bool {
        if device.must_leak() {
            std::mem::forget(resource);
            return true;
        }
        let mut list = self.list.lock();
        // The handle being dropped still refers to its queue, so a queue always waits for the next reaping. So does a module
        // while another thread may be releasing its kernels.
        let later = match resource {
            Resource::Queue => true,
            Resource::Module(_) => self.freeing.is_locked(),
            _ => false,
        };
        if until.is_empty() && list.is_empty() && !later {
            drop(list);
            release(device, resource);
            return true;
        }
        list.push(Deferred { resource, until });
        self.count.store(list.len(), Ordering::Relaxed);
        false
    }

    /// Whether memory of an external owner is waiting to be released.
    pub(crate) fn has_owners(&self) -> bool {
        !self.is_empty() && self.list.lock().iter().any(|deferred| deferred.resource.has_owner())
    }

    /// Frees the resources whose work has ended, in the order of the drops, after queues among them: those are the device's, and
    /// `close_queues` closes them.
    pub(super) fn reap(&self, device: &DeviceState, close_queues: impl FnOnce()) {
        if device.must_leak() {
            return;
        }
        // Another thread is reaping.
        let Some(_freeing) = self.freeing.try_lock() else { return };
        let Some(mut list) = self.list.try_lock() else { return };
        let mut kept = false;
        let ended = list.extract_if(.., |deferred| {
            deferred.until.retain(|(timeline, ticket)| {
                // A lost device uses nothing any more, but queues of other devices may still use its memory.
                let own = timeline.is_of(device);
                let over = (own && device.is_lost()) || is_over(timeline, *ticket);
                !over
            });
            // Kernels are dropped before their module, and must be released before it.
            let over =
                deferred.until.is_empty() && !(kept && matches!(deferred.resource, Resource::Module(_)));
            kept |= !over;
            over
        });
        let ended: Vec<_> = ended.map(|deferred| deferred.resource).collect();
        self.count.store(list.len(), Ordering::Relaxed);
        drop(list);
        // First: an external owner is foreign code, whose panic would leave the queues open.
        if ended.iter().any(|resource| matches!(resource, Resource::Queue)) {
            close_queues();
        }
        ended.into_iter().for_each(|resource| release(device, resource));
    }

    /// Leaks everything: work in flight may still use memory of external owners.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(self.list.get_mut()));
    }
}

fn is_over(timeline: &Arc<Timeline>, ticket: u64) -> bool {
    if let Some(_open) = timeline.device.upgrade()
        && !timeline.has_ended(ticket)
    {
        let _ = timeline.poll_queue();
    }
    !timeline.maybe_running(ticket)
}

fn release(device: &DeviceState, resource: Resource) {
    let serial = device.lock_serial();
    match resource {
        Resource::Buffer(buffer, owner) => {
            // SAFETY: a buffer that nothing uses any more.
            unsafe { (device.calls.memory.free)(device.handle, buffer, std::ptr::null_mut()) };
            drop(serial);
            // This runs foreign code, which may call this device again.
            drop(owner);
        }
        // SAFETY: an owned kernel, which nothing uses any more.
        Resource::Kernel(kernel) => unsafe { (device.calls.module.release_kernel)(kernel) },
        // SAFETY: an owned module whose kernels were released before it.
        Resource::Module(module) => unsafe { (device.calls.module.unload)(module) },
        // SAFETY: an owned graph that nothing uses any more.
        Resource::Graph(graph) => unsafe { (device.calls.graph.close)(graph) },
        Resource::HostMemory(owner) => {
            drop(serial);
            drop(owner);
        }
        Resource::Queue => {}
    }
}
