//! Pools of timestamp queries.

use std::sync::Arc;

use ash::vk;
use runtime_core::Result;

use super::{CommandBuffer, LogicalDevice};

/// A `VkQueryPool` of timestamps.
#[derive(Debug)]
pub(crate) struct QueryPool {
    logical: Arc<LogicalDevice>,
    handle: vk::QueryPool,
}

impl QueryPool {
    /// Queries in a pool.
    pub(crate) const COUNT: u32 = 256;

    /// Creates a pool with all queries reset.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn new(logical: &Arc<LogicalDevice>) -> Result<Self> {
        let info =
            vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(Self::COUNT);
        // SAFETY: the device is open.
        let created = unsafe { logical.handle.create_query_pool(&info, None) };
        let handle = logical.check("vkCreateQueryPool", created)?;
        let pool = Self { logical: Arc::clone(logical), handle };
        pool.reset(0, Self::COUNT);
        Ok(pool)
    }

    /// Resets queries, so that they can be written again.
    pub(crate) fn reset(&self, first: u32, count: u32) {
        // SAFETY: the queries exist, and no pending work uses them.
        unsafe { self.logical.handle.reset_query_pool(self.handle, first, count) };
    }

    /// Records a timestamp, taken once all earlier commands have completed.
    pub(crate) fn write(&self, commands: &CommandBuffer, index: u32) {
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: the command buffer is in the recording state, and the query was reset.
        unsafe { self.logical.handle.cmd_write_timestamp(commands.handle, stage, self.handle, index) };
    }

    /// A query's ticks; `None` before they are written.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub(crate) fn read(&self, index: u32) -> Result<Option<u64>> {
        let mut ticks = [0_u64];
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: the query exists.
        let result =
            unsafe { self.logical.handle.get_query_pool_results(self.handle, index, &mut ticks, flags) };
        match result {
            Ok(()) => Ok(Some(ticks[0])),
            Err(vk::Result::NOT_READY) => Ok(None),
            Err(code) => Err(self.logical.fail("vkGetQueryPoolResults", code)),
        }
    }
}

impl Drop for QueryPool {
    fn drop(&mut self) {
        // SAFETY: ours, and no pending work uses it.
        unsafe { self.logical.handle.destroy_query_pool(self.handle, None) };
    }
}
