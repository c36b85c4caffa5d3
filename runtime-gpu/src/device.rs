//! An opened device: allocation, code, queues and graphs.

use std::sync::{Arc, OnceLock};

use runtime_core::backend::{
    Allocate, CounterSet, Device, DeviceBytes, GraphNode, NativeHandle, OptionSpec, Source, StagingOptions,
};
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::device::{CounterInfo, MemoryUsage, Telemetry, ThrottleReasons};
use runtime_core::{Error, Options, QueueOptions, Result};

use crate::compile;
use crate::counters::{self, CudaCounters};
use crate::describe;
use crate::device_state::DeviceState;
use crate::free_list::{self, FreeList};
use crate::graph::CudaGraph;
use crate::memory::{CudaBuffer, Request, Space};
use crate::module::{CudaKernel, CudaModule};
use crate::nvml::{Nvml, NvmlDevice, without_own};
use crate::queue::CudaQueue;

/// An opened CUDA device. All openings by one `Runtime` share the device's primary context.
#[derive(Debug)]
pub struct CudaDevice {
    shared: Arc<DeviceState>,
    spaces: usize,
    options: DeviceOptions,
    /// Set by the first telemetry call.
    nvml_device: OnceLock<NvmlDevice>,
}

/// How large transfers of pageable memory are staged by default: fastest on an H200.
const STAGING: StagingOptions = StagingOptions { slot_bytes: 1 << 20, threads: 8 };

/// The parsed device options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceOptions {
    staging: StagingOptions,
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
        Ok(Self { staging: STAGING.parse(options)?, free_list_blocks })
    }
}

/// Declares the device options.
pub(crate) fn options() -> Vec<OptionSpec> {
    let spare_blocks = OptionSpec::device(
        "spare_blocks",
        free_list::DEFAULT_BLOCKS as i64,
        "Freed blocks that a queue keeps for its own next allocations, 0 to 4096, and at most 64 MiB; with 0, memory tools see every free.",
    );
    STAGING.declare().into_iter().chain([spare_blocks]).collect()
}

impl CudaDevice {
    pub(crate) fn new(shared: Arc<DeviceState>, options: DeviceOptions) -> Self {
        let spaces = describe::space_count(shared.primary.driver, shared.primary.ordinal);
        Self { shared, spaces, options, nvml_device: OnceLock::new() }
    }

    /// The device as NVML knows it.
    fn nvml_device(&self, nvml: &Nvml) -> Result<NvmlDevice> {
        if let Some(device) = self.nvml_device.get() {
            return Ok(*device);
        }
        let (driver, ordinal) = (self.shared.primary.driver, self.shared.primary.ordinal);
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
        self.shared.primary.check_alive()?;
        if Space::from_index(space, self.spaces)? != Space::Device {
            return Err(Error::unsupported(
                "memory usage of host spaces is unavailable here; query `host:0`",
            ));
        }
        let (free, total) = self.shared.primary.memory_info()?;
        // Unused memory of the pool and of the free lists can still be allocated.
        let unused = self.shared.pool.as_ref().map_or(Ok(0), |pool| pool.unused_bytes())?;
        let total_bytes = total as u64;
        let unused = unused + self.shared.free_list_bytes() as u64;
        Ok(MemoryUsage { free_bytes: (free as u64 + unused).min(total_bytes), total_bytes })
    }

    fn telemetry(&self) -> Result<Telemetry> {
        self.shared.primary.check_alive()?;
        let nvml = Nvml::load()?;
        nvml.telemetry(self.nvml_device(nvml)?)
    }

    fn throttle_reasons(&self) -> Result<ThrottleReasons> {
        self.shared.primary.check_alive()?;
        let nvml = Nvml::load()?;
        nvml.throttle_reasons(self.nvml_device(nvml)?)
    }

    fn processes(&self) -> Result<Vec<u32>> {
        self.shared.primary.check_alive()?;
        let nvml = Nvml::load()?;
        Ok(without_own(nvml.processes(self.nvml_device(nvml)?)?, std::process::id()))
    }

    fn peer_access(&self, other: &Self) -> Result<bool> {
        other.shared.enable_peer(&self.shared)
    }

    fn allocate(&self, request: &Allocate<'_, CudaQueue>) -> Result<CudaBuffer> {
        self.shared.primary.check_alive()?;
        let space = Space::from_index(request.space, self.spaces)?;
        let (bytes, alignment_bytes) = (request.bytes, request.alignment_bytes);
        let memory = Request { space, bytes, alignment_bytes };
        let Some((queue, ticket)) = request.queue else {
            return CudaBuffer::allocate(&self.shared, memory, None);
        };
        queue.prepare_submit()?;
        let buffer = CudaBuffer::allocate(&self.shared, memory, Some(&queue.state))?;
        queue.note_submitted(ticket);
        Ok(buffer)
    }

    fn free(&self, buffer: CudaBuffer, queue: Option<&CudaQueue>) {
        let queue = queue.filter(|queue| queue.belongs_to(&self.shared));
        // A transfer being staged is not on the stream yet. On an error the device is lost and uses nothing any more.
        let queue = queue.map(|queue| {
            let _ = queue.prepare_submit();
            &*queue.state
        });
        buffer.free(queue);
    }

    fn import_device_memory(&self, space: u32, memory: DeviceBytes) -> Result<CudaBuffer> {
        self.shared.primary.check_alive()?;
        CudaBuffer::import_device_memory(&self.shared, Space::from_index(space, self.spaces)?, &memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<CudaModule> {
        CudaModule::load(&self.shared.primary, source)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        compile::identity(source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        compile::for_device(&self.shared.primary, source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        compile::fits(&self.shared.primary, code)
    }

    fn open_queue(&self, options: &QueueOptions) -> Result<CudaQueue> {
        let DeviceOptions { staging, free_list_blocks } = self.options;
        CudaQueue::open(&self.shared, options, staging, FreeList::new(free_list_blocks))
    }

    fn open_native_queue(&self, native: u64) -> Result<CudaQueue> {
        CudaQueue::borrow(&self.shared, native, self.options.staging)
    }

    fn native(&self) -> Result<Vec<NativeHandle>> {
        let primary = &self.shared.primary;
        Ok(vec![
            NativeHandle::number("CUdevice", primary.ordinal as u64),
            NativeHandle::pointer("CUcontext", primary.context.0),
        ])
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, CudaBuffer, CudaKernel>]) -> Result<CudaGraph> {
        self.shared.primary.check_alive()?;
        CudaGraph::new(&self.shared, nodes)
    }

    fn counters(&self) -> Result<Vec<CounterInfo>> {
        counters::list(&self.shared)
    }

    fn open_counters(&self, names: &[&str]) -> Result<Box<dyn CounterSet>> {
        Ok(Box::new(CudaCounters::open(&self.shared, names)?))
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
            ("staging_threads", "1 to 64", 0),
        ];
        for (key, range, below) in keys {
            for value in [below, i64::MIN, i64::MAX] {
                let error = DeviceOptions::parse(&Options::new().with(key, value)).unwrap_err();
                assert!(error.message().contains(key) && error.message().contains(range), "{error}");
            }
        }
    }
}
