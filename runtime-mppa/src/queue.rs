//! Queues of one of the transports that run kernels.

use std::time::Duration;

use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{Copy2D, FillPattern, HostBytes, HostBytesMut, Launch, Queue};
use runtime_core::{Error, Result};
use runtime_opencl::OpenClQueue;

use crate::offload::OffloadQueue;
use crate::transport::{
    ByTransport, MppaBuffer, MppaGraph, MppaKernel, delegate, offload_launch, opencl_launch,
};

/// An in-order queue of a device.
#[derive(Debug)]
pub struct MppaQueue(pub(crate) ByTransport<OpenClQueue, OffloadQueue>);

/// `Unsupported` makes core stage the copy through the host.
fn staged() -> Error {
    Error::unsupported("copies between devices of different transports are not supported")
}

impl Queue for MppaQueue {
    type Buffer = MppaBuffer;
    type Kernel = MppaKernel;
    type Graph = MppaGraph;

    fn launch(&self, submit: SubmitInfo, kernel: &MppaKernel, launch: &Launch<'_, MppaBuffer>) -> Result<()> {
        match &self.0 {
            ByTransport::OpenCl(queue) => {
                queue.launch(submit, kernel.0.opencl()?, &opencl_launch(launch)?.launch())
            }
            ByTransport::Offload(queue) => {
                queue.launch(submit, kernel.0.offload()?, &offload_launch(launch)?.launch())
            }
        }
    }

    fn try_begin_inline(&self, ticket: u64) -> bool {
        delegate!(&self.0, queue => queue.try_begin_inline(ticket))
    }

    fn run_inline(&self, ticket: u64, kernel: &MppaKernel, launch: &Launch<'_, MppaBuffer>) -> Result<()> {
        match &self.0 {
            ByTransport::OpenCl(queue) => {
                queue.run_inline(ticket, kernel.0.opencl()?, &opencl_launch(launch)?.launch())
            }
            ByTransport::Offload(queue) => {
                queue.run_inline(ticket, kernel.0.offload()?, &offload_launch(launch)?.launch())
            }
        }
    }

    fn run_inline_noop(&self, ticket: u64) -> Result<()> {
        delegate!(&self.0, queue => queue.run_inline_noop(ticket))
    }

    fn write(
        &self,
        submit: SubmitInfo,
        destination: &MppaBuffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()> {
        match &self.0 {
            ByTransport::OpenCl(queue) => queue.write(submit, destination.0.opencl()?, offset, source),
            ByTransport::Offload(queue) => queue.write(submit, destination.0.offload()?, offset, source),
        }
    }

    fn read(
        &self,
        submit: SubmitInfo,
        source: &MppaBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        match &self.0 {
            ByTransport::OpenCl(queue) => queue.read(submit, source.0.opencl()?, offset, destination),
            ByTransport::Offload(queue) => queue.read(submit, source.0.offload()?, offset, destination),
        }
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        (to, to_offset): (&MppaBuffer, u64),
        (from, from_offset): (&MppaBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        match (&self.0, &to.0, &from.0) {
            (ByTransport::OpenCl(queue), ByTransport::OpenCl(to), ByTransport::OpenCl(from)) => {
                queue.copy(submit, (to, to_offset), (from, from_offset), bytes)
            }
            (ByTransport::Offload(queue), ByTransport::Offload(to), ByTransport::Offload(from)) => {
                queue.copy(submit, (to, to_offset), (from, from_offset), bytes)
            }
            _ => Err(staged()),
        }
    }

    fn copy_2d(&self, submit: SubmitInfo, rows: &Copy2D<'_, MppaBuffer>) -> Result<()> {
        let ((to, to_offset), (from, from_offset)) = (rows.destination, rows.source);
        match (&self.0, &to.0, &from.0) {
            (ByTransport::OpenCl(queue), ByTransport::OpenCl(to), ByTransport::OpenCl(from)) => {
                let rows = Copy2D {
                    destination: (to, to_offset),
                    destination_pitch: rows.destination_pitch,
                    source: (from, from_offset),
                    source_pitch: rows.source_pitch,
                    row_bytes: rows.row_bytes,
                    rows: rows.rows,
                };
                queue.copy_2d(submit, &rows)
            }
            _ => Err(Error::unsupported("copy_2d is not supported by the offload library")),
        }
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        (to, offset): (&MppaBuffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()> {
        match &self.0 {
            ByTransport::OpenCl(queue) => queue.fill(submit, (to.0.opencl()?, offset), bytes, pattern),
            ByTransport::Offload(queue) => queue.fill(submit, (to.0.offload()?, offset), bytes, pattern),
        }
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        delegate!(&self.0, queue => queue.noop(submit))
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        delegate!(&self.0, queue => queue.timestamp(submit))
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        delegate!(&self.0, queue => queue.read_timestamp(ticket))
    }

    fn replay(&self, submit: SubmitInfo, graph: &MppaGraph) -> Result<()> {
        match &self.0 {
            ByTransport::OpenCl(queue) => queue.replay(submit, graph.0.opencl()?),
            ByTransport::Offload(queue) => queue.replay(submit, graph.0.offload()?),
        }
    }

    fn signal(&self, ticket: u64) -> Result<()> {
        delegate!(&self.0, queue => queue.signal(ticket))
    }

    fn flush(&self) -> Result<()> {
        delegate!(&self.0, queue => queue.flush())
    }

    fn poll(&self) -> Result<Progress> {
        delegate!(&self.0, queue => queue.poll())
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        delegate!(&self.0, queue => queue.wait(ticket, slice))
    }

    fn wait_blocking(&self, ticket: u64) -> Result<()> {
        delegate!(&self.0, queue => queue.wait_blocking(ticket))
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        match (&self.0, &other.0) {
            (ByTransport::OpenCl(queue), ByTransport::OpenCl(other)) => queue.wait_for(other, ticket),
            (ByTransport::Offload(queue), ByTransport::Offload(other)) => queue.wait_for(other, ticket),
            _ => Err(Error::unsupported("a queue cannot wait for one of another transport")),
        }
    }

    fn hold(&self) -> Result<()> {
        delegate!(&self.0, queue => queue.hold())
    }

    fn resume(&self) -> Result<bool> {
        delegate!(&self.0, queue => queue.resume())
    }

    fn failure(&self) -> Option<Error> {
        delegate!(&self.0, queue => queue.failure())
    }
}
