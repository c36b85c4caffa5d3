//! Objects of one of the transports that run kernels.

use runtime_core::backend::{Buffer, Graph, Kernel, KernelInfo, Launch, Module, NoGraph, RetypedLaunch};
use runtime_core::{Error, ErrorKind, Geometry, Occupancy, Result};
use runtime_opencl::{OpenClBuffer, OpenClGraph, OpenClKernel, OpenClModule};

use crate::offload::{OffloadBuffer, OffloadKernel, OffloadModule};

/// An object of either transport.
#[derive(Debug)]
pub(crate) enum ByTransport<A, B> {
    OpenCl(A),
    Offload(B),
}

/// Calls a method whose arguments are the same for both transports.
macro_rules! delegate {
    ($object:expr, $inner:ident => $call:expr) => {
        match $object {
            ByTransport::OpenCl($inner) => $call,
            ByTransport::Offload($inner) => $call,
        }
    };
}

pub(crate) use delegate;

impl<A, B> ByTransport<A, B> {
    pub(crate) fn opencl(&self) -> Result<&A> {
        match self {
            Self::OpenCl(object) => Ok(object),
            Self::Offload(_) => Err(mixed()),
        }
    }

    pub(crate) fn offload(&self) -> Result<&B> {
        match self {
            Self::Offload(object) => Ok(object),
            Self::OpenCl(_) => Err(mixed()),
        }
    }
}

/// Core passes only objects of one device.
#[cold]
fn mixed() -> Error {
    Error::new(ErrorKind::Internal, "objects of different transports were mixed")
}

/// Memory of a device.
#[derive(Debug)]
pub struct MppaBuffer(pub(crate) ByTransport<OpenClBuffer, OffloadBuffer>);

impl Buffer for MppaBuffer {
    fn kernel_address(&self) -> u64 {
        delegate!(&self.0, buffer => buffer.kernel_address())
    }

    fn host_pointer(&self) -> *mut u8 {
        delegate!(&self.0, buffer => buffer.host_pointer())
    }
}

/// A launch as OpenCL takes it.
pub(crate) fn opencl_launch<'a>(launch: &Launch<'a, MppaBuffer>) -> Result<RetypedLaunch<'a, OpenClBuffer>> {
    RetypedLaunch::new(launch, |buffer| buffer.0.opencl())
}

/// A launch as the offload library takes it.
pub(crate) fn offload_launch<'a>(
    launch: &Launch<'a, MppaBuffer>,
) -> Result<RetypedLaunch<'a, OffloadBuffer>> {
    RetypedLaunch::new(launch, |buffer| buffer.0.offload())
}

/// A loaded module.
#[derive(Debug)]
pub struct MppaModule(pub(crate) ByTransport<OpenClModule, OffloadModule>);

impl Module for MppaModule {
    type Kernel = MppaKernel;

    fn symbols(&self) -> &[String] {
        delegate!(&self.0, module => module.symbols())
    }

    fn kernel(&self, name: &str) -> Result<MppaKernel> {
        Ok(MppaKernel(match &self.0 {
            ByTransport::OpenCl(module) => ByTransport::OpenCl(module.kernel(name)?),
            ByTransport::Offload(module) => ByTransport::Offload(module.kernel(name)?),
        }))
    }
}

/// An entry point.
#[derive(Debug)]
pub struct MppaKernel(pub(crate) ByTransport<OpenClKernel, OffloadKernel>);

impl Kernel for MppaKernel {
    fn info(&self) -> KernelInfo {
        delegate!(&self.0, kernel => kernel.info())
    }

    fn occupancy(&self, geometry: &Geometry, local_bytes: u64) -> Result<Occupancy> {
        delegate!(&self.0, kernel => kernel.occupancy(geometry, local_bytes))
    }
}

/// A native graph; only OpenCL has them.
#[derive(Debug)]
pub struct MppaGraph(pub(crate) ByTransport<OpenClGraph, NoGraph<OffloadBuffer>>);

impl Graph for MppaGraph {
    type Buffer = MppaBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, MppaBuffer>) -> Result<()> {
        match &mut self.0 {
            ByTransport::OpenCl(graph) => graph.update(node, &opencl_launch(launch)?.launch()),
            ByTransport::Offload(graph) => graph.update(node, &offload_launch(launch)?.launch()),
        }
    }
}
