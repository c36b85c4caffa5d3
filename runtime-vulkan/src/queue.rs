//! Queues: submissions are recorded at once, and handed to the driver in batches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::abi::{Place, Progress};
use runtime_core::backend::{HostBytes, HostBytesMut, Launch, Queue, RowCopy};
use runtime_core::{Error, Result};
use smallvec::SmallVec;

use crate::context::Context;
use crate::convert::{self, Piece};
use crate::fill::{self, Step};
use crate::graph::VulkanGraph;
use crate::launch::Packed;
use crate::memory::VulkanBuffer;
use crate::module::VulkanKernel;
use crate::progress::{Landing, Shared};
use crate::record::{Keep, RING_PIECE_BYTES, Recorder};
use crate::staging::{Host, Transfer};

/// Longest that a wait without a deadline blocks in the driver; whoever waits looks then, and goes on.
const BLOCKED_SLICE: Duration = Duration::from_secs(5);

/// Bytes of an upload for what a fill copies.
const FILL_BYTES: u64 = 16;

/// Largest transfer that is made by the submission itself, where the program reaches the memory and the queue is idle;
/// on a processor, which would make it by itself too, any that is made in one piece.
const AT_ONCE_BYTES: u64 = 4 << 20;

/// An in-order queue of a device.
#[derive(Debug)]
pub struct VulkanQueue {
    recorder: Mutex<Recorder>,
    shared: Arc<Shared>,
}

impl VulkanQueue {
    pub(crate) fn open(context: &Arc<Context>) -> Result<Self> {
        context.logical.check_alive()?;
        let shared = Arc::new(Shared::new(context)?);
        Ok(Self { recorder: Mutex::new(Recorder::new(&shared)?), shared })
    }

    fn check_own(&self, what: &str, buffer: &VulkanBuffer) -> Result<()> {
        if Arc::ptr_eq(buffer.context(), &self.shared.context) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "{what} of another Vulkan device is not supported; read and write it instead"
        )))
    }
}

impl Queue for VulkanQueue {
    type Buffer = VulkanBuffer;
    type Kernel = VulkanKernel;
    type Graph = VulkanGraph;

    #[inline]
    fn launch(&self, place: Place, kernel: &VulkanKernel, launch: &Launch<'_, VulkanBuffer>) -> Result<()> {
        let mut packed = Packed::default();
        packed.fill(kernel, launch)?;
        let mut recorder = self.recorder.lock();
        let commands = if packed.has_copies() {
            packed.copies().for_each(|copy| recorder.keep(copy as Keep));
            recorder.commands(place)?
        } else {
            recorder.commands_of_kernel(place)?
        };
        packed.record(kernel, commands)?;
        recorder.writes_seen(packed.seen);
        recorder.took(place.ticket);
        Ok(())
    }

    fn write(&self, place: Place, destination: &VulkanBuffer, offset: u64, source: HostBytes) -> Result<()> {
        let bytes = source.len() as u64;
        destination.check("write", offset, bytes)?;
        let mut recorder = self.recorder.lock();
        if bytes > 0 {
            let reached = destination.memory.host().is_some();
            if reached && self.is_made_at_once(bytes) && recorder.is_idle()? {
                destination.memory.write(offset, &source, 0, source.len());
                recorder.ended(place.ticket);
                return Ok(());
            }
            if bytes > RING_PIECE_BYTES {
                return self.stage(&mut recorder, place.ticket, destination, offset, Host::Source(source));
            }
            let (memory, from) = recorder.upload(bytes, place.ticket)?;
            memory.write(from, &source, 0, source.len());
            recorder.commands(place)?.copy((&destination.memory, offset), (&memory, from), bytes);
            recorder.writes_seen(destination.is_seen());
        }
        recorder.took(place.ticket);
        Ok(())
    }

