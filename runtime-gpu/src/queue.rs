//! Queues: a stream each, without an event per launch and without callbacks.
//!
//! # States of a ticket
//!
//! Every submission starts with `prepare_submit` and ends with `note_submitted`.
//!
//! ```text
//!              driver call                all work before it has ended
//!  submission ─────────────> on the stream ─────────────────────────────────────> ended: `completed` >= ticket
//!      │                        ▲                                                   ▲
//!      │ pageable, > 64 KiB     │ upload: last piece enqueued, event recorded       │
//!      └──────────────────> staging ────────────────────────────────────────────────┘
//!                           `staging` = ticket    download: last byte in host memory, or a piece failed:
//!                                                 `completed_by_host` = ticket, and `failure` set if it failed
//! ```
//!
//! While a ticket is staged, `prepare_submit` blocks, so at most one ticket of a queue is staged, and it is the last one.
//!
//! # How the end of a ticket is observed
//!
//! ```text
//!               core calls `signal`             next submission, or a wait by another queue
//!  no event ──────────────────────────> pending ────────────────────────────────────────────> recorded
//!     ▲                                    │                                                     │
//!     │        a poll sees its end         │                            a poll retires the event │
//!     └────────────────────────────────────┴─────────────────────────────────────────────────────┘
//! ```
//!
//! Pending is `pending_event` = ticket, otherwise 0. The event of a staged upload is recorded when its staging ends.
//!
//! A poll takes the newest complete event and `completed_by_host`; with no event recorded and nothing staged, an idle stream
//! means that everything submitted has ended. A launch that is waited for before the next submission thus costs no event.
//! Small reads go to a pinned block: the poll that sees them ended copies the bytes to the caller's memory first.

#![allow(unsafe_code, reason = "submits through the driver")]

use std::sync::Arc;
use std::time::Duration;

use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{
    Copy2D, FillPattern, HostBytes, HostBytesMut, HostRange, Launch, NativeHandle, Queue, StagingOptions,
};
use runtime_core::{Error, QueueOptions, Result};

use crate::convert::memset_unit;
use crate::device_state::DeviceState;
use crate::driver::abi::{self, CuResult, DevicePtr, Memcpy2D, Pitched, Stream};
use crate::free_list::FreeList;
use crate::graph::CudaGraph;
use crate::launch;
use crate::memory::{CudaBuffer, memory_type};
use crate::module::CudaKernel;
use crate::pinned_blocks::BLOCK_BYTES;
use crate::progress::{Readback, StreamState};
use crate::staging::KeptDevice;

/// An in-order queue of a device: a stream.
#[derive(Debug)]
pub struct CudaQueue {
    pub(crate) state: Arc<StreamState>,
    shared: Arc<DeviceState>,
    staging: StagingOptions,
}

impl CudaQueue {
    pub(crate) fn open(
        shared: &Arc<DeviceState>,
        options: &QueueOptions,
        staging: StagingOptions,
        free_list: FreeList,
    ) -> Result<Self> {
        shared.primary.check_alive()?;
        let stream = shared.primary.open_stream(options.priority)?;
        Ok(Self::over(shared, (stream, false), staging, free_list))
    }

    /// A queue over a stream of the program. It keeps no free memory, whose release would use the stream later.
    pub(crate) fn borrow(shared: &Arc<DeviceState>, native: u64, staging: StagingOptions) -> Result<Self> {
        shared.primary.check_alive()?;
        let stream = shared.primary.borrow_stream(native)?;
        Ok(Self::over(shared, (stream, true), staging, FreeList::new(0)))
    }

    fn over(
        shared: &Arc<DeviceState>,
        stream: (Stream, bool),
        staging: StagingOptions,
        free_list: FreeList,
    ) -> Self {
        let memory = (shared.pool.as_ref(), free_list);
        let state = Arc::new(StreamState::new(&shared.primary, stream, &shared.clock, memory));
        shared.add_queue(&state);
        Self { state, shared: Arc::clone(shared), staging }
    }

