//! Queues of one of the transports that run kernels.

use std::time::Duration;

use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{Copy2D, FillPattern, HostBytes, HostBytesMut, Launch, NativeHandle, Queue};
use runtime_core::{Error, Result};

use crate::transport::{ByTransport, delegate, offload_launch, opencl_launch, with_same};

impl<A: Queue, B: Queue> Queue for ByTransport<A, B> {
    type Buffer = ByTransport<A::Buffer, B::Buffer>;
    type Kernel = ByTransport<A::Kernel, B::Kernel>;
    type Graph = ByTransport<A::Graph, B::Graph>;

    fn launch(
        &self,
        submit: SubmitInfo,
        kernel: &Self::Kernel,
        launch: &Launch<'_, Self::Buffer>,
    ) -> Result<()> {
        match self {
            Self::OpenCl(queue) => queue.launch(submit, kernel.opencl()?, &opencl_launch(launch)?.launch()),
            Self::Offload(queue) => {
                queue.launch(submit, kernel.offload()?, &offload_launch(launch)?.launch())
            }
        }
    }

    fn write(&self, submit: SubmitInfo, to: &Self::Buffer, offset: u64, source: HostBytes) -> Result<()> {
        with_same!((self, to), (queue, to) => queue.write(submit, to, offset, source))
    }

    fn read(&self, submit: SubmitInfo, from: &Self::Buffer, offset: u64, to: HostBytesMut) -> Result<()> {
        with_same!((self, from), (queue, from) => queue.read(submit, from, offset, to))
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        (to, to_offset): (&Self::Buffer, u64),
        (from, from_offset): (&Self::Buffer, u64),
        bytes: u64,
    ) -> Result<()> {
        with_same!((self, to, from), (queue, to, from) => {
            queue.copy(submit, (to, to_offset), (from, from_offset), bytes)
        })
    }

    fn copy_2d(&self, submit: SubmitInfo, rows: &Copy2D<'_, Self::Buffer>) -> Result<()> {
        let ((to, to_offset), (from, from_offset)) = (rows.destination, rows.source);
        let &Copy2D { destination_pitch, source_pitch, row_bytes, rows, .. } = rows;
        with_same!((self, to, from), (queue, to, from) => {
            let (destination, source) = ((to, to_offset), (from, from_offset));
            queue.copy_2d(submit, &Copy2D { destination, destination_pitch, source, source_pitch, row_bytes, rows })
        })
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        (to, offset): (&Self::Buffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()> {
        with_same!((self, to), (queue, to) => queue.fill(submit, (to, offset), bytes, pattern))
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        delegate!(self, queue => queue.noop(submit))
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        delegate!(self, queue => queue.timestamp(submit))
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        delegate!(self, queue => queue.read_timestamp(ticket))
    }

    fn replay(&self, submit: SubmitInfo, graph: &Self::Graph) -> Result<()> {
        with_same!((self, graph), (queue, graph) => queue.replay(submit, graph))
    }

    fn signal(&self, ticket: u64) -> Result<()> {
        delegate!(self, queue => queue.signal(ticket))
    }

    fn flush(&self) -> Result<()> {
        delegate!(self, queue => queue.flush())
    }

    fn poll(&self) -> Result<Progress> {
        delegate!(self, queue => queue.poll())
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        delegate!(self, queue => queue.wait(ticket, slice))
    }

    fn wait_blocking(&self, ticket: u64) -> Result<()> {
        delegate!(self, queue => queue.wait_blocking(ticket))
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        with_same!((self, other), (queue, other) => queue.wait_for(other, ticket))
    }

    fn submit_native(&self, submit: SubmitInfo, work: &mut dyn FnMut(&[NativeHandle])) -> Result<()> {
        delegate!(self, queue => queue.submit_native(submit, work))
    }

    fn hold(&self) -> Result<()> {
        delegate!(self, queue => queue.hold())
    }

    fn resume(&self) -> Result<bool> {
        delegate!(self, queue => queue.resume())
    }

    fn failure(&self) -> Option<Error> {
        delegate!(self, queue => queue.failure())
    }
}
