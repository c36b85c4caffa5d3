//! Opened devices and sub-devices.

use std::sync::Arc;

use runtime_core::backend::{
    Allocate, Device, DeviceBytes, GraphNode, HostBytesMut, NativeHandle, Source, space_at,
};
use runtime_core::code::{CompiledCode, Fit};
use runtime_core::{Error, QueueOptions, Result};

use crate::device_state::DeviceState;
use crate::driver::Raw;
use crate::graph::OpenClGraph;
use crate::kernel::OpenClKernel;
use crate::memory::OpenClBuffer;
use crate::module::OpenClModule;
use crate::native_code;
use crate::queue::OpenClQueue;
use crate::space::Space;

/// An opened device or sub-device.
#[derive(Debug)]
pub struct OpenClDevice {
    shared: Arc<DeviceState>,
    device: usize,
}

impl OpenClDevice {
    pub(crate) fn new(shared: Arc<DeviceState>, device: Raw) -> Self {
        Self { shared, device: device.expose_provenance() }
    }

    fn raw(&self) -> Raw {
        std::ptr::with_exposed_provenance_mut(self.device)
    }

    fn space(&self, index: u32) -> Result<Space> {
        space_at(&self.shared.context.caps.spaces, index)
    }
}

impl Device for OpenClDevice {
    type Buffer = OpenClBuffer;
    type Module = OpenClModule;
    type Queue = OpenClQueue;
    type Graph = OpenClGraph;

    fn allocate(&self, request: &Allocate<'_, OpenClQueue>) -> Result<OpenClBuffer> {
        self.shared.context.check_alive()?;
        let alignment = request.alignment_bytes.max(1);
        OpenClBuffer::allocate(&self.shared, self.space(request.space)?, request.bytes, alignment)
    }

    fn import_host(&self, space: u32, memory: HostBytesMut) -> Result<OpenClBuffer> {
        self.shared.context.check_alive()?;
        if !self.shared.context.caps.is_processor {
            return Err(Error::unsupported("only CPU devices can import host memory"));
        }
        if !self.space(space)?.host_visible() {
            return Err(Error::invalid("host memory can only be imported into a host-visible space"));
        }
        OpenClBuffer::import(&self.shared, &memory)
    }

    fn import_device_memory(&self, space: u32, memory: DeviceBytes) -> Result<OpenClBuffer> {
        self.shared.context.check_alive()?;
        if self.space(space)? != Space::Device {
            return Err(Error::unsupported("a `cl_mem` can only be imported into space \"device\""));
        }
        OpenClBuffer::import_object(&self.shared, &memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<OpenClModule> {
        OpenClModule::load(&self.shared, self.raw(), source)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        native_code::identity(&self.shared.context, source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        native_code::compile(&self.shared, self.raw(), source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        native_code::fits(&self.shared.context, self.raw(), code)
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, OpenClBuffer, OpenClKernel>]) -> Result<OpenClGraph> {
        self.shared.context.check_alive()?;
        OpenClGraph::new(&self.shared.context, self.raw(), nodes)
    }

    fn open_queue(&self, options: &QueueOptions) -> Result<OpenClQueue> {
        OpenClQueue::open(&self.shared, self.raw(), options)
    }

    fn open_native_queue(&self, native: u64) -> Result<OpenClQueue> {
        OpenClQueue::borrow(&self.shared, self.raw(), native)
    }

    fn native(&self) -> Result<Vec<NativeHandle>> {
        let context = &self.shared.context;
        Ok(vec![
            NativeHandle::pointer("cl_platform_id", context.listed.platform),
            NativeHandle::pointer("cl_device_id", self.raw()),
            NativeHandle::pointer("cl_context", context.handle.raw()),
        ])
    }
}