    /// Whether the queue belongs to this device.
    pub(crate) fn belongs_to(&self, shared: &Arc<DeviceState>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Must precede every submission; see [`StreamState::prepare_submit`].
    pub(crate) fn prepare_submit(&self) -> Result<()> {
        self.state.prepare_submit()
    }

    /// Records that an allocation is submitted as `ticket`.
    pub(crate) fn note_submitted(&self, ticket: u64) {
        self.state.log.note_submitted(ticket);
    }

    /// Submits a copy between any two addresses of device or host memory.
    fn submit_copy(&self, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result<()> {
        let primary = &*self.state.primary;
        let _current = primary.make_current()?;
        // SAFETY: both ranges were checked, and core keeps them until the ticket has ended.
        let code = unsafe { (primary.driver.cuMemcpyAsync)(to, from, bytes, self.state.stream.0) };
        primary.check("cuMemcpyAsync", code)
    }

    /// Submits a copy between the memories of two devices.
    fn submit_peer_copy(
        &self,
        (to, destination): (DevicePtr, &CudaBuffer),
        (from, source): (DevicePtr, &CudaBuffer),
        bytes: usize,
    ) -> Result<()> {
        let primary = &*self.state.primary;
        let (there, here) = (&destination.shared, &source.shared);
        // Without peer access the driver copies through the host.
        there.enable_peer(here)?;
        here.enable_peer(there)?;
        let _current = primary.make_current()?;
        // SAFETY: both ranges were checked, the contexts are theirs, and core keeps them until the ticket has ended.
        let code = unsafe {
            (primary.driver.cuMemcpyPeerAsync)(
                to,
                there.primary.context.0,
                from,
                here.primary.context.0,
                bytes,
                self.state.stream.0,
            )
        };
        primary.check("cuMemcpyPeerAsync", code)
    }

    /// Whether the queue's device can access this memory without a peer copy.
    fn can_access(&self, buffer: &CudaBuffer) -> bool {
        buffer.shared.primary.ordinal == self.state.primary.ordinal || !buffer.is_on_device()
    }

    /// Submits a copy of pitched rows.
    fn submit_copy_2d(&self, copy: &Memcpy2D) -> Result<()> {
        let primary = &*self.state.primary;
        let _current = primary.make_current()?;
        // SAFETY: both ranges were checked, and core keeps them until the ticket has ended.
        match unsafe { (primary.driver.cuMemcpy2DAsync_v2)(std::ptr::from_ref(copy), self.state.stream.0) } {
            CuResult::CUDA_ERROR_INVALID_VALUE => Err(Error::unsupported(
                "the pitch exceeds the limit of the device (CU_DEVICE_ATTRIBUTE_MAX_PITCH)",
            )),
            code => primary.check("cuMemcpy2DAsync", code),
        }
    }

    /// Whether this host memory is pinned, so that the driver copies it at full speed.
    fn is_pinned(&self, host: DevicePtr) -> bool {
        memory_type(&self.state.primary, host) == Some(abi::HOST_MEMORY)
    }

    fn stage(&self, ticket: u64, host: HostRange, device: DevicePtr) -> Result<()> {
        let transfer_of = (&self.state, Arc::clone(&self.shared) as KeptDevice);
        self.shared.staging(self.staging).submit(transfer_of, ticket, host, device)
    }

    /// Reads into a pinned block; the bytes are copied on when the ticket ends.
    fn read_small(&self, ticket: u64, from: DevicePtr, destination: HostBytesMut) -> Result<()> {
        let block = self.shared.pinned_blocks.allocate()?;
        self.submit_copy(block.address(), from, destination.len())?;
        self.state.push_readback(Readback { ticket, block, destination });
        Ok(())
    }

    fn submit_fill(&self, to: DevicePtr, bytes: u64, pattern: FillPattern) -> Result<()> {
        let (primary, stream) = (&*self.state.primary, self.state.stream);
        let Some((unit, value)) = memset_unit(&pattern, to) else {
            let builtins = self.shared.builtins()?;
            return builtins.launch_fill(stream, &builtins.fill(to, bytes, pattern.repeated()));
        };
        let _current = primary.make_current()?;
        let (driver, count) = (primary.driver, length(bytes)? / unit as usize);
        let [low, high, ..] = value.to_le_bytes();
        let code = match unit {
            // SAFETY: the range was checked, and core keeps it until the ticket has ended.
            1 => unsafe { (driver.cuMemsetD8Async)(to, low, count, stream.0) },
            // SAFETY: the range was checked, and core keeps it until the ticket has ended; the address is aligned.
            2 => unsafe { (driver.cuMemsetD16Async)(to, u16::from_le_bytes([low, high]), count, stream.0) },
            // SAFETY: the range was checked, and core keeps it until the ticket has ended; the address is aligned.
            _ => unsafe { (driver.cuMemsetD32Async)(to, value, count, stream.0) },
        };
        primary.check("cuMemsetAsync", code)
    }
}

impl Queue for CudaQueue {
    type Buffer = CudaBuffer;
    type Kernel = CudaKernel;
    type Graph = CudaGraph;

    #[inline]
    fn launch(&self, submit: SubmitInfo, kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>) -> Result<()> {
        let state = &*self.state;
        state.prepare_submit()?;
        launch::submit(kernel, launch, state.stream)?;
        state.log.note_launch(submit.ticket, kernel.name);
        state.log.note_submitted(submit.ticket);
        Ok(())
    }

    fn write(
        &self,
        submit: SubmitInfo,
        destination: &CudaBuffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()> {
        self.state.prepare_submit()?;
        let bytes = source.len();
        let to = destination.range("write", offset, bytes as u64)?;
        let from = source.as_ptr().expose_provenance() as DevicePtr;
        match bytes {
            0 => {}
            // The driver copies small pageable sources before it returns, even if the stream is waiting.
            1..=BLOCK_BYTES => self.submit_copy(to, from, bytes)?,
            _ if !destination.is_on_device() || self.is_pinned(from) => self.submit_copy(to, from, bytes)?,
            _ => self.stage(submit.ticket, HostRange::Source(source), to)?,
        }
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn read(
        &self,
        submit: SubmitInfo,
        source: &CudaBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        self.state.prepare_submit()?;
        let bytes = destination.len();
        let from = source.range("read", offset, bytes as u64)?;
        let to = destination.as_ptr().expose_provenance() as DevicePtr;
        match bytes {
            0 => {}
            1..=BLOCK_BYTES => self.read_small(submit.ticket, from, destination)?,
            _ if self.is_pinned(to) => self.submit_copy(to, from, bytes)?,
            _ => self.stage(submit.ticket, HostRange::Destination(destination), from)?,
        }
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        destination: (&CudaBuffer, u64),
        source: (&CudaBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        self.state.prepare_submit()?;
        let to = destination.0.range("copy: destination", destination.1, bytes)?;
        let from = source.0.range("copy: source", source.1, bytes)?;
        let bytes = length(bytes)?;
        if bytes > 0 {
            if self.can_access(destination.0) && self.can_access(source.0) {
                self.submit_copy(to, from, bytes)?;
            } else {
                self.submit_peer_copy((to, destination.0), (from, source.0), bytes)?;
            }
        }
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn copy_2d(&self, submit: SubmitInfo, rows: &Copy2D<'_, CudaBuffer>) -> Result<()> {
        self.state.prepare_submit()?;
        let ((to, to_offset), (from, from_offset)) = (rows.destination, rows.source);
        if !self.can_access(to) || !self.can_access(from) {
            return Err(Error::unsupported("copies of pitched rows between devices are not supported"));
        }
        let endpoint = |what, buffer: &CudaBuffer, offset, pitch| {
            let address = buffer.range(what, offset, rows.span_bytes(pitch))?;
            Ok::<_, Error>(Pitched { address, pitch_bytes: length(pitch)? })
        };
        let source = endpoint("copy_2d: source", from, from_offset, rows.source_pitch)?;
        let destination = endpoint("copy_2d: destination", to, to_offset, rows.destination_pitch)?;
        let copy = abi::copy_2d(destination, source, length(rows.row_bytes)?, length(rows.rows)?);
        self.submit_copy_2d(&copy)?;
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        destination: (&CudaBuffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()> {
        self.state.prepare_submit()?;
        let to = destination.0.range("fill", destination.1, bytes)?;
        if bytes > 0 {
            self.submit_fill(to, bytes, pattern)?;
        }
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        self.state.prepare_submit()?;
        self.shared.builtins()?.launch_noop(self.state.stream)?;
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        self.state.prepare_submit()?;
        self.state.record_timestamp(submit.ticket)?;
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.state.read_timestamp(ticket)
    }

    fn replay(&self, submit: SubmitInfo, graph: &CudaGraph) -> Result<()> {
        self.state.prepare_submit()?;
        graph.launch(self.state.stream)?;
        self.state.log.note_launch(submit.ticket, graph.name);
        self.note_submitted(submit.ticket);
        Ok(())
    }

    fn submit_native(&self, submit: SubmitInfo, work: &mut dyn FnMut(&[NativeHandle])) -> Result<()> {
        self.state.prepare_submit()?;
        let primary = &*self.state.primary;
        let _current = primary.make_current()?;
        work(&[
            NativeHandle::pointer("CUstream", self.state.stream.0),
            NativeHandle::pointer("CUcontext", primary.context.0),
        ]);
        self.note_submitted(submit.ticket);
        Ok(())
    }

    #[inline]
    fn signal(&self, ticket: u64) -> Result<()> {
        self.state.request_event(ticket);
        Ok(())
    }

    fn poll(&self) -> Result<Progress> {
        let completed = self.state.poll()?;
        Ok(Progress { completed, first_failed: self.state.first_failed() })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.state.wait(ticket, slice)
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        self.state.wait_for(&other.state, ticket)
    }

    fn failure(&self) -> Option<Error> {
        self.state.failure()
    }
}

fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::invalid(format!("{bytes} bytes exceed the address space")))
}
