//! An opened device: allocation, code, queues and graphs.

use std::sync::{Arc, OnceLock};

use runtime_core::backend::{
    Allocate, CompiledCode, CounterSet, Device, DeviceBytes, Fit, GraphNode, QueueOptions, Source,
};
use runtime_core::{
    CounterInfo, Error, MemoryUsage, OptionSpec, Options, Result, Telemetry, ThrottleReasons,
};

use crate::compile;
use crate::context::PrimaryContext;
use crate::counters::{self, CudaCounters};
use crate::describe;
use crate::free_list::{self, FreeList};
use crate::graph::CudaGraph;
use crate::memory::{CudaBuffer, Request, Space};
use crate::module::{CudaKernel, CudaModule};
use crate::nvml::{Nvml, NvmlDevice, without_own};
use crate::queue::CudaQueue;
use crate::staging::StagingConfig;

/// An opened CUDA device. All openings by one `Runtime` share the device's primary context.
#[derive(Debug)]
pub struct CudaDevice {
    primary: Arc<PrimaryContext>,
    spaces: usize,
    options: DeviceOptions,
    /// Set by the first telemetry call.
    nvml_device: OnceLock<NvmlDevice>,
}

/// The parsed device options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceOptions {
    staging: StagingConfig,
    free_list_blocks: usize,
}

impl DeviceOptions {
    /// Parses the options.
    ///
    /// # Errors
    /// `InvalidArgument` for a value out of range.
    pub(crate) fn parse(options: &Options) -> Result<Self> {
        let blocks = options.integer_within("spare_blocks", free_list::DEFAULT_BLOCKS as i64, 0..=4096)?;
        let free_list_blocks = usize::try_from(blocks).unwrap_or(free_list::DEFAULT_BLOCKS);
        Ok(Self { staging: StagingConfig::parse(options)?, free_list_blocks })
    }
}

/// Declares the device options.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            "staging_slot_kib",
            1024_i64,
            "Size of a pinned staging slot for transfers of pageable memory, in KiB, 64 to 65536. \
             Fixed when the device is first opened.",
        ),
        OptionSpec::device(
            "upload_threads",
            8_i64,
            "Threads that stage uploads of pageable memory, 1 to 64; by default at most one per processor.",
        ),
        OptionSpec::device(
            "download_threads",
            8_i64,
            "Threads that stage downloads to pageable memory, 1 to 64; by default at most one per processor.",
        ),
        OptionSpec::device(
            "spare_blocks",
            free_list::DEFAULT_BLOCKS as i64,
            "Freed blocks that a queue keeps for its own next allocations, 0 to 4096, and at most 64 MiB; with 0, memory tools see every free.",
        ),
    ]
}

impl CudaDevice {
    pub(crate) fn new(primary: Arc<PrimaryContext>, options: DeviceOptions) -> Self {
        let spaces = describe::space_count(primary.driver, primary.ordinal);
        Self { primary, spaces, options, nvml_device: OnceLock::new() }
    }

    /// The device as NVML knows it.
    fn nvml_device(&self, nvml: &Nvml) -> Result<NvmlDevice> {
        if let Some(device) = self.nvml_device.get() {
            return Ok(*device);
        }
        let (driver, ordinal) = (self.primary.driver, self.primary.ordinal);
        let uuid = describe::uuid(driver, ordinal);
        let device = nvml.device(uuid, describe::is_mig_instance(driver, ordinal))?;
        Ok(*self.nvml_device.get_or_init(|| device))
    }
}

impl Device for CudaDevice {
    type Buffer = CudaBuffer;
    type Module = CudaModule;
    type Queue = CudaQueue;
    type Graph = CudaGraph;

    fn memory_usage(&self, space: u32) -> Result<MemoryUsage> {
        self.primary.check_alive()?;
        if Space::from_index(space, self.spaces)? != Space::Device {
            return Err(Error::unsupported(
                "memory usage of host spaces is unavailable here; query `host:0`",
            ));
        }
        let (free, total) = self.primary.memory_info()?;
        // Unused memory of the pool and of the free lists can still be allocated.
        let unused = match self.primary.pool {
            Some(pool) => {
                let (reserved, used) = self.primary.pool_bytes(pool)?;
                reserved.saturating_sub(used)
            }
            None => 0,
        };
        let total_bytes = total as u64;
        let unused = unused + self.primary.free_list_bytes() as u64;
        Ok(MemoryUsage { free_bytes: (free as u64 + unused).min(total_bytes), total_bytes })
    }

