//! The driver's objects, for work that the runtime does not submit.

use std::sync::Arc;

use ash::vk::{self, Handle};
use runtime_core::Result;
use runtime_core::backend::NativeHandle;

use super::{LogicalDevice, Memory, Semaphore, SharedQueue};

impl LogicalDevice {
    /// The objects that stand for the device, and the function that finds all others.
    pub(crate) fn native(&self) -> Vec<NativeHandle> {
        let find = self.instance.entry.static_fn().get_instance_proc_addr;
        vec![
            NativeHandle::number("VkInstance", self.instance.handle.handle().as_raw()),
            NativeHandle::number("VkPhysicalDevice", self.physical.0.as_raw()),
            NativeHandle::number("VkDevice", self.handle.handle().as_raw()),
            NativeHandle::pointer("vkGetInstanceProcAddr", find as *mut ()),
        ]
    }
}

impl Memory {
    /// The buffer, and the offset of its first byte.
    pub(crate) fn native(&self) -> (Vec<NativeHandle>, u64) {
        (vec![NativeHandle::number("VkBuffer", self.buffer.as_raw())], self.base_offset)
    }
}

impl SharedQueue {
    /// Makes everything that is submitted from now on wait for semaphore values, and lends the queue to `work`.
    ///
    /// # Errors
    /// The driver's error; `work` is then not called.
    pub(crate) fn lend(
        &self,
        logical: &LogicalDevice,
        waits: &[(Arc<Semaphore>, u64)],
        work: &mut dyn FnMut(&[NativeHandle]),
    ) -> Result<()> {
        let semaphores: Vec<_> = waits.iter().map(|(semaphore, _)| semaphore.handle).collect();
        let values: Vec<_> = waits.iter().map(|(_, value)| *value).collect();
        let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&values);
        // A wait comes before all that is submitted later, also in other submissions.
        let wait = vk::SubmitInfo::default()
            .wait_semaphores(&semaphores)
            .wait_dst_stage_mask(&stages)
            .push_next(&mut timeline);
        let mut handles = logical.native();
        handles.push(NativeHandle::number("queue_family_index", u64::from(self.family)));
        let queue = self.lock();
        let _one_at_a_time = logical.lock_submitting();
        logical.check_alive()?;
        // SAFETY: every semaphore stays alive until the work has completed, and the queue is locked.
        let submitted = unsafe { logical.handle.queue_submit(*queue, &[wait], vk::Fence::null()) };
        logical.check("vkQueueSubmit", submitted)?;
        handles.push(NativeHandle::number("VkQueue", queue.as_raw()));
        work(&handles);
        Ok(())
    }
}
