//! Queues: a stream each, without an event per launch and without callbacks.

#![allow(unsafe_code, reason = "submits through the driver")]

use std::sync::Arc;
use std::time::Duration;

use runtime_core::abi::{Place, Progress};
use runtime_core::backend::{HostBytes, HostBytesMut, Launch, Queue, QueueOptions, RowCopy};
use runtime_core::{Error, Result};

use crate::bounce::BLOCK_BYTES;
use crate::context::Primary;
use crate::convert::Pattern;
use crate::driver::abi::{Address, Code, RowsNode, RowsSide, pointer_attribute};
use crate::graph::CudaGraph;
use crate::launch;
use crate::memory::{CudaBuffer, memory_type};
use crate::module::CudaKernel;
use crate::progress::{Landing, Shared};
use crate::spares::Spares;
use crate::staging::{Transfer, Tuning, Way};

/// An in-order queue of a device.
#[derive(Debug)]
pub struct CudaQueue {
    shared: Arc<Shared>,
    tuning: Tuning,
}

impl CudaQueue {
    pub(crate) fn open(
        primary: &Arc<Primary>,
        options: &QueueOptions,
        tuning: Tuning,
        spares: Spares,
    ) -> Result<Self> {
        primary.check_alive()?;
        let stream = primary.open_stream(options.priority)?;
        let shared = Arc::new(Shared::new(Arc::clone(primary), stream, spares));
        primary.add_queue(&shared);
        Ok(Self { shared, tuning })
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether the queue is of this context.
    pub(crate) fn is_of(&self, primary: &Arc<Primary>) -> bool {
        Arc::ptr_eq(&self.shared.primary, primary)
    }

    /// Makes sure that nothing is between the queue and its stream.
    pub(crate) fn settle(&self) -> Result<()> {
        self.shared.settle()
    }

    /// Notes that an allocation has taken a ticket.
    pub(crate) fn took(&self, ticket: u64) {
        self.shared.took(ticket);
    }

    /// Submits a copy between any two addresses that the driver knows or that are the program's.
    fn submit_copy(&self, to: Address, from: Address, bytes: usize) -> Result<()> {
        let primary = &*self.shared.primary;
        let _current = primary.enter()?;
        // SAFETY: both ranges were checked, and core keeps them until the ticket has ended.
        let code = unsafe { (primary.driver.cuMemcpyAsync)(to, from, bytes, self.shared.stream) };
        primary.check("cuMemcpyAsync", code)
    }

    /// Submits a copy between the memories of two devices.
    fn submit_peer_copy(
        &self,
        (to, destination): (Address, &CudaBuffer),
        (from, source): (Address, &CudaBuffer),
        bytes: usize,
    ) -> Result<()> {
        let primary = &*self.shared.primary;
        let (there, here) = (destination.primary(), source.primary());
        // Without it the driver copies by way of the host.
        there.let_in(here)?;
        here.let_in(there)?;
        let _current = primary.enter()?;
        // SAFETY: both ranges were checked, the contexts are theirs, and core keeps them until the ticket has ended.
        let code = unsafe {
            (primary.driver.cuMemcpyPeerAsync)(
                to,
                there.context,
                from,
                here.context,
                bytes,
                self.shared.stream,
            )
        };
        primary.check("cuMemcpyPeerAsync", code)
    }

    /// Whether the queue's own device copies from and to this memory by itself.
    fn reaches(&self, buffer: &CudaBuffer) -> bool {
        buffer.primary().ordinal == self.shared.primary.ordinal || !buffer.is_on_device()
    }

    /// Submits a copy of rows.
    fn submit_rows(&self, node: &RowsNode) -> Result<()> {
        let primary = &*self.shared.primary;
        let _current = primary.enter()?;
        // SAFETY: both sides were checked, and core keeps them until the ticket has ended.
        match unsafe { (primary.driver.cuMemcpy2DAsync_v2)(std::ptr::from_ref(node), self.shared.stream) } {
            Code::INVALID_VALUE => Err(Error::unsupported(
                "rows so far apart are not copied at once (CU_DEVICE_ATTRIBUTE_MAX_PITCH)",
            )),
            code => primary.check("cuMemcpy2DAsync", code),
        }
    }

    /// Whether the driver copies from and to this memory of the program by itself at full speed.
    fn is_pinned(&self, host: Address) -> bool {
        memory_type(&self.shared.primary, host) == Some(pointer_attribute::HOST_MEMORY)
    }

    fn stage(&self, ticket: u64, transfer: Transfer) -> Result<()> {
        self.shared.primary.staging(self.tuning).submit(&self.shared, ticket, transfer)
    }

    /// Reads into a pinned block, from which the bytes go on when the ticket has ended.
    fn read_small(&self, ticket: u64, from: Address, destination: HostBytesMut) -> Result<()> {
        let primary = &*self.shared.primary;
        let block = primary.bounces.take(primary)?;
        if let Err(error) = self.submit_copy(block.address(), from, destination.len()) {
            primary.bounces.give(block);
            return Err(error);
        }
        self.shared.expect(Landing { ticket, block, destination });
        Ok(())
    }

    fn submit_fill(&self, to: Address, bytes: u64, pattern: Pattern) -> Result<()> {
        let (primary, stream) = (&*self.shared.primary, self.shared.stream);
        let unit = pattern.unit(to).filter(|(unit, _)| bytes.is_multiple_of(u64::from(*unit)));
        let Some((unit, value)) = unit else {
            let builtins = primary.builtins()?;
            return builtins.launch_fill(primary, stream, &builtins.fill(to, bytes, pattern.wide()));
        };
        let _current = primary.enter()?;
        let (driver, count) = (primary.driver, length(bytes)? / unit as usize);
        let [low, high, ..] = value.to_le_bytes();
        let code = match unit {
            // SAFETY: the range was checked, and core keeps it until the ticket has ended.
            1 => unsafe { (driver.cuMemsetD8Async)(to, low, count, stream) },
            // SAFETY: as above, and the address is aligned.
            2 => unsafe { (driver.cuMemsetD16Async)(to, u16::from_le_bytes([low, high]), count, stream) },
            // SAFETY: as above.
            _ => unsafe { (driver.cuMemsetD32Async)(to, value, count, stream) },
        };
        primary.check("cuMemsetAsync", code)
    }
}

impl Queue for CudaQueue {
    type Buffer = CudaBuffer;
    type Kernel = CudaKernel;
    type Graph = CudaGraph;