    fn read(
        &self,
        place: Place,
        source: &VulkanBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        let bytes = destination.len() as u64;
        source.check("read", offset, bytes)?;
        let mut recorder = self.recorder.lock();
        if bytes > 0 {
            let cached = source.memory.host().is_some() && source.memory.is_cached();
            if cached && self.is_made_at_once(bytes) && recorder.is_idle()? {
                source.memory.read(offset, &destination, 0, destination.len());
                recorder.ended(place.ticket);
                return Ok(());
            }
            if bytes > RING_PIECE_BYTES {
                return self.stage(
                    &mut recorder,
                    place.ticket,
                    source,
                    offset,
                    Host::Destination(destination),
                );
            }
            let (from, at) = recorder.download(bytes, place.ticket)?;
            recorder.commands(place)?.copy((&from, at), (&source.memory, offset), bytes);
            self.shared.expect(Landing { ticket: place.ticket, from, offset: at, destination });
        }
        recorder.took(place.ticket);
        Ok(())
    }

    fn copy(
        &self,
        place: Place,
        destination: (&VulkanBuffer, u64),
        source: (&VulkanBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        destination.0.check("copy: destination", destination.1, bytes)?;
        source.0.check("copy: source", source.1, bytes)?;
        self.check_own("copy: destination", destination.0)?;
        self.check_own("copy: source", source.0)?;
        let mut recorder = self.recorder.lock();
        if bytes > 0 {
            let (to, from) = ((&*destination.0.memory, destination.1), (&*source.0.memory, source.1));
            recorder.commands(place)?.copy(to, from, bytes);
            recorder.writes_seen(destination.0.is_seen());
        }
        recorder.took(place.ticket);
        Ok(())
    }

    fn copy_rows(&self, place: Place, rows: &RowCopy<'_, VulkanBuffer>) -> Result<()> {
        let (to, from) = (rows.destination, rows.source);
        to.0.check("copy_rows: destination", to.1, rows.span_bytes(rows.destination_pitch))?;
        from.0.check("copy_rows: source", from.1, rows.span_bytes(rows.source_pitch))?;
        self.check_own("copy_rows: destination", to.0)?;
        self.check_own("copy_rows: source", from.0)?;
        let mut recorder = self.recorder.lock();
        recorder.commands(place)?.copy_rows(
            ((&*to.0.memory, to.1), rows.destination_pitch),
            ((&*from.0.memory, from.1), rows.source_pitch),
            rows.row_bytes,
            rows.rows,
        );
        recorder.writes_seen(to.0.is_seen());
        recorder.took(place.ticket);
        Ok(())
    }

    fn fill(
        &self,
        place: Place,
        destination: (&VulkanBuffer, u64),
        bytes: u64,
        pattern: &[u8],
    ) -> Result<()> {
        let wide = fill::pattern(pattern, bytes)?;
        let (buffer, offset) = destination;
        buffer.check("fill", offset, bytes)?;
        let mut recorder = self.recorder.lock();
        if bytes > 0 {
            let pieces = convert::pieces(buffer.memory.start + offset, bytes, wide);
            self.record_fill(&mut recorder, place, buffer, pieces)?;
            recorder.writes_seen(buffer.is_seen());
        }
        recorder.took(place.ticket);
        Ok(())
    }

    fn empty(&self, place: Place) -> Result<()> {
        let builtins = self.shared.context.builtins()?;
        let mut recorder = self.recorder.lock();
        recorder.keep(Arc::clone(&builtins) as Keep);
        builtins.record_empty(recorder.commands_of_kernel(place)?)?;
        recorder.took(place.ticket);
        Ok(())
    }

    fn timestamp(&self, place: Place) -> Result<()> {
        let mut recorder = self.recorder.lock();
        let ended = self.shared.completed();
        let logical = &self.shared.context.logical;
        let commands = recorder.commands_of_stamp()?;
        self.shared.timestamps.lock().record(logical, commands, place.ticket, ended)?;
        recorder.stamped(place.ticket);
        recorder.took(place.ticket);
        Ok(())
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.shared.context.logical.check_alive()?;
        let counter = self.shared.timestamps.lock().read(ticket)?;
        Ok(self.shared.context.clock.time_ns(counter))
    }

    fn replay(&self, place: Place, graph: &VulkanGraph) -> Result<()> {
        let mut recorder = self.recorder.lock();
        let commands = recorder.commands(place)?;
        let seen = graph.include(commands, &self.shared, place.ticket)?;
        recorder.writes_seen(seen);
        recorder.took(place.ticket);
        Ok(())
    }

    #[inline]
    fn mark(&self, _ticket: u64) -> Result<()> {
        if !self.shared.has_ended() {
            self.recorder.lock().mark();
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        if !self.shared.has_ended() {
            self.recorder.lock().flush();
        }
        Ok(())
    }

    fn poll(&self) -> Result<Progress> {
        let completed = self.shared.poll()?;
        Ok(Progress { completed, first_failed: self.shared.first_failed() })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.shared.wait(ticket, slice)
    }

    fn finish(&self, ticket: u64) -> Result<()> {
        if self.shared.has_ended() || self.shared.is_staged() {
            return Ok(());
        }
        let mut recorder = self.recorder.lock();
        if !recorder.is_end(ticket) {
            return Ok(());
        }
        recorder.flush();
        drop(recorder);
        if self.shared.was_handed(ticket) { self.shared.wait(ticket, BLOCKED_SLICE) } else { Ok(()) }
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        let source = &other.shared;
        if source.poll()? >= ticket {
            return Ok(());
        }
        if !Arc::ptr_eq(&source.context, &self.shared.context) {
            return Err(Error::unsupported(
                "the device cannot wait for one that shares no semaphore with it",
            ));
        }
        source.settle();
        if !source.was_handed(ticket) {
            other.recorder.lock().flush();
        }
        // What the driver does not have, or did not take, moves no semaphore.
        if !source.was_handed(ticket) && source.poll()? < ticket {
            return Err(Error::unsupported(
                "a wait on the device for what the driver has not taken is not supported",
            ));
        }
        self.recorder.lock().wait_for(&source.semaphore, ticket);
        Ok(())
    }

    fn failure(&self) -> Option<Error> {
        self.shared.failure()
    }
}

impl VulkanQueue {
    fn is_made_at_once(&self, bytes: u64) -> bool {
        let context = &self.shared.context;
        bytes <= AT_ONCE_BYTES
            || context.logical.facts.is_processor() && context.staging().is_one_piece(bytes)
    }

    /// Leaves a large transfer to threads; on a processor this one takes part, if nothing comes before it.
    fn stage(
        &self,
        recorder: &mut Recorder,
        ticket: u64,
        buffer: &VulkanBuffer,
        offset: u64,
        host: Host,
    ) -> Result<()> {
        self.shared.settle();
        let staging = self.shared.context.staging();
        staging.prepare(&host, &buffer.memory)?;
        let joins = self.shared.context.logical.facts.is_processor() && recorder.is_idle()?;
        let before = recorder.before();
        let transfer = Transfer { host, memory: Arc::clone(&buffer.memory), offset, ticket, before };
        recorder.staged(ticket);
        staging.submit(&self.shared, transfer, joins);
        Ok(())
    }

    fn record_fill(
        &self,
        recorder: &mut Recorder,
        place: Place,
        buffer: &VulkanBuffer,
        pieces: impl Iterator<Item = Piece>,
    ) -> Result<()> {
        let context = &self.shared.context;
        let step = |piece| {
            Step::new(context, buffer.memory.start, piece, || recorder.upload(FILL_BYTES, place.ticket))
        };
        let steps: SmallVec<[Step; 3]> = pieces.map(step).collect::<Result<_>>()?;
        for builtins in steps.iter().filter_map(Step::builtins) {
            recorder.keep(Arc::clone(builtins) as Keep);
        }
        let commands = recorder.commands(place)?;
        steps.iter().try_for_each(|step| step.reserve(&context.logical, commands))?;
        steps.iter().try_for_each(|step| step.record(&context.logical, commands, &buffer.memory))
    }
}
