//! An opened device.

use std::sync::Arc;

use runtime_core::backend::{
    Allocate, CompiledCode, Device, Fit, GraphNode, HostBytesMut, QueueOptions, Source,
};
use runtime_core::{Error, MemoryUsage, OptionSpec, Options, Result, Telemetry};

use crate::compile;
use crate::context::Context;
use crate::driver::{DeviceOptions, MemoryLocation};
use crate::graph::VulkanGraph;
use crate::memory::{self, VulkanBuffer};
use crate::module::{VulkanKernel, VulkanModule};
use crate::queue::VulkanQueue;

/// An opened device; all openings share one context.
#[derive(Debug)]
pub struct VulkanDevice {
    context: Arc<Context>,
}

/// The options of a device.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device(
            "robust",
            false,
            "Let the device bounds-check the memory accesses of native code; portable code is checked anyway. Fixed when \
             the device is first opened.",
        ),
        OptionSpec::device(
            "push_descriptors",
            true,
            "Pass arguments as push descriptors instead of descriptor sets, where the driver supports it. Fixed when the \
             device is first opened.",
        ),
    ]
}

/// Reads the options of a device.
pub(crate) fn parse_options(options: &Options) -> DeviceOptions {
    let is_on = |key: &str| !options.iter().any(|(given, _)| given == key) || options.flag(key);
    DeviceOptions { robust: options.flag("robust"), push_descriptors: is_on("push_descriptors") }
}

impl VulkanDevice {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

impl Device for VulkanDevice {
    type Buffer = VulkanBuffer;
    type Module = VulkanModule;
    type Queue = VulkanQueue;
    type Graph = VulkanGraph;

    fn memory_usage(&self, space: u32) -> Result<MemoryUsage> {
        let logical = &self.context.logical;
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
        Ok(MemoryUsage { free_bytes: budget.saturating_sub(used).min(heap.bytes), total_bytes: heap.bytes })
    }

    fn telemetry(&self) -> Result<Telemetry> {
        Err(Error::unsupported(
            "Vulkan reports no clocks, temperature, power or energy; use the vendor's own tool, such as \
             `nvidia-smi`",
        ))
    }

    fn allocate(&self, request: &Allocate<'_, VulkanQueue>) -> Result<VulkanBuffer> {
        self.context.logical.check_alive()?;
        if request.huge_pages {
            return Err(Error::unsupported("huge_pages are not supported by this device"));
        }
        let space = memory::space(request.space, &self.context.logical.caps)?;
        VulkanBuffer::allocate(&self.context, space, request.bytes, request.alignment_bytes)
    }

    fn import_host(&self, space: u32, host: HostBytesMut) -> Result<VulkanBuffer> {
        self.context.logical.check_alive()?;
        VulkanBuffer::import(&self.context, memory::space(space, &self.context.logical.caps)?, &host)
    }

    fn load(&self, source: &Source<'_>) -> Result<VulkanModule> {
        VulkanModule::load(&self.context, source)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        compile::identity(&self.context, source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        compile::for_device(&self.context, source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        compile::fits(&self.context, code)
    }

    fn open_queue(&self, _options: &QueueOptions) -> Result<VulkanQueue> {
        VulkanQueue::open(&self.context)
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, VulkanBuffer, VulkanKernel>]) -> Result<VulkanGraph> {
        self.context.logical.check_alive()?;
        VulkanGraph::new(&self.context, nodes)
    }
}
