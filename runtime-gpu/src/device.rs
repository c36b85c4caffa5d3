//! An opened device.

use std::sync::Arc;

use runtime_core::backend::{Allocate, Device, DeviceBytes, GraphNode, QueueOptions, Source};
use runtime_core::{Error, MemoryUsage, OptionSpec, Options, Result};

use crate::context::Primary;
use crate::describe;
use crate::graph::CudaGraph;
use crate::memory::{CudaBuffer, Space, Wanted};
use crate::module::{CudaKernel, CudaModule};
use crate::queue::CudaQueue;
use crate::spares::{self, Spares};
use crate::staging::Tuning;

/// An opened device: its primary context, which all openings of a `Runtime` share.
#[derive(Debug)]
pub struct CudaDevice {
    primary: Arc<Primary>,
    spaces: usize,
    choices: Choices,
}

/// What the options say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    tuning: Tuning,
    spare_blocks: usize,
}

impl Choices {
    /// # Errors
    /// `InvalidArgument` for what is out of range.
    pub(crate) fn of(options: &Options) -> Result<Self> {
        let blocks = options.integer_within("spare_blocks", spares::BLOCKS as i64, 0..=4096)?;
        let spare_blocks = usize::try_from(blocks).unwrap_or(spares::BLOCKS);
        Ok(Self { tuning: Tuning::of(options)?, spare_blocks })
    }
}

/// The options of a device.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            "staging_slot_kib",
            1024_i64,
            "Size of a pinned slot for transfers of pageable memory, in KiB, 64 to 65536; the first opening of a device decides.",
        ),
        OptionSpec::device(
            "upload_threads",
            8_i64,
            "Threads that copy pageable memory on its way to the device, 1 to 64; at most one per processor by default.",
        ),
        OptionSpec::device(
            "download_threads",
            8_i64,
            "Threads that copy to pageable memory on its way back, 1 to 64; at most one per processor by default.",
        ),
        OptionSpec::device(
            "spare_blocks",
            spares::BLOCKS as i64,
            "Freed blocks that a queue keeps for its own next allocations, at most 4096, and 64 MiB; 0: a tool that watches memory sees every free.",
        ),
    ]
}

impl CudaDevice {
    pub(crate) fn new(primary: Arc<Primary>, choices: Choices) -> Self {
        let spaces = describe::space_count(primary.driver, primary.ordinal);
        Self { primary, spaces, choices }
    }
}

impl Device for CudaDevice {
    type Buffer = CudaBuffer;
    type Module = CudaModule;
    type Queue = CudaQueue;
    type Graph = CudaGraph;

    fn memory_usage(&self, space: u32) -> Result<MemoryUsage> {
        self.primary.check_alive()?;
        if Space::of(space, self.spaces)? != Space::Device {
            return Err(Error::unsupported(
                "memory usage of host memory is not known here; ask the device \"host\"",
            ));
        }
        let (free, total) = self.primary.memory_info()?;
        // What the pool or a queue keeps and nobody uses can still be allocated.
        let kept = match self.primary.pool {
            Some(pool) => {
                let (reserved, used) = self.primary.pool_bytes(pool)?;
                reserved.saturating_sub(used)
            }
            None => 0,
        };
        let total_bytes = total as u64;
        let kept = kept + self.primary.spare_bytes() as u64;
        Ok(MemoryUsage { free_bytes: (free as u64 + kept).min(total_bytes), total_bytes })
    }

    fn peer_access(&self, other: &Self) -> Result<bool> {
        other.primary.let_in(&self.primary)
    }

    fn allocate(&self, request: &Allocate<'_, CudaQueue>) -> Result<CudaBuffer> {
        self.primary.check_alive()?;
        if request.huge_pages {
            return Err(Error::unsupported("huge_pages are not supported by this device"));
        }
        let space = Space::of(request.space, self.spaces)?;
        if !request.alignment_bytes.max(1).is_power_of_two() {
            return Err(Error::invalid(format!(
                "alignment of {} bytes; pass a power of two",
                request.alignment_bytes
            )));
        }
        let wanted = Wanted { space, bytes: request.bytes, alignment_bytes: request.alignment_bytes };
        let Some((queue, ticket)) = request.queue else {
            return CudaBuffer::allocate(&self.primary, wanted, None);
        };
        queue.settle()?;
        let buffer = CudaBuffer::allocate(&self.primary, wanted, Some(queue.shared()))?;
        queue.took(ticket);
        Ok(buffer)
    }

    fn free(&self, buffer: CudaBuffer, queue: Option<&CudaQueue>) {
        let queue = queue.filter(|queue| queue.is_of(&self.primary));
        // What is being staged is not on the stream yet; an error means that the device has let go of everything.
        let queue = queue.map(|queue| {
            let _ = queue.settle();
            queue.shared()
        });
        buffer.free(queue);
    }

    fn adopt(&self, space: u32, memory: DeviceBytes) -> Result<CudaBuffer> {
        self.primary.check_alive()?;
        CudaBuffer::adopt(&self.primary, Space::of(space, self.spaces)?, &memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<CudaModule> {
        CudaModule::load(&self.primary, source)
    }

    fn open_queue(&self, options: &QueueOptions) -> Result<CudaQueue> {
        let Choices { tuning, spare_blocks } = self.choices;
        CudaQueue::open(&self.primary, options, tuning, Spares::new(spare_blocks))
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, CudaBuffer, CudaKernel>]) -> Result<CudaGraph> {
        self.primary.check_alive()?;
        CudaGraph::new(&self.primary, nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused() {
        let choices = Choices::of(&Options::new()).unwrap();
        assert_eq!(choices.spare_blocks, spares::BLOCKS);
        assert_eq!(Choices::of(&Options::new().with("spare_blocks", 0_i64)).unwrap().spare_blocks, 0);
        let keys = [
            ("spare_blocks", "0 to 4096", -1),
            ("staging_slot_kib", "64 to 65536", 63),
            ("upload_threads", "1 to 64", 0),
            ("download_threads", "1 to 64", 0),
        ];
        for (key, range, below) in keys {
            for value in [below, i64::MIN, i64::MAX] {
                let error = Choices::of(&Options::new().with(key, value)).unwrap_err();
                assert!(error.message().contains(key) && error.message().contains(range), "{error}");
            }
        }
    }
}
