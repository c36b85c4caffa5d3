//! Submissions of command buffers to a `VkQueue`.

use std::sync::Arc;

use ash::vk;
use runtime_core::Result;
use smallvec::SmallVec;

use super::{CommandBuffer, LogicalDevice, Semaphore, SharedQueue};

/// Submissions that one call makes without an allocation.
const INLINE: usize = 8;

/// One `VkSubmitInfo`: the semaphore values it waits for, its commands, and the value that it signals at its end.
#[derive(Debug)]
pub(crate) struct Submission<'a> {
    pub(crate) waits: &'a [(Arc<Semaphore>, u64)],
    pub(crate) commands: Option<&'a CommandBuffer>,
    pub(crate) signal: (&'a Semaphore, u64),
}

impl SharedQueue {
    /// Submits all or none.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn submit(&self, logical: &LogicalDevice, submissions: &[Submission<'_>]) -> Result<()> {
        let mut wait_semaphores: SmallVec<[vk::Semaphore; INLINE]> = SmallVec::new();
        let mut wait_values: SmallVec<[u64; INLINE]> = SmallVec::new();
        let mut wait_stages: SmallVec<[vk::PipelineStageFlags; INLINE]> = SmallVec::new();
        let mut signals: SmallVec<[(vk::Semaphore, u64); INLINE]> = SmallVec::new();
        let mut commands: SmallVec<[vk::CommandBuffer; INLINE]> = SmallVec::new();
        for submission in submissions {
            wait_semaphores.extend(submission.waits.iter().map(|(semaphore, _)| semaphore.handle));
            wait_values.extend(submission.waits.iter().map(|(_, value)| *value));
            signals.push((submission.signal.0.handle, submission.signal.1));
            commands.push(submission.commands.map_or(vk::CommandBuffer::null(), |commands| commands.handle));
        }
        wait_stages.resize(wait_semaphores.len(), vk::PipelineStageFlags::ALL_COMMANDS);
        let mut first = 0;
        let mut timelines: SmallVec<[vk::TimelineSemaphoreSubmitInfo<'_>; INLINE]> = SmallVec::new();
        for (submission, (_, value)) in submissions.iter().zip(&signals) {
            let end = first + submission.waits.len();
            timelines.push(
                vk::TimelineSemaphoreSubmitInfo::default()
                    .wait_semaphore_values(&wait_values[first..end])
                    .signal_semaphore_values(std::slice::from_ref(value)),
            );
            first = end;
        }
        first = 0;
        let mut infos: SmallVec<[vk::SubmitInfo<'_>; INLINE]> = SmallVec::new();
        for (index, (submission, timeline)) in submissions.iter().zip(&mut timelines).enumerate() {
            let end = first + submission.waits.len();
            let buffers = &commands[index..index + usize::from(submission.commands.is_some())];
            infos.push(
                vk::SubmitInfo::default()
                    .wait_semaphores(&wait_semaphores[first..end])
                    .wait_dst_stage_mask(&wait_stages[first..end])
                    .command_buffers(buffers)
                    .signal_semaphores(std::slice::from_ref(&signals[index].0))
                    .push_next(timeline),
            );
            first = end;
        }
        let queue = self.lock();
        let _one_at_a_time = logical.lock_submitting();
        logical.check_alive()?;
        // SAFETY: every handle stays alive until the work has completed, and the queue is locked.
        let submitted = unsafe { logical.handle.queue_submit(*queue, &infos, vk::Fence::null()) };
        drop(queue);
        logical.check("vkQueueSubmit", submitted)
    }
}
