//! Empties the caches before a sample, by touching more memory than they hold.

use std::hint::black_box;
use std::sync::Arc;

use super::FlushCache;
use crate::timeline::open_device::OpenDevice;
use crate::{DType, DeviceInfo, DeviceKind, HostArray, Placement, Queue, Result, Tensor};

/// What is flushed through where the last-level cache's size is unknown.
const DEFAULT_CACHE_BYTES: usize = 64 << 20;
/// No cache is larger, whatever a driver says: flushing is to cost no more memory than that.
const MAX_CACHE_BYTES: usize = 4 << 30;

/// Drives everything out of the caches, outside the timed window.
pub(crate) enum Flusher {
    Never,
    /// Streams through host memory.
    Host(HostArray),
    /// Fills device memory, each time with another byte.
    Device(Tensor, u8),
}

impl Flusher {
    pub(crate) fn new(device: &Arc<OpenDevice>, when: FlushCache) -> Result<Self> {
        let bytes = flush_bytes(&device.info);
        Ok(match (when, device.info.kind) {
            (FlushCache::Never, _) => Self::Never,
            (_, DeviceKind::Host) => Self::Host(HostArray::new(DType::U8, &[bytes])?),
            _ => Self::Device(Tensor::allocate(device, DType::U8, &[bytes], &Placement::default())?, 0),
        })
    }

    pub(crate) fn flush(&mut self, queue: &Queue) -> Result<()> {
        match self {
            Self::Never => Ok(()),
            Self::Host(memory) => {
                // One byte brings in a line, and to write it evicts others' lines in write-back caches too.
                for line in memory.bytes_mut().chunks_mut(64) {
                    line[0] = line[0].wrapping_add(1);
                }
                black_box(memory.bytes());
                Ok(())
            }
            Self::Device(memory, byte) => {
                *byte = byte.wrapping_add(1);
                queue.fill(memory, &[*byte])?.wait()
            }
        }
    }
}

/// Twice the last-level cache.
fn flush_bytes(info: &DeviceInfo) -> usize {
    let levels = ["l4_bytes", "l3_bytes", "l2_bytes"];
    let last = levels.iter().find_map(|level| info.properties.integer(level)).filter(|&bytes| bytes > 0);
    let believed =
        last.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes <= MAX_CACHE_BYTES);
    believed.map_or(DEFAULT_CACHE_BYTES, |bytes| 2 * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_last_cache_is_flushed() {
        let mut info = DeviceInfo::new(DeviceKind::Host, 0, "test");
        assert_eq!(flush_bytes(&info), 64 << 20);
        info.properties.push("l2_bytes", 1i64 << 20);
        assert_eq!(flush_bytes(&info), 2 << 20);
        info.properties.push("l3_bytes", 32i64 << 20);
        assert_eq!(flush_bytes(&info), 64 << 20);
        info.properties.push("l4_bytes", 1i64 << 50);
        assert_eq!(flush_bytes(&info), DEFAULT_CACHE_BYTES, "no such cache exists");
    }
}
