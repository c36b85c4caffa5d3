//! What was dropped while the device may still use it: freed once the work has ended.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::abi::Handle;
use crate::timeline::Timeline;
use crate::timeline::open_device::OpenDevice;

/// What owns memory that a buffer only borrows. Dropped, once, when no work uses the memory any more and the backend
/// has given it back, on whatever thread finds that, with no lock held. Leaked where the device must be leaked.
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

/// A backend object that nobody holds any more.
#[derive(Debug)]
pub(crate) enum Resource {
    /// A buffer, and who owns its memory if the backend does not.
    Buffer(Handle, Option<ExternalOwner>),
    Kernel(Handle),
    Module(Handle),
    Graph(Handle),
    /// Nothing of its own: an abandoned queue, which the device's list holds.
    Queue,
}

#[derive(Debug)]
struct Deferred {
    remains: Resource,
    until: Vec<(Arc<Timeline>, u64)>,
}

/// The list of a device. In the order of the drops, so that a kernel is released before its module.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct DeferredFree {
    /// Before the rest, since every launch reads it.
    count: AtomicUsize,
    list: Mutex<Vec<Deferred>>,
    /// Held while what was taken off the list is freed.
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

    /// Frees `remains` now if nothing uses it, else once `until` has ended. Never waits.
    pub(crate) fn defer(&self, device: &OpenDevice, remains: Resource, until: Vec<(Arc<Timeline>, u64)>) {
        if device.must_leak() {
            return std::mem::forget(remains);
        }
        let mut list = self.list.lock();
        // A queue is still known to the handle that is being dropped: it always waits for the next look. So does a
        // module while another thread may be releasing its kernels.
        let later = match remains {
            Resource::Queue => true,
            Resource::Module(_) => self.freeing.is_locked(),
            _ => false,
        };
        if until.is_empty() && list.is_empty() && !later {
            drop(list);
            return release(device, remains);
        }
        let owned = matches!(remains, Resource::Buffer(_, Some(_)));
        list.push(Deferred { remains, until });
        self.count.store(list.len(), Ordering::Relaxed);
        drop(list);
        if owned {
            device.waiter.reap_later(device.weak());
        }
    }

    /// Whether somebody waits to have memory back.
    pub(crate) fn has_owners(&self) -> bool {
        let owned = |grave: &Deferred| matches!(grave.remains, Resource::Buffer(_, Some(_)));
        !self.is_empty() && self.list.lock().iter().any(owned)
    }

    /// Frees whatever has ended, in order of the drops.
    pub(crate) fn reap(&self, device: &OpenDevice) {
        // Somebody else is at it: enough.
        let Some(_freeing) = self.freeing.try_lock() else { return };
        let Some(mut list) = self.list.try_lock() else { return };
        let mut kept = false;
        let ended = list.extract_if(.., |grave| {
            grave.until.retain(|(timeline, ticket)| {
                // A lost device has let go of everything, but queues of others may still use its memory.
                let own = std::ptr::eq(timeline.device.as_ptr(), device);
                let over = (own && device.is_lost()) || is_over(timeline, *ticket);
                !over
            });
            // A module goes after its kernels, which were dropped before it.
            let over = grave.until.is_empty() && !(kept && matches!(grave.remains, Resource::Module(_)));
            kept |= !over;
            over
        });
        let ended: Vec<_> = ended.map(|grave| grave.remains).collect();
        self.count.store(list.len(), Ordering::Relaxed);
        drop(list);
        ended.into_iter().for_each(|remains| release(device, remains));
    }

    /// Forgets everything: the device is leaked, and what is in flight may still use what others own.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(std::mem::take(self.list.get_mut()));
    }
}

fn is_over(timeline: &Arc<Timeline>, ticket: u64) -> bool {
    if let Some(_open) = timeline.device.upgrade()
        && !timeline.has_ended(ticket)
    {
        let _ = timeline.poll();
    }
    !timeline.maybe_running(ticket)
}

fn release(device: &OpenDevice, remains: Resource) {
    let serial = device.serial.as_ref().map(|serial| serial.lock());
    match remains {
        Resource::Buffer(buffer, owner) => {
            // SAFETY: a buffer that nothing uses any more.
            unsafe { (device.calls.memory.free)(device.handle, buffer, std::ptr::null_mut()) };
            drop(serial);
            // Somebody else's code, which may call this device again.
            drop(owner);
        }
        // SAFETY: an owned kernel that nothing uses any more.
        Resource::Kernel(kernel) => unsafe { (device.calls.module.release_kernel)(kernel) },
        // SAFETY: an owned module whose kernels were released before it.
        Resource::Module(module) => unsafe { (device.calls.module.unload)(module) },
        // SAFETY: an owned graph that nothing uses any more.
        Resource::Graph(graph) => unsafe { (device.calls.graph.close)(graph) },
        Resource::Queue => {
            drop(serial);
            device.reap_timelines();
        }
    }
}
