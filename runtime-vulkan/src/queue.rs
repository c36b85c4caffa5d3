//! Queues: submissions are recorded at once and submitted to the driver in batches.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLockReadGuard};
use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{
    Copy2D, FillPattern, HostBytes, HostBytesMut, HostRange, Launch, NativeHandle, Queue,
};
use runtime_core::{Error, Result};
use smallvec::SmallVec;

use crate::batches::{BatchRecorder, Retained};
use crate::convert::{self, FillPiece};
use crate::device_state::DeviceState;
use crate::fill::FillStep;
use crate::graph::VulkanGraph;
use crate::launch::PackedArgs;
use crate::memory::VulkanBuffer;
use crate::module::VulkanKernel;
use crate::progress::{QueueProgress, Readback};
use crate::staging::Transfer;
use crate::transfer_ring::MAX_RING_TRANSFER_BYTES;

/// Longest that a wait without a deadline blocks in the driver; core polls then, and waits again.
const WAIT_SLICE: Duration = Duration::from_secs(5);

/// Bytes that a fill uploads for its first or last piece.
const FILL_UPLOAD_BYTES: u64 = 16;

/// Largest transfer that the submitting thread copies itself, if the memory is mapped and the queue idle. On a CPU device
/// any single-piece transfer is copied this way, since the device would use the same processor.
const MAX_INLINE_TRANSFER_BYTES: u64 = 4 << 20;

/// An in-order queue of a device.
#[derive(Debug)]
pub struct VulkanQueue {
    recorder: Mutex<BatchRecorder>,
    progress: Arc<QueueProgress>,
    shared: Arc<DeviceState>,
}

impl VulkanQueue {
    pub(crate) fn open(shared: &Arc<DeviceState>) -> Result<Self> {
        shared.logical.check_alive()?;
        let progress = Arc::new(QueueProgress::new(&shared.logical)?);
        let recorder = Mutex::new(BatchRecorder::new(&progress)?);
        Ok(Self { recorder, progress, shared: Arc::clone(shared) })
    }

    /// The recorder, locked.
    #[inline]
    fn recorder(&self) -> Recording<'_> {
        let exit_waits = self.progress.logical.begin_recording();
        Recording { recorder: self.recorder.lock(), _exit_waits: exit_waits }
    }

    fn check_same_device(&self, what: &str, buffer: &VulkanBuffer) -> Result<()> {
        if Arc::ptr_eq(&buffer.shared, &self.shared) {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "{what} on another Vulkan device is not supported; read and write it instead"
        )))
    }
}

/// A locked recorder; process exit waits until it is released.
struct Recording<'a> {
    recorder: MutexGuard<'a, BatchRecorder>,
    _exit_waits: Option<RwLockReadGuard<'a, ()>>,
}

impl Deref for Recording<'_> {
    type Target = BatchRecorder;

    fn deref(&self) -> &BatchRecorder {
        &self.recorder
    }
}

impl DerefMut for Recording<'_> {
    fn deref_mut(&mut self) -> &mut BatchRecorder {
        &mut self.recorder
    }
}

impl Queue for VulkanQueue {
    type Buffer = VulkanBuffer;
    type Kernel = VulkanKernel;
    type Graph = VulkanGraph;