    #[inline]
    fn launch(&self, place: Place, kernel: &CudaKernel, launch: &Launch<'_, CudaBuffer>) -> Result<()> {
        let shared = &*self.shared;
        shared.settle()?;
        launch::submit(kernel, launch, shared.stream)?;
        shared.launches(place.ticket, kernel.name);
        shared.took(place.ticket);
        Ok(())
    }

    fn write(&self, place: Place, destination: &CudaBuffer, offset: u64, source: HostBytes) -> Result<()> {
        self.shared.settle()?;
        let (host, bytes) = (source.as_ptr(), source.len());
        let to = destination.range("write", offset, bytes as u64)?;
        let from = host.expose_provenance() as Address;
        match bytes {
            0 => {}
            // The driver takes a small piece at once, whatever its stream waits for.
            1..=BLOCK_BYTES => self.submit_copy(to, from, bytes)?,
            _ if !destination.is_on_device() || self.is_pinned(from) => self.submit_copy(to, from, bytes)?,
            _ => {
                let way = Way::ToDevice;
                self.stage(place.ticket, Transfer { way, host: host.cast_mut(), device: to, bytes })?;
            }
        }
        self.shared.took(place.ticket);
        Ok(())
    }

    fn read(&self, place: Place, source: &CudaBuffer, offset: u64, destination: HostBytesMut) -> Result<()> {
        self.shared.settle()?;
        let (host, bytes) = (destination.as_ptr(), destination.len());
        let from = source.range("read", offset, bytes as u64)?;
        let to = host.expose_provenance() as Address;
        match bytes {
            0 => {}
            1..=BLOCK_BYTES => self.read_small(place.ticket, from, destination)?,
            _ if self.is_pinned(to) => self.submit_copy(to, from, bytes)?,
            _ => self.stage(place.ticket, Transfer { way: Way::ToHost, host, device: from, bytes })?,
        }
        self.shared.took(place.ticket);
        Ok(())
    }

