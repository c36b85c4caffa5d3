//! Objects of one of the transports that run kernels.

use runtime_core::backend::{Buffer, Graph, Kernel, Launch, Module, NativeHandle, NoGraph, RetypedLaunch};
use runtime_core::code::KernelInfo;
use runtime_core::{Error, Result};
use runtime_opencl::{OpenClBuffer, OpenClGraph, OpenClKernel, OpenClModule, OpenClQueue};

use crate::offload::{OffloadBuffer, OffloadKernel, OffloadModule, OffloadQueue};

/// An object of either transport.
#[derive(Debug)]
pub enum ByTransport<A, B> {
    /// Of Kalray's OpenCL library, or of its stand-in.
    OpenCl(A),
    /// Of Kalray's offload library.
    Offload(B),
}

/// Memory of a device.
pub type MppaBuffer = ByTransport<OpenClBuffer, OffloadBuffer>;
/// A loaded module.
pub type MppaModule = ByTransport<OpenClModule, OffloadModule>;
/// An entry point.
pub type MppaKernel = ByTransport<OpenClKernel, OffloadKernel>;
/// A native graph; only OpenCL has them.
pub type MppaGraph = ByTransport<OpenClGraph, NoGraph<OffloadBuffer>>;
/// An in-order queue of a device.
pub type MppaQueue = ByTransport<OpenClQueue, OffloadQueue>;

/// Calls a method whose arguments are the same for both transports.
macro_rules! delegate {
    ($object:expr, $inner:ident => $call:expr) => {
        match $object {
            ByTransport::OpenCl($inner) => $call,
            ByTransport::Offload($inner) => $call,
        }
    };
}

/// Calls a fallible method that makes an object of the same transport.
macro_rules! make {
    ($object:expr, $inner:ident => $call:expr) => {
        match $object {
            ByTransport::OpenCl($inner) => $call.map(ByTransport::OpenCl),
            ByTransport::Offload($inner) => $call.map(ByTransport::Offload),
        }
    };
}

/// Calls a fallible method with objects of the same transport.
macro_rules! with_same {
    (($object:expr $(, $other:expr)+), ($inner:ident $(, $other_inner:ident)+) => $call:expr) => {
        match ($object $(, $other)+) {
            (ByTransport::OpenCl($inner) $(, ByTransport::OpenCl($other_inner))+) => $call,
            (ByTransport::Offload($inner) $(, ByTransport::Offload($other_inner))+) => $call,
            _ => Err($crate::transport::mixed()),
        }
    };
}

pub(crate) use {delegate, make, with_same};

/// `Unsupported` makes core stage a copy between devices of different transports through the host. Otherwise, it passes only
/// objects of one device.
#[cold]
pub(crate) fn mixed() -> Error {
    Error::unsupported("devices of different transports share nothing")
}

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

/// A launch as OpenCL takes it.
pub(crate) fn opencl_launch<'a, A: Buffer, B: Buffer>(
    launch: &Launch<'a, ByTransport<A, B>>,
) -> Result<RetypedLaunch<'a, A>> {
    RetypedLaunch::new(launch, ByTransport::opencl)
}

/// A launch as the offload library takes it.
pub(crate) fn offload_launch<'a, A: Buffer, B: Buffer>(
    launch: &Launch<'a, ByTransport<A, B>>,
) -> Result<RetypedLaunch<'a, B>> {
    RetypedLaunch::new(launch, ByTransport::offload)
}

impl<A: Buffer, B: Buffer> Buffer for ByTransport<A, B> {
    fn kernel_address(&self) -> u64 {
        delegate!(self, buffer => buffer.kernel_address())
    }

    fn host_pointer(&self) -> *mut u8 {
        delegate!(self, buffer => buffer.host_pointer())
    }

    fn native(&self) -> Result<(Vec<NativeHandle>, u64)> {
        delegate!(self, buffer => buffer.native())
    }
}

impl<A: Module, B: Module> Module for ByTransport<A, B> {
    type Kernel = ByTransport<A::Kernel, B::Kernel>;

    fn symbols(&self) -> &[String] {
        delegate!(self, module => module.symbols())
    }

    fn kernel(&self, name: &str) -> Result<Self::Kernel> {
        make!(self, module => module.kernel(name))
    }
}

impl<A: Kernel, B: Kernel> Kernel for ByTransport<A, B> {
    fn info(&self) -> KernelInfo {
        delegate!(self, kernel => kernel.info())
    }
}

impl<A: Graph, B: Graph> Graph for ByTransport<A, B> {
    type Buffer = ByTransport<A::Buffer, B::Buffer>;

    fn update(&mut self, node: u32, launch: &Launch<'_, Self::Buffer>) -> Result<()> {
        match self {
            Self::OpenCl(graph) => graph.update(node, &opencl_launch(launch)?.launch()),
            Self::Offload(graph) => graph.update(node, &offload_launch(launch)?.launch()),
        }
    }
}
