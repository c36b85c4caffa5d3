//! Flushes the caches before a sample, by accessing more memory than they hold.

use std::hint::black_box;
use std::sync::Arc;

use super::{Clock, FlushCache};
use crate::timeline::open_device::OpenDevice;
use crate::{DType, DeviceInfo, DeviceKind, HostArray, Placement, Queue, Result, Tensor};

/// Bytes to access if the size of the last-level cache is unknown.
const DEFAULT_CACHE_BYTES: usize = 64 << 20;
/// Upper bound on a reported cache size, so that a wrong report does not cost more memory than this.
const MAX_CACHE_BYTES: usize = 4 << 30;

/// Evicts everything from the caches, outside the timed window.
pub(crate) enum Flusher {
    Never,
    Host(HostCaches),
    /// Fills device memory, with a different byte each time.
    Device(Tensor, u8),
}

impl Flusher {
    pub(crate) fn new(device: &Arc<OpenDevice>, when: FlushCache) -> Result<Self> {
        let bytes = flush_bytes(&device.info);
        Ok(match (when, device.info.kind) {
            (FlushCache::Never, _) => Self::Never,
            (_, DeviceKind::Host) => Self::Host(HostCaches::of(&device.info)?),
            _ => Self::Device(Tensor::allocate(device, DType::U8, &[bytes], &Placement::default())?, 0),
        })
    }

    /// Evicts everything from the caches before the next window on `queue`.
    ///
    /// A device clock starts behind the fill, which is on the same queue, so nothing waits for it: the kernel would otherwise
    /// begin on an idle device, with its launch in the time.
    pub(crate) fn flush(&mut self, queue: &Queue, clock: Clock) -> Result<()> {
        match self {
            Self::Never => Ok(()),
            Self::Host(caches) => {
                caches.evict();
                Ok(())
            }
            Self::Device(memory, byte) => {
                *byte = byte.wrapping_add(1);
                let filled = queue.fill(memory, &[*byte])?;
                if clock.is_device() { Ok(()) } else { filled.wait() }
            }
        }
    }
}

/// Evicts what the caches of a host hold, by writing through memory: those that the processor of the calling thread uses.
#[derive(Debug)]
pub struct HostCaches(HostArray);

impl HostCaches {
    /// Those of a host.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn of(info: &DeviceInfo) -> Result<Self> {
        HostArray::new(DType::U8, &[flush_bytes(info)]).map(Self)
    }

    /// Evicts most of what they hold.
    pub fn evict(&mut self) {
        // One byte per line suffices. Writing it also evicts other lines from write-back caches.
        for line in self.0.bytes_mut().chunks_mut(64) {
            line[0] = line[0].wrapping_add(1);
        }
        black_box(self.0.bytes());
    }
}

/// The size of the last-level cache of a device, which a fill replaces, as NVIDIA's nvbench does; twice that of a host. CUDA devices
/// report it, OpenCL and Vulkan devices do not.
///
/// Processors keep lines that were used again when others stream through the cache, and their last level does not contain the
/// levels above it. Measured on an EPYC with 32 MiB: a random read of 256 KiB takes 3 ns per line while it is cached, 35 ns
/// after as much as the cache has was written, 79 ns after twice as much, 99 ns after four times, and 106 ns after eight times.
fn flush_bytes(info: &DeviceInfo) -> usize {
    let levels = ["l4_bytes", "l3_bytes", "l2_bytes"];
    let last = levels.iter().find_map(|level| info.properties.integer(level)).filter(|&bytes| bytes > 0);
    let believed =
        last.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes <= MAX_CACHE_BYTES);
    let times = if info.kind == DeviceKind::Host { 2 } else { 1 };
    believed.map_or(DEFAULT_CACHE_BYTES, |bytes| times * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_flushes_exactly_its_last_level_cache_if_it_reports_that() {
        let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "test");
        assert_eq!(flush_bytes(&info), DEFAULT_CACHE_BYTES);
        info.properties.push("l2_bytes", 50i64 << 20);
        assert_eq!(flush_bytes(&info), 50 << 20);
    }

    #[test]
    fn a_host_flushes_twice_its_last_level_cache() {
        let mut info = DeviceInfo::new(DeviceKind::Host, 0, "test");
        assert_eq!(flush_bytes(&info), 64 << 20);
        info.properties.push("l2_bytes", 1i64 << 20);
        assert_eq!(flush_bytes(&info), 2 << 20);
        info.properties.push("l3_bytes", 32i64 << 20);
        assert_eq!(flush_bytes(&info), 64 << 20);
        info.properties.push("l4_bytes", 1i64 << 50);
        assert_eq!(flush_bytes(&info), DEFAULT_CACHE_BYTES, "an implausible size is ignored");
    }
}
