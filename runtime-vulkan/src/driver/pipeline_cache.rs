//! The driver's pipeline cache, loaded from a file and saved back to it.

use ash::vk;

use crate::cache::CacheFile;

/// Size of the header of a pipeline cache (`VkPipelineCacheHeaderVersionOne`): data no longer than this have no code.
const HEADER_BYTES: usize = 32;

/// A `VkPipelineCache`.
#[derive(Debug, Default)]
pub(super) struct PipelineCache {
    pub(super) handle: vk::PipelineCache,
    file: Option<CacheFile>,
    /// The file's data, as loaded.
    loaded: Vec<u8>,
}

impl PipelineCache {
    /// Creates a cache from the file's data, or an empty one where the driver rejects them.
    ///
    /// # Errors
    /// The driver's error for an empty cache.
    pub(super) fn open(device: &ash::Device, file: Option<CacheFile>) -> Result<Self, vk::Result> {
        let mut loaded = file.as_ref().map(CacheFile::read).unwrap_or_default();
        let create = |data: &[u8]| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: the device is open, and the data came from this driver, with their digest intact.
            unsafe { device.create_pipeline_cache(&info, None) }
        };
        let mut created = create(&loaded);
        if created.is_err() && !loaded.is_empty() {
            loaded.clear();
            created = create(&loaded);
        }
        Ok(Self { handle: created?, file, loaded })
    }

    /// Saves the data if they changed, and destroys the cache. No pipeline may be in creation.
    pub(super) fn close(&mut self, device: &ash::Device) {
        if let (Some(file), false) = (&self.file, self.handle == vk::PipelineCache::null()) {
            // SAFETY: the cache is alive. On an error there is nothing to save.
            let data = unsafe { device.get_pipeline_cache_data(self.handle) }.unwrap_or_default();
            if data.len() > HEADER_BYTES && data != self.loaded {
                file.write(&data);
            }
        }
        // SAFETY: ours; null is ignored.
        unsafe { device.destroy_pipeline_cache(self.handle, None) };
    }
}