    fn telemetry(&self) -> Result<Telemetry> {
        self.primary.check_alive()?;
        let nvml = Nvml::load()?;
        nvml.telemetry(self.nvml_device(nvml)?)
    }

    fn throttle_reasons(&self) -> Result<ThrottleReasons> {
        self.primary.check_alive()?;
        let nvml = Nvml::load()?;
        nvml.throttle_reasons(self.nvml_device(nvml)?)
    }

    fn processes(&self) -> Result<Vec<u32>> {
        self.primary.check_alive()?;
        let nvml = Nvml::load()?;
        Ok(without_own(nvml.processes(self.nvml_device(nvml)?)?, std::process::id()))
    }

    fn peer_access(&self, other: &Self) -> Result<bool> {
        other.primary.enable_peer(&self.primary)
    }

    fn allocate(&self, request: &Allocate<'_, CudaQueue>) -> Result<CudaBuffer> {
        self.primary.check_alive()?;
        if request.huge_pages {
            return Err(Error::unsupported("huge_pages are not supported by this device"));
        }
        let space = Space::from_index(request.space, self.spaces)?;
        if !request.alignment_bytes.max(1).is_power_of_two() {
            return Err(Error::invalid(format!(
                "alignment of {} bytes is not a power of two",
                request.alignment_bytes
            )));
        }
        let (bytes, alignment_bytes) = (request.bytes, request.alignment_bytes);
        let memory = Request { space, bytes, alignment_bytes };
        let Some((queue, ticket)) = request.queue else {
            return CudaBuffer::allocate(&self.primary, memory, None);
        };
        queue.prepare_submit()?;
        let buffer = CudaBuffer::allocate(&self.primary, memory, Some(queue.state()))?;
        queue.note_submitted(ticket);
        Ok(buffer)
    }

    fn free(&self, buffer: CudaBuffer, queue: Option<&CudaQueue>) {
        let queue = queue.filter(|queue| queue.belongs_to(&self.primary));
        // A transfer being staged is not on the stream yet. On an error the device is lost and uses nothing any more.
        let queue = queue.map(|queue| {
            let _ = queue.prepare_submit();
            queue.state()
        });
        buffer.free(queue);
    }

    fn import_device_memory(&self, space: u32, memory: DeviceBytes) -> Result<CudaBuffer> {
        self.primary.check_alive()?;
        CudaBuffer::import_device_memory(&self.primary, Space::from_index(space, self.spaces)?, &memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<CudaModule> {
        CudaModule::load(&self.primary, source)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        compile::identity(source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        compile::for_device(&self.primary, source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        compile::fits(&self.primary, code)
    }

    fn open_queue(&self, options: &QueueOptions) -> Result<CudaQueue> {
        let DeviceOptions { staging, free_list_blocks } = self.options;
        CudaQueue::open(&self.primary, options, staging, FreeList::new(free_list_blocks))
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, CudaBuffer, CudaKernel>]) -> Result<CudaGraph> {
        self.primary.check_alive()?;
        CudaGraph::new(&self.primary, nodes)
    }

    fn counters(&self) -> Result<Vec<CounterInfo>> {
        counters::list(&self.primary)
    }

    fn open_counters(&self, names: &[&str]) -> Result<Box<dyn CounterSet>> {
        Ok(Box::new(CudaCounters::open(&self.primary, names)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_rejected() {
        let options = DeviceOptions::parse(&Options::new()).unwrap();
        assert_eq!(options.free_list_blocks, free_list::DEFAULT_BLOCKS);
        assert_eq!(
            DeviceOptions::parse(&Options::new().with("spare_blocks", 0_i64)).unwrap().free_list_blocks,
            0
        );
        let keys = [
            ("spare_blocks", "0 to 4096", -1),
            ("staging_slot_kib", "64 to 65536", 63),
            ("upload_threads", "1 to 64", 0),
            ("download_threads", "1 to 64", 0),
        ];
        for (key, range, below) in keys {
            for value in [below, i64::MIN, i64::MAX] {
                let error = DeviceOptions::parse(&Options::new().with(key, value)).unwrap_err();
                assert!(error.message().contains(key) && error.message().contains(range), "{error}");
            }
        }
    }
}