    #[inline]
    fn launch(
        &self,
        submit: SubmitInfo,
        kernel: &VulkanKernel,
        launch: &Launch<'_, VulkanBuffer>,
    ) -> Result<()> {
        let mut args = PackedArgs::default();
        args.pack(kernel, launch)?;
        let mut recorder = self.recorder();
        let commands = if args.has_copies() {
            args.scratch_copies().for_each(|copy| recorder.retain(copy as Retained));
            recorder.commands(submit)?
        } else {
            recorder.commands_for_kernel(submit)?
        };
        args.record(kernel, commands)?;
        recorder.note_host_visible_write(args.host_visible_write);
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn write(
        &self,
        submit: SubmitInfo,
        destination: &VulkanBuffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()> {
        let (bytes, source) = (source.len() as u64, HostRange::Source(source));
        destination.check("write", offset, bytes)?;
        let mut recorder = self.recorder();
        if bytes > 0 {
            let is_mapped = destination.memory.host_ptr().is_some();
            if is_mapped && self.copies_inline(bytes) && recorder.is_idle()? {
                destination.memory.copy_host(offset, &source, source.whole());
                recorder.complete_inline(submit.ticket);
                return Ok(());
            }
            if bytes > MAX_RING_TRANSFER_BYTES {
                return self.stage(&mut recorder, submit.ticket, destination, offset, source);
            }
            let (memory, from) = recorder.upload(bytes, submit.ticket)?;
            memory.copy_host(from, &source, source.whole());
            recorder.commands(submit)?.copy((&destination.memory, offset), (&memory, from), bytes);
            recorder.note_host_visible_write(destination.is_host_visible());
        }
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn read(
        &self,
        submit: SubmitInfo,
        source: &VulkanBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        let (bytes, destination) = (destination.len() as u64, HostRange::Destination(destination));
        source.check("read", offset, bytes)?;
        let mut recorder = self.recorder();
        if bytes > 0 {
            let is_cached = source.memory.host_ptr().is_some() && source.memory.is_host_cached();
            if is_cached && self.copies_inline(bytes) && recorder.is_idle()? {
                source.memory.copy_host(offset, &destination, destination.whole());
                recorder.complete_inline(submit.ticket);
                return Ok(());
            }
            if bytes > MAX_RING_TRANSFER_BYTES {
                return self.stage(&mut recorder, submit.ticket, source, offset, destination);
            }
            let (from, at) = recorder.download(bytes, submit.ticket)?;
            recorder.commands(submit)?.copy((&from, at), (&source.memory, offset), bytes);
            self.progress.push_readback(Readback { ticket: submit.ticket, from, offset: at, destination });
        }
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        destination: (&VulkanBuffer, u64),
        source: (&VulkanBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        destination.0.check("copy: destination", destination.1, bytes)?;
        source.0.check("copy: source", source.1, bytes)?;
        self.check_same_device("copy: destination", destination.0)?;
        self.check_same_device("copy: source", source.0)?;
        let mut recorder = self.recorder();
        if bytes > 0 {
            let (to, from) = ((&*destination.0.memory, destination.1), (&*source.0.memory, source.1));
            recorder.commands(submit)?.copy(to, from, bytes);
            recorder.note_host_visible_write(destination.0.is_host_visible());
        }
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn copy_2d(&self, submit: SubmitInfo, rows: &Copy2D<'_, VulkanBuffer>) -> Result<()> {
        let (to, from) = (rows.destination, rows.source);
        to.0.check("copy_2d: destination", to.1, rows.span_bytes(rows.destination_pitch))?;
        from.0.check("copy_2d: source", from.1, rows.span_bytes(rows.source_pitch))?;
        self.check_same_device("copy_2d: destination", to.0)?;
        self.check_same_device("copy_2d: source", from.0)?;
        let mut recorder = self.recorder();
        recorder.commands(submit)?.copy_2d(
            ((&*to.0.memory, to.1), rows.destination_pitch),
            ((&*from.0.memory, from.1), rows.source_pitch),
            rows.row_bytes,
            rows.rows,
        );
        recorder.note_host_visible_write(to.0.is_host_visible());
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        destination: (&VulkanBuffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()> {
        let (buffer, offset) = destination;
        buffer.check("fill", offset, bytes)?;
        let mut recorder = self.recorder();
        if bytes > 0 {
            let pieces = convert::split_fill(buffer.memory.base_offset + offset, bytes, pattern.repeated());
            self.record_fill(&mut recorder, submit, buffer, pieces)?;
            recorder.note_host_visible_write(buffer.is_host_visible());
        }
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        let builtins = self.shared.builtins()?;
        let mut recorder = self.recorder();
        recorder.retain(Arc::clone(&builtins) as Retained);
        builtins.record_noop(recorder.commands_for_kernel(submit)?)?;
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        let mut recorder = self.recorder();
        let completed = self.progress.completed();
        let logical = &self.progress.logical;
        let commands = recorder.commands_for_timestamp()?;
        self.progress.timestamps.lock().record(logical, commands, submit.ticket, completed)?;
        recorder.note_timestamp(submit.ticket);
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.progress.logical.check_alive()?;
        let counter = self.progress.timestamps.lock().read(ticket)?;
        Ok(self.shared.clock.time_ns(counter))
    }

    fn replay(&self, submit: SubmitInfo, graph: &VulkanGraph) -> Result<()> {
        let mut recorder = self.recorder();
        let commands = recorder.commands(submit)?;
        let host_visible_write = graph.execute(commands, &self.progress, submit.ticket)?;
        recorder.note_host_visible_write(host_visible_write);
        recorder.note_recorded(submit.ticket);
        Ok(())
    }

    fn submit_native(&self, submit: SubmitInfo, work: &mut dyn FnMut(&[NativeHandle])) -> Result<()> {
        let logical = &self.progress.logical;
        let mut recorder = self.recorder();
        let (waits, shared_queue) = (recorder.begin_foreign_work()?, Arc::clone(recorder.shared_queue()));
        // A wait for earlier work locks it.
        drop(recorder);
        shared_queue.lend(logical, &waits, work)?;
        self.recorder().end_foreign_work(submit.ticket);
        if !self.progress.is_submitted(submit.ticket) {
            // Nothing is signaled at its end.
            logical.wait_idle();
        }
        Ok(())
    }

    #[inline]
    fn signal(&self, _ticket: u64) -> Result<()> {
        if !self.progress.is_complete() {
            self.recorder().request_signal();
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        if !self.progress.is_complete() {
            self.recorder().flush();
        }
        Ok(())
    }

    fn poll(&self) -> Result<Progress> {
        let completed = self.progress.poll()?;
        Ok(Progress { completed, first_failed: self.progress.first_failed() })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.progress.wait(ticket, slice)
    }

    fn wait_blocking(&self, ticket: u64) -> Result<()> {
        if self.progress.is_complete() || self.progress.is_staging() {
            return Ok(());
        }
        let mut recorder = self.recorder();
        if !recorder.ends_batch(ticket) {
            return Ok(());
        }
        recorder.flush();
        drop(recorder);
        if self.progress.is_submitted(ticket) { self.progress.wait(ticket, WAIT_SLICE) } else { Ok(()) }
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        let source = &other.progress;
        if source.poll()? >= ticket {
            return Ok(());
        }
        if !Arc::ptr_eq(&other.shared, &self.shared) {
            return Err(Error::unsupported("the device cannot wait for a queue of another device"));
        }
        source.drain_staging();
        if !source.is_submitted(ticket) {
            other.recorder().flush();
        }
        // The semaphore is never signaled for work that the driver did not accept.
        if !source.is_submitted(ticket) && source.poll()? < ticket {
            return Err(Error::unsupported("the device cannot wait for work that was never submitted"));
        }
        self.recorder().wait_for(&source.semaphore, ticket);
        Ok(())
    }

    fn failure(&self) -> Option<Error> {
        self.progress.failure()
    }
}

impl VulkanQueue {
    /// Whether the submitting thread copies a transfer of so many bytes itself, on an idle queue.
    fn copies_inline(&self, bytes: u64) -> bool {
        let shared = &self.shared;
        bytes <= MAX_INLINE_TRANSFER_BYTES
            || shared.logical.caps.is_cpu() && shared.staging.is_one_piece(bytes)
    }

    /// Gives a large transfer to staging threads. On a CPU device the calling thread helps, if the queue is idle.
    fn stage(
        &self,
        recorder: &mut BatchRecorder,
        ticket: u64,
        buffer: &VulkanBuffer,
        offset: u64,
        host: HostRange,
    ) -> Result<()> {
        self.progress.drain_staging();
        let progress = Arc::clone(&self.progress);
        let staging = &self.shared.staging;
        staging.ensure_threads(&host, &buffer.memory)?;
        let helps = self.progress.logical.caps.is_cpu() && recorder.is_idle()?;
        let dependencies = recorder.dependencies();
        let memory = Arc::clone(&buffer.memory);
        let slot_bytes = staging.options.slot_bytes;
        let device = Arc::clone(&self.shared) as Retained;
        let transfer =
            Transfer { progress, _device: device, ticket, host, memory, offset, slot_bytes, dependencies };
        recorder.note_staged(ticket);
        staging.submit(transfer, helps);
        Ok(())
    }

    fn record_fill(
        &self,
        recorder: &mut BatchRecorder,
        submit: SubmitInfo,
        buffer: &VulkanBuffer,
        pieces: impl Iterator<Item = FillPiece>,
    ) -> Result<()> {
        let shared = &self.shared;
        let step = |piece| {
            FillStep::new(shared, buffer.memory.base_offset, piece, || {
                recorder.upload(FILL_UPLOAD_BYTES, submit.ticket)
            })
        };
        let steps: SmallVec<[FillStep; 3]> = pieces.map(step).collect::<Result<_>>()?;
        for builtins in steps.iter().filter_map(FillStep::builtins) {
            recorder.retain(Arc::clone(builtins) as Retained);
        }
        let commands = recorder.commands(submit)?;
        steps.iter().try_for_each(|step| step.reserve(&shared.logical, commands))?;
        steps.iter().try_for_each(|step| step.record(&shared.logical, commands, &buffer.memory))
    }
}
