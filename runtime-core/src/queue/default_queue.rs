//! The default queue of a device, shared by all who have no reason to open one of their own.

use std::sync::Arc;

use crate::timeline::open_device::OpenDevice;
use crate::{Queue, QueueOptions, Result};

/// Under which the device knows its default queue.
const KEY: [u8; 32] = *b"the default queue of this device";

impl Queue {
    /// The default queue of `device`, opened if nobody holds it. One that has failed is replaced.
    ///
    /// # Errors
    /// As [`CommonRuntime::open_queue`](crate::CommonRuntime::open_queue).
    pub(crate) fn default_of(device: &Arc<OpenDevice>) -> Result<Arc<Self>> {
        let is_healthy = |queue: &Arc<Self>| queue.timeline.check_healthy().is_ok();
        if let Some(queue) = device.loaded::<Self>(&KEY).filter(is_healthy) {
            return Ok(queue);
        }
        let new = Arc::new(Self::open(device, &QueueOptions::default())?);
        Ok(device.share_loaded(KEY, new, is_healthy))
    }
}
