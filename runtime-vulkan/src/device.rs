//! An opened device.

use std::sync::Arc;

use runtime_core::backend::{
    Allocate, Device, DeviceBytes, GraphNode, HostBytesMut, NativeHandle, OptionSpec, Source, StagingOptions,
};
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::device::{MemoryUsage, Telemetry};
use runtime_core::{Error, Options, QueueOptions, Result};

use crate::compile;
use crate::device_state::DeviceState;
use crate::driver::{DeviceOptions, MemoryLocation};
use crate::graph::VulkanGraph;
use crate::memory::{self, VulkanBuffer};
use crate::module::{VulkanKernel, VulkanModule};
use crate::queue::VulkanQueue;

/// An opened device; all openings share one state.
#[derive(Debug)]
pub struct VulkanDevice {
    shared: Arc<DeviceState>,
}

/// How large transfers are staged by default.
pub(crate) const STAGING: StagingOptions = StagingOptions { slot_bytes: 1 << 20, threads: 8 };

/// The options of a device.
pub(crate) fn options() -> Vec<OptionSpec> {
    let robust = OptionSpec::device(
        "robust",
        false,
        "Let the device bounds-check the memory accesses of native code; portable code is checked anyway. Fixed when the device \
         is first opened.",
    );
    let push_descriptors = OptionSpec::device(
        "push_descriptors",
        true,
        "Pass arguments as push descriptors instead of descriptor sets, where the driver supports it. Fixed when the device is \
         first opened.",
    );
    [robust, push_descriptors].into_iter().chain(STAGING.declare()).collect()
}

/// Reads the options of a device.
pub(crate) fn parse_options(options: &Options) -> DeviceOptions {
    let is_on = |key: &str| !options.iter().any(|(given, _)| given == key) || options.flag(key);
    DeviceOptions { robust: options.flag("robust"), push_descriptors: is_on("push_descriptors") }
}

impl VulkanDevice {
    pub(crate) fn new(shared: Arc<DeviceState>) -> Self {
        Self { shared }
    }
}

impl Device for VulkanDevice {
    type Buffer = VulkanBuffer;
    type Module = VulkanModule;
    type Queue = VulkanQueue;
    type Graph = VulkanGraph;

    fn memory_usage(&self, space: u32) -> Result<MemoryUsage> {
        let logical = &self.shared.logical;
        logical.check_alive()?;
        let space = memory::space(space, &logical.caps)?;
        let budget = logical.physical.budget(&logical.instance, &logical.caps);
        let budget =
            budget.ok_or_else(|| Error::unsupported("memory_usage is not supported by this driver"))?;
        let device_local = space != MemoryLocation::Pinned;
        let heaps =
            logical.caps.heaps.iter().zip(budget).filter(|(heap, _)| heap.device_local == device_local);
        let largest = heaps.max_by_key(|(heap, _)| heap.bytes);
        let (heap, (budget, used)) = largest.ok_or_else(|| {
            Error::unsupported("memory_usage of this space is not supported by this driver")
        })?;
        let used = used.saturating_sub(if device_local { logical.kept_bytes() } else { 0 });
        Ok(MemoryUsage { free_bytes: budget.saturating_sub(used).min(heap.bytes), total_bytes: heap.bytes })
    }

    fn telemetry(&self) -> Result<Telemetry> {
        Err(Error::unsupported(
            "Vulkan reports no clocks, temperature, power or energy; use the vendor's own tool, such as \
             `nvidia-smi`",
        ))
    }

    fn allocate(&self, request: &Allocate<'_, VulkanQueue>) -> Result<VulkanBuffer> {
        self.shared.logical.check_alive()?;
        let space = memory::space(request.space, &self.shared.logical.caps)?;
        VulkanBuffer::allocate(&self.shared, space, request.bytes, request.alignment_bytes)
    }

    fn import_host(&self, space: u32, host: HostBytesMut) -> Result<VulkanBuffer> {
        self.shared.logical.check_alive()?;
        VulkanBuffer::import(&self.shared, memory::space(space, &self.shared.logical.caps)?, &host)
    }

    fn import_device_memory(&self, space: u32, memory: DeviceBytes) -> Result<VulkanBuffer> {
        self.shared.logical.check_alive()?;
        VulkanBuffer::import_buffer(&self.shared, memory::space(space, &self.shared.logical.caps)?, &memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<VulkanModule> {
        VulkanModule::load(&self.shared, source)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        compile::identity(&self.shared, source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        compile::for_device(&self.shared, source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        compile::fits(&self.shared, code)
    }

    fn open_queue(&self, _options: &QueueOptions) -> Result<VulkanQueue> {
        VulkanQueue::open(&self.shared)
    }

    fn native(&self) -> Result<Vec<NativeHandle>> {
        Ok(self.shared.logical.native())
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, VulkanBuffer, VulkanKernel>]) -> Result<VulkanGraph> {
        self.shared.logical.check_alive()?;
        VulkanGraph::new(&self.shared, nodes)
    }
}
