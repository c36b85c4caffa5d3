//! A `VkQueue`, which several of the backend's queues may share.

use std::sync::atomic::{AtomicUsize, Ordering};

use ash::vk;
use parking_lot::{Mutex, MutexGuard};

use super::device_caps::QueueFamily;

/// A `VkQueue`, with the number of its users.
#[derive(Debug)]
pub(crate) struct SharedQueue {
    handle: Mutex<vk::Queue>,
    pub(crate) family: u32,
    users: AtomicUsize,
}

impl SharedQueue {
    pub(super) fn new(device: &ash::Device, family: QueueFamily, index: u32) -> Self {
        // SAFETY: the device was opened with this queue.
        let handle = unsafe { device.get_device_queue(family.index, index) };
        Self { handle: Mutex::new(handle), family: family.index, users: AtomicUsize::new(0) }
    }

    /// Blocks submissions by others.
    pub(super) fn lock(&self) -> MutexGuard<'_, vk::Queue> {
        self.handle.lock()
    }

    /// The number of users.
    pub(crate) fn users(&self) -> usize {
        self.users.load(Ordering::Relaxed)
    }

    /// Adds a user.
    pub(crate) fn acquire(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a user.
    pub(crate) fn release(&self) {
        self.users.fetch_sub(1, Ordering::Relaxed);
    }
}
