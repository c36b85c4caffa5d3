//! The driver's own cache of what it has compiled, from a file and back to it.

use ash::vk;

use crate::cache::CacheFile;

/// Bytes that every driver's data begin with: fewer hold no code.
const HEADER_BYTES: usize = 32;

/// A cache of the driver.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) handle: vk::PipelineCache,
    file: Option<CacheFile>,
    /// What the file had.
    read: Vec<u8>,
}

impl Cache {
    /// Makes a cache of what is in the file, which the driver may find unfit.
    ///
    /// # Errors
    /// Whatever the driver says of an empty one.
    pub(super) fn open(device: &ash::Device, file: Option<CacheFile>) -> Result<Self, vk::Result> {
        let mut read = file.as_ref().map(CacheFile::read).unwrap_or_default();
        let make = |data: &[u8]| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: the device is open, and the data are what this driver has given, whole.
            unsafe { device.create_pipeline_cache(&info, None) }
        };
        let mut made = make(&read);
        if made.is_err() && !read.is_empty() {
            read.clear();
            made = make(&read);
        }
        Ok(Self { handle: made?, file, read })
    }

    /// Keeps what is new, and destroys the cache; no pipeline is being made any more.
    pub(super) fn close(&mut self, device: &ash::Device) {
        if let (Some(file), false) = (&self.file, self.handle == vk::PipelineCache::null()) {
            // SAFETY: the cache is alive. Without an answer there is nothing to keep.
            let data = unsafe { device.get_pipeline_cache_data(self.handle) }.unwrap_or_default();
            if data.len() > HEADER_BYTES && data != self.read {
                file.write(&data);
            }
        }
        // SAFETY: ours; null is ignored.
        unsafe { device.destroy_pipeline_cache(self.handle, None) };
    }
}
