//! Places that the device writes timestamps to.

use std::sync::Arc;

use ash::vk;
use runtime_core::Result;

use super::{Commands, Logical};

/// A row of places for timestamps.
#[derive(Debug)]
pub(crate) struct Stamps {
    logical: Arc<Logical>,
    handle: vk::QueryPool,
}

impl Stamps {
    /// Places in a row.
    pub(crate) const COUNT: u32 = 256;

    /// Makes a row, ready to be written.
    ///
    /// # Errors
    /// Whatever the driver says.
    pub(crate) fn new(logical: &Arc<Logical>) -> Result<Self> {
        let info =
            vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(Self::COUNT);
        // SAFETY: the device is open.
        let made = unsafe { logical.handle.create_query_pool(&info, None) };
        let handle = logical.check("vkCreateQueryPool", made)?;
        let stamps = Self { logical: Arc::clone(logical), handle };
        stamps.clear(0, Self::COUNT);
        Ok(stamps)
    }

    /// Makes places ready to be written again.
    pub(crate) fn clear(&self, first: u32, count: u32) {
        // SAFETY: the places exist, and no work that uses them is under way.
        unsafe { self.logical.handle.reset_query_pool(self.handle, first, count) };
    }

    /// Records the writing of a place, after all that was recorded before.
    pub(crate) fn write(&self, commands: &Commands, index: u32) {
        let stage = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
        // SAFETY: the commands are being recorded, and the place was cleared.
        unsafe { self.logical.handle.cmd_write_timestamp(commands.handle, stage, self.handle, index) };
    }

    /// The ticks that a place holds; `None` before it is written.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub(crate) fn read(&self, index: u32) -> Result<Option<u64>> {
        let mut ticks = [0_u64];
        let flags = vk::QueryResultFlags::TYPE_64;
        // SAFETY: the place exists.
        let told =
            unsafe { self.logical.handle.get_query_pool_results(self.handle, index, &mut ticks, flags) };
        match told {
            Ok(()) => Ok(Some(ticks[0])),
            Err(vk::Result::NOT_READY) => Ok(None),
            Err(code) => Err(self.logical.fail("vkGetQueryPoolResults", code)),
        }
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // SAFETY: ours, and used by nobody any more.
        unsafe { self.logical.handle.destroy_query_pool(self.handle, None) };
    }
}