    fn copy(
        &self,
        place: Place,
        destination: (&CudaBuffer, u64),
        source: (&CudaBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        self.shared.settle()?;
        let to = destination.0.range("copy: destination", destination.1, bytes)?;
        let from = source.0.range("copy: source", source.1, bytes)?;
        let bytes = length(bytes)?;
        if bytes > 0 {
            if self.reaches(destination.0) && self.reaches(source.0) {
                self.submit_copy(to, from, bytes)?;
            } else {
                self.submit_peer_copy((to, destination.0), (from, source.0), bytes)?;
            }
        }
        self.shared.took(place.ticket);
        Ok(())
    }

    fn copy_rows(&self, place: Place, rows: &RowCopy<'_, CudaBuffer>) -> Result<()> {
        self.shared.settle()?;
        let ((to, to_offset), (from, from_offset)) = (rows.destination, rows.source);
        if !self.reaches(to) || !self.reaches(from) {
            return Err(Error::unsupported("a copy of rows between devices is not supported"));
        }
        let side = |what, buffer: &CudaBuffer, offset, pitch| {
            let address = buffer.range(what, offset, rows.span_bytes(pitch))?;
            Ok::<_, Error>(RowsSide::at(address, length(pitch)?))
        };
        let node = RowsNode {
            source: side("copy_rows: source", from, from_offset, rows.source_pitch)?,
            destination: side("copy_rows: destination", to, to_offset, rows.destination_pitch)?,
            row_bytes: length(rows.row_bytes)?,
            rows: length(rows.rows)?,
        };
        self.submit_rows(&node)?;
        self.shared.took(place.ticket);
        Ok(())
    }

    fn fill(&self, place: Place, destination: (&CudaBuffer, u64), bytes: u64, pattern: &[u8]) -> Result<()> {
        self.shared.settle()?;
        let reduced = Pattern::of(pattern).filter(|_| bytes.is_multiple_of(pattern.len() as u64));
        let reduced = reduced.ok_or_else(|| {
            let unit = pattern.len();
            Error::invalid(format!(
                "fill: {bytes} bytes with a pattern of {unit}; 1, 2, 4, 8 or 16 that divide it"
            ))
        })?;
        let to = destination.0.range("fill", destination.1, bytes)?;
        if bytes > 0 {
            self.submit_fill(to, bytes, reduced)?;
        }
        self.shared.took(place.ticket);
        Ok(())
    }

    fn empty(&self, place: Place) -> Result<()> {
        self.shared.settle()?;
        let primary = &*self.shared.primary;
        primary.builtins()?.launch_empty(primary, self.shared.stream)?;
        self.shared.took(place.ticket);
        Ok(())
    }

    fn timestamp(&self, place: Place) -> Result<()> {
        self.shared.settle()?;
        self.shared.stamp(place.ticket)?;
        self.shared.took(place.ticket);
        Ok(())
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.shared.read_stamp(ticket)
    }

    fn replay(&self, place: Place, graph: &CudaGraph) -> Result<()> {
        self.shared.settle()?;
        graph.launch(self.shared.stream)?;
        self.shared.launches(place.ticket, graph.name);
        self.shared.took(place.ticket);
        Ok(())
    }

    #[inline]
    fn mark(&self, ticket: u64) -> Result<()> {
        self.shared.mark(ticket);
        Ok(())
    }

    fn poll(&self) -> Result<Progress> {
        let completed = self.shared.poll()?;
        Ok(Progress { completed, first_failed: self.shared.first_failed() })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.shared.wait(ticket, slice)
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        self.shared.wait_for(&other.shared, ticket)
    }

    fn failure(&self) -> Option<Error> {
        self.shared.failure()
    }
}

fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes)
        .map_err(|_| Error::invalid(format!("{bytes} bytes are more than there are addresses")))
}
