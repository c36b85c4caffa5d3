//! A `VkPipelineCache`: the driver's compiled code, as data.

use std::sync::Arc;

use ash::vk;
use runtime_core::Result;

use super::LogicalDevice;

/// A `VkPipelineCache`.
#[derive(Debug)]
pub(crate) struct PipelineCache {
    logical: Arc<LogicalDevice>,
    pub(super) handle: vk::PipelineCache,
}

impl PipelineCache {
    /// Creates a cache from data of this driver, or an empty one where the driver rejects them.
    ///
    /// # Errors
    /// The driver's error for an empty cache.
    pub(crate) fn new(logical: &Arc<LogicalDevice>, data: &[u8]) -> Result<Self> {
        let create = |data: &[u8]| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: the device is open, and the data have the header of its driver; whoever loaded native code guarantees
            // that the rest is the driver's too.
            unsafe { logical.handle.create_pipeline_cache(&info, None) }
        };
        let created = match create(data) {
            Err(_) if !data.is_empty() => create(&[]),
            other => other,
        };
        Ok(Self { handle: logical.check("vkCreatePipelineCache", created)?, logical: Arc::clone(logical) })
    }

    /// The data.
    ///
    /// # Errors
    /// The driver's error.
    pub(crate) fn data(&self) -> Result<Vec<u8>> {
        // SAFETY: the cache is alive.
        let data = unsafe { self.logical.handle.get_pipeline_cache_data(self.handle) };
        self.logical.check("vkGetPipelineCacheData", data)
    }
}

impl Drop for PipelineCache {
    fn drop(&mut self) {
        // SAFETY: ours, and no pipeline is in creation with it.
        unsafe { self.logical.handle.destroy_pipeline_cache(self.handle, None) };
    }
}
