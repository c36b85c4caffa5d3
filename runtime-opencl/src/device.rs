//! Opened devices and sub-devices.

use std::sync::Arc;

use runtime_core::backend::{
    Allocate, CompiledCode, Device, Fit, GraphNode, HostBytesMut, QueueOptions, Source,
};
use runtime_core::{Error, Result};

use crate::context::SharedContext;
use crate::driver::Raw;
use crate::graph::OpenClGraph;
use crate::kernel::OpenClKernel;
use crate::memory::{OpenClBuffer, Space};
use crate::module::OpenClModule;
use crate::native_code;
use crate::queue::OpenClQueue;

/// An opened device or sub-device.
#[derive(Debug)]
pub struct OpenClDevice {
    context: Arc<SharedContext>,
    device: usize,
}

impl OpenClDevice {
    pub(crate) fn new(context: Arc<SharedContext>, device: Raw) -> Self {
        Self { context, device: device.expose_provenance() }
    }

    fn raw(&self) -> Raw {
        std::ptr::with_exposed_provenance_mut(self.device)
    }

    fn space(&self, index: u32) -> Result<Space> {
        let spaces = &self.context.caps.spaces;
        spaces
            .get(index as usize)
            .copied()
            .ok_or_else(|| Error::invalid(format!("no space {index}; valid: 0 to {}", spaces.len() - 1)))
    }
}

impl Device for OpenClDevice {
    type Buffer = OpenClBuffer;
    type Module = OpenClModule;
    type Queue = OpenClQueue;
    type Graph = OpenClGraph;

    fn allocate(&self, request: &Allocate<'_, OpenClQueue>) -> Result<OpenClBuffer> {
        self.context.check_alive()?;
        if request.huge_pages {
            return Err(Error::unsupported("huge_pages are not supported by this device"));
        }
        let alignment = request.alignment_bytes.max(1);
        if !alignment.is_power_of_two() {
            return Err(Error::invalid(format!("an alignment of {alignment} bytes is not a power of two")));
        }
        OpenClBuffer::allocate(&self.context, self.space(request.space)?, request.bytes, alignment)
    }

    fn import_host(&self, space: u32, memory: HostBytesMut) -> Result<OpenClBuffer> {
        self.context.check_alive()?;
        if !self.context.caps.is_processor {
            return Err(Error::unsupported("only CPU devices can import host memory"));
        }
        if !self.space(space)?.host_visible() {
            return Err(Error::invalid("host memory can only be imported into a host-visible space"));
        }
        OpenClBuffer::import(&self.context, &memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<OpenClModule> {
        OpenClModule::load(&self.context, self.raw(), source)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        native_code::identity(&self.context, source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        native_code::compile(&self.context, self.raw(), source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        native_code::fits(&self.context, self.raw(), code)
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, OpenClBuffer, OpenClKernel>]) -> Result<OpenClGraph> {
        self.context.check_alive()?;
        OpenClGraph::new(&self.context, self.raw(), nodes)
    }

    fn open_queue(&self, options: &QueueOptions) -> Result<OpenClQueue> {
        OpenClQueue::open(&self.context, self.raw(), options)
    }
}
