//! Opened devices.

use std::time::Duration;

use runtime_core::backend::{
    Allocate, CompiledCode, Device, Fit, GraphNode, HostBytesMut, Program, QueueOptions, RunReport, Source,
};
use runtime_core::{Error, Result};
use runtime_opencl::{OpenClBuffer, OpenClDevice, OpenClGraph, OpenClKernel, OpenClModule, OpenClQueue};

use crate::program::ProgramDevice;

/// An opened device.
#[derive(Debug)]
pub struct MppaDevice(pub(crate) Transport);

/// How the device is reached.
#[derive(Debug)]
pub(crate) enum Transport {
    OpenCl(OpenClDevice),
    Program(Box<ProgramDevice>),
}

impl MppaDevice {
    fn opencl(&self, what: &str) -> Result<&OpenClDevice> {
        match &self.0 {
            Transport::OpenCl(device) => Ok(device),
            Transport::Program(_) => Err(Error::unsupported(format!(
                "{what} is not supported: this device runs whole programs; flash one"
            ))),
        }
    }

    fn program(&self, what: &str) -> Result<&ProgramDevice> {
        match &self.0 {
            Transport::Program(device) => Ok(device),
            Transport::OpenCl(_) => Err(Error::unsupported(format!(
                "{what} is not supported: this device runs kernels; open \"mppa:jtag\", \"mppa:iss\" or \"mppa:qemu\" for whole programs"
            ))),
        }
    }
}

impl Device for MppaDevice {
    type Buffer = OpenClBuffer;
    type Module = OpenClModule;
    type Queue = OpenClQueue;
    type Graph = OpenClGraph;

    fn allocate(&self, request: &Allocate<'_, OpenClQueue>) -> Result<OpenClBuffer> {
        self.opencl("allocate")?.allocate(request)
    }

    fn import_host(&self, space: u32, memory: HostBytesMut) -> Result<OpenClBuffer> {
        self.opencl("import_host")?.import_host(space, memory)
    }

    fn load(&self, source: &Source<'_>) -> Result<OpenClModule> {
        self.opencl("load")?.load(source)
    }

    fn compiler_identity(&self, source: &Source<'_>) -> Result<String> {
        self.opencl("compiler_identity")?.compiler_identity(source)
    }

    fn compile(&self, source: &Source<'_>) -> Result<CompiledCode> {
        self.opencl("compile")?.compile(source)
    }

    fn fits(&self, code: &Source<'_>) -> Result<Fit> {
        self.opencl("fits")?.fits(code)
    }

    fn open_queue(&self, options: &QueueOptions) -> Result<OpenClQueue> {
        self.opencl("open_queue")?.open_queue(options)
    }

    fn instantiate(&self, nodes: &[GraphNode<'_, OpenClBuffer, OpenClKernel>]) -> Result<OpenClGraph> {
        self.opencl("instantiate")?.instantiate(nodes)
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
