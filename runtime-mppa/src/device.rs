//! Opened devices.

use std::time::Duration;

use runtime_core::backend::{
    Allocate, CounterSet, Device, DeviceBytes, GraphNode, GraphWork, HostBytesMut, NativeHandle, Program,
    RetypedLaunch, Source,
};
use runtime_core::code::{CompiledCode, Fit, RunReport};
use runtime_core::device::CounterInfo;
use runtime_core::{Error, ErrorKind, QueueOptions, Result};
use runtime_opencl::{OpenClBuffer, OpenClDevice, OpenClKernel};

use crate::offload::OffloadDevice;
use crate::program::ProgramDevice;
use crate::transport::{
    ByTransport, MppaBuffer, MppaGraph, MppaKernel, MppaModule, MppaQueue, delegate, make, opencl_launch,
};

/// An opened device.
#[derive(Debug)]
pub struct MppaDevice(pub(crate) Transport);

/// How the device is reached.
#[derive(Debug)]
pub(crate) enum Transport {
    OpenCl(OpenClDevice),
    Offload(Box<OffloadDevice>),
    Program(Box<ProgramDevice>),
}

impl MppaDevice {
    /// The device, if it runs kernels.
    fn kernels(&self, what: &str) -> Result<ByTransport<&OpenClDevice, &OffloadDevice>> {
        match &self.0 {
            Transport::OpenCl(device) => Ok(ByTransport::OpenCl(device)),
            Transport::Offload(device) => Ok(ByTransport::Offload(device)),
            Transport::Program(_) => Err(Error::unsupported(format!(
                "{what} is not supported: this device runs whole programs; flash one"
            ))),
        }
    }

    fn program(&self, what: &str) -> Result<&ProgramDevice> {
        match &self.0 {
            Transport::Program(device) => Ok(device),
            Transport::OpenCl(_) | Transport::Offload(_) => Err(Error::unsupported(format!(
                "{what} is not supported: this device runs kernels; open \"mppa:jtag\", \"mppa:iss\" or \"mppa:qemu\" for whole programs"
            ))),
        }
    }
}

impl Device for MppaDevice {
    type Buffer = MppaBuffer;
    type Module = MppaModule;
    type Queue = MppaQueue;
    type Graph = MppaGraph;

    fn allocate(&self, request: &Allocate<'_, MppaQueue>) -> Result<MppaBuffer> {
        make!(self.kernels("allocate")?, device => device.allocate(&unordered(request)))
    }

    fn import_host(&self, space: u32, memory: HostBytesMut) -> Result<MppaBuffer> {
        make!(self.kernels("import_host")?, device => device.import_host(space, memory))
    }

    fn import_device_memory(&self, space: u32, memory: DeviceBytes) -> Result<MppaBuffer> {
        make!(self.kernels("import_device_memory")?, device => device.import_device_memory(space, memory))
    }

    fn load(&self, source: &Source<'_>) -> Result<MppaModule> {
        make!(self.kernels("load")?, device => device.load(source))
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        delegate!(self.kernels("compiler_identity")?, device => device.compiler_identity(source))
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        delegate!(self.kernels("compile")?, device => device.compile(source))
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        delegate!(self.kernels("fits")?, device => device.fits(code))
    }

    fn open_queue(&self, options: &QueueOptions) -> Result<MppaQueue> {
        make!(self.kernels("open_queue")?, device => device.open_queue(options))
    }

    fn open_native_queue(&self, native: u64) -> Result<MppaQueue> {
        make!(self.kernels("queue_from_native")?, device => device.open_native_queue(native))
    }

    fn native(&self) -> Result<Vec<NativeHandle>> {
        delegate!(self.kernels("native")?, device => device.native())
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, MppaBuffer, MppaKernel>]) -> Result<MppaGraph> {
        let ByTransport::OpenCl(device) = self.kernels("instantiate")? else {
            return Err(Error::unsupported("the offload library has no graphs"));
        };
        let mut launches = retyped_launches(nodes)?;
        device.instantiate(&opencl_nodes(nodes, &mut launches)?).map(ByTransport::OpenCl)
    }

    fn counters(&self) -> Result<Vec<CounterInfo>> {
        delegate!(self.kernels("counters")?, device => device.counters())
    }

    fn open_counters(&self, names: &[&str]) -> Result<Box<dyn CounterSet>> {
        delegate!(self.kernels("counters")?, device => device.open_counters(names))
    }

    fn flash(&self, image: &Source<'_>, program: &Program<'_>) -> Result<()> {
        self.program("flash")?.flash(image, program)
    }

    fn run(&self, deadline: Duration) -> Result<RunReport> {
        self.program("run")?.run(deadline)
    }

    fn read(&self, tensor: u32, offset: u64, destination: &mut [u8]) -> Result<()> {
        self.program("read")?.read(tensor, offset, destination)
    }
}

/// The request without its queue: no device of this backend orders allocations by queues.
const fn unordered<'a, Q>(request: &Allocate<'_, MppaQueue>) -> Allocate<'a, Q> {
    let &Allocate { space, bytes, alignment_bytes, huge_pages, .. } = request;
    Allocate { space, bytes, alignment_bytes, huge_pages, queue: None }
}

/// The launches of a graph, in order.
fn retyped_launches<'a>(
    nodes: &[GraphNode<'a, MppaBuffer, MppaKernel>],
) -> Result<Vec<RetypedLaunch<'a, OpenClBuffer>>> {
    let launches = nodes.iter().filter_map(|node| match &node.work {
        GraphWork::Launch { launch, .. } => Some(opencl_launch(launch)),
        _ => None,
    });
    launches.collect()
}

/// The nodes of a graph with OpenCL's objects.
fn opencl_nodes<'a>(
    nodes: &[GraphNode<'a, MppaBuffer, MppaKernel>],
    launches: &'a mut [RetypedLaunch<'a, OpenClBuffer>],
) -> Result<Vec<GraphNode<'a, OpenClBuffer, OpenClKernel>>> {
    let mut launches = launches.iter_mut();
    let missing = || Error::new(ErrorKind::Internal, "a launch is missing");
    let nodes = nodes.iter().map(|node| {
        let work = match node.work {
            GraphWork::Launch { kernel, .. } => GraphWork::Launch {
                kernel: kernel.opencl()?,
                launch: launches.next().ok_or_else(missing)?.launch(),
            },
            GraphWork::Copy { destination: (to, to_offset), source: (from, from_offset), bytes } => {
                GraphWork::Copy {
                    destination: (to.opencl()?, to_offset),
                    source: (from.opencl()?, from_offset),
                    bytes,
                }
            }
            GraphWork::Fill { destination: (to, offset), bytes, pattern } => {
                GraphWork::Fill { destination: (to.opencl()?, offset), bytes, pattern }
            }
        };
        Ok(GraphNode { work, dependencies: node.dependencies })
    });
    nodes.collect()
}
