//! A queue of the driver, which several of ours may share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ash::vk;
use parking_lot::{Mutex, MutexGuard};
use runtime_core::Result;
use smallvec::SmallVec;

use super::facts::Family;
use super::{Commands, Logical, Semaphore};

/// Batches that are handed over without an allocation.
const INLINE: usize = 8;

/// A queue of the driver.
#[derive(Debug)]
pub(crate) struct Lane {
    handle: Mutex<vk::Queue>,
    pub(crate) family: u32,
    users: AtomicUsize,
}

/// Work to hand over: what it waits for, the commands, and where it moves a semaphore to at its end.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) waits: &'a [(Arc<Semaphore>, u64)],
    pub(crate) commands: Option<&'a Commands>,
    pub(crate) signal: (&'a Semaphore, u64),
}

impl Lane {
    pub(super) fn new(device: &ash::Device, family: Family, index: u32) -> Self {
        // SAFETY: the device was opened with this queue.
        let handle = unsafe { device.get_device_queue(family.index, index) };
        Self { handle: Mutex::new(handle), family: family.index, users: AtomicUsize::new(0) }
    }

    /// Keeps others from handing anything over.
    pub(super) fn lock(&self) -> MutexGuard<'_, vk::Queue> {
        self.handle.lock()
    }

    /// How many use it.
    pub(crate) fn users(&self) -> usize {
        self.users.load(Ordering::Relaxed)
    }

    /// Notes one user more.
    pub(crate) fn join(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes one user less.
    pub(crate) fn leave(&self) {
        self.users.fetch_sub(1, Ordering::Relaxed);
    }

    /// Hands batches to the driver, all or none.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn submit(&self, logical: &Logical, batches: &[Batch<'_>]) -> Result<()> {
        let mut semaphores: SmallVec<[vk::Semaphore; INLINE]> = SmallVec::new();
        let mut values: SmallVec<[u64; INLINE]> = SmallVec::new();
        let mut stages: SmallVec<[vk::PipelineStageFlags; INLINE]> = SmallVec::new();
        let mut ends: SmallVec<[(vk::Semaphore, u64); INLINE]> = SmallVec::new();
        let mut commands: SmallVec<[vk::CommandBuffer; INLINE]> = SmallVec::new();
        for batch in batches {
            semaphores.extend(batch.waits.iter().map(|(semaphore, _)| semaphore.handle));
            values.extend(batch.waits.iter().map(|(_, value)| *value));
            ends.push((batch.signal.0.handle, batch.signal.1));
            commands.push(batch.commands.map_or(vk::CommandBuffer::null(), |commands| commands.handle));
        }
        stages.resize(semaphores.len(), vk::PipelineStageFlags::ALL_COMMANDS);
        let mut first = 0;
        let mut timelines: SmallVec<[vk::TimelineSemaphoreSubmitInfo<'_>; INLINE]> = SmallVec::new();
        for (batch, (_, value)) in batches.iter().zip(&ends) {
            let end = first + batch.waits.len();
            timelines.push(
                vk::TimelineSemaphoreSubmitInfo::default()
                    .wait_semaphore_values(&values[first..end])
                    .signal_semaphore_values(std::slice::from_ref(value)),
            );
            first = end;
        }
        first = 0;
        let mut infos: SmallVec<[vk::SubmitInfo<'_>; INLINE]> = SmallVec::new();
        for (index, (batch, timeline)) in batches.iter().zip(&mut timelines).enumerate() {
            let end = first + batch.waits.len();
            let buffers = &commands[index..index + usize::from(batch.commands.is_some())];
            infos.push(
                vk::SubmitInfo::default()
                    .wait_semaphores(&semaphores[first..end])
                    .wait_dst_stage_mask(&stages[first..end])
                    .command_buffers(buffers)
                    .signal_semaphores(std::slice::from_ref(&ends[index].0))
                    .push_next(timeline),
            );
            first = end;
        }
        let queue = self.handle.lock();
        logical.check_alive()?;
        // SAFETY: everything that is named is alive until the work has ended, and the queue is locked.
        let submitted = unsafe { logical.handle.queue_submit(*queue, &infos, vk::Fence::null()) };
        drop(queue);
        logical.check("vkQueueSubmit", submitted)
    }
}
