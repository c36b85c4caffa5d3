//! An opened device.

use std::sync::Arc;

use runtime_core::backend::{Allocate, Device, GraphNode, HostBytesMut, QueueOptions, Source};
use runtime_core::{Error, MemoryUsage, OptionSpec, Options, Result};

use crate::context::Context;
use crate::driver::Choices;
use crate::graph::VulkanGraph;
use crate::memory::{Space, VulkanBuffer};
use crate::module::{VulkanKernel, VulkanModule};
use crate::queue::VulkanQueue;

/// An opened device, which all openings of a `Runtime` share.
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
            "Let the device check every access of native code to memory; portable code is checked anyway. The first \
             opening of a device decides.",
        ),
        OptionSpec::device(
            "push_descriptors",
            true,
            "Put arguments into the commands, where the driver can, and not into descriptor sets. The first opening \
             of a device decides.",
        ),
        OptionSpec::device(
            "pipeline_cache",
            true,
            "Keep what the driver has compiled in the user's cache folder, for the next program. The first opening of a \
             device decides.",
        ),
    ]
}

/// What the options say.
pub(crate) fn choices(options: &Options) -> Choices {
    let on = |key: &str| !options.iter().any(|(given, _)| given == key) || options.flag(key);
    Choices { robust: options.flag("robust"), push: on("push_descriptors"), keep: on("pipeline_cache") }
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
        let space = Space::of(space, &logical.facts)?;
        let budget = logical.physical.budget(&logical.instance, &logical.facts);
        let budget = budget.ok_or_else(|| Error::unsupported("this driver does not tell memory_usage"))?;
        let on_device = space != Space::Pinned;
        let heaps = logical.facts.heaps.iter().zip(budget).filter(|(heap, _)| heap.on_device == on_device);
        let largest = heaps.max_by_key(|(heap, _)| heap.bytes);
        let (heap, (budget, used)) = largest
            .ok_or_else(|| Error::unsupported("this driver does not tell memory_usage of this space"))?;
        Ok(MemoryUsage { free_bytes: budget.saturating_sub(used).min(heap.bytes), total_bytes: heap.bytes })
    }

    fn allocate(&self, request: &Allocate<'_, VulkanQueue>) -> Result<VulkanBuffer> {
        self.context.logical.check_alive()?;
        if request.huge_pages {
            return Err(Error::unsupported("huge_pages are not supported by this device"));
        }
        let space = Space::of(request.space, &self.context.logical.facts)?;
        VulkanBuffer::allocate(&self.context, space, request.bytes, request.alignment_bytes)
    }

    fn import(&self, space: u32, memory: HostBytesMut) -> Result<VulkanBuffer> {
        self.context.logical.check_alive()?;
        VulkanBuffer::import(&self.context, Space::of(space, &self.context.logical.facts)?, &memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<VulkanModule> {
        VulkanModule::load(&self.context, source)
    }

    fn open_queue(&self, _options: &QueueOptions) -> Result<VulkanQueue> {
        VulkanQueue::open(&self.context)
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, VulkanBuffer, VulkanKernel>]) -> Result<VulkanGraph> {
        self.context.logical.check_alive()?;
        VulkanGraph::new(&self.context, nodes)
    }
}
