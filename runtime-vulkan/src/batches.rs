//! Batching: a submission is recorded at once into a command buffer, and command buffers are submitted in batches.
//!
//! A batch is one command buffer; at its end it sets the queue's semaphore to the ticket of its last submission. A batch ends
//! where a caller waits for a ticket, and otherwise grows until it is submitted:
//!
//! ```text
//!              note_recorded            end_batch          submit              recycle
//!  submission ---------------> recording --------> ended --------> in flight ---------> free command buffer
//!        |                                           |
//!        |                                           +--> abandoned: refused by the driver, or the queue has failed
//!        |  complete_inline                              (`QueueProgress` completes it later, as failed)
//!        +-----------------------------------------------> completed by the host, without a command buffer
//!        |  note_staged
//!        +-----------------------------------------------> a large transfer of staging threads, which signal the ticket
//! ```
//!
//! [`Watermarks`] records how far tickets have come; [`BarrierState`] records which of them come before the barriers recorded so
//! far.

use std::collections::VecDeque;
use std::sync::Arc;

use runtime_core::abi::SubmitInfo;
use runtime_core::backend::SHUTDOWN_TIMEOUT;
use runtime_core::{Error, ErrorKind, Result};
use smallvec::SmallVec;

use crate::barriers::{BarrierState, RequiredBarrier};
use crate::driver::{CommandBuffer, CommandPool, Memory, Semaphore, SharedQueue, Submission};
use crate::progress::QueueProgress;
use crate::transfer_ring::TransferRing;

/// Most submissions in one call of the driver.
const MAX_UNSUBMITTED: u32 = 512;
/// Growth of the poll threshold in a burst of submissions.
const THRESHOLD_GROWTH: u32 = 8;
/// Batches submitted without an allocation.
const INLINE_BATCHES: usize = 8;
/// Batches in flight before the semaphore is polled for command buffers to reuse.
const RECYCLE_THRESHOLD: usize = 2;

/// An object that must live until a batch has completed.
pub(crate) type Retained = Arc<dyn std::any::Any + Send + Sync>;

type Waits = SmallVec<[(Arc<Semaphore>, u64); 2]>;

/// Commands with one signal at their end.
struct Batch {
    commands: Option<CommandBuffer>,
    waits: Waits,
    _retained: Vec<Retained>,
    last_ticket: u64,
}

/// The last ticket to reach each stage: `submitted <= resolved <= batched <= recorded`.
#[derive(Clone, Copy, Debug, Default)]
struct Watermarks {
    /// Recorded into a command buffer, or handled without one.
    recorded: u64,
    /// In an ended batch, or handled without one.
    batched: u64,
    /// Submitted, or completed inline. An error of the driver fails the queue from the next ticket on.
    resolved: u64,
    /// Submitted to the driver or to staging threads, which will signal the semaphore.
    submitted: u64,
}

/// When to submit. Polling costs one call of the driver and submitting costs many, so that a burst has few of both.
#[derive(Clone, Copy, Debug)]
struct Pacing {
    /// Tickets recorded since the last submission.
    unsubmitted: u32,
    /// So many unsubmitted tickets cause a poll, and a submission if the device is idle.
    threshold: u32,
}

/// Records the submissions of a queue, and submits them in batches.
pub(crate) struct BatchRecorder {
    progress: Arc<QueueProgress>,
    shared_queue: Arc<SharedQueue>,
    pool: CommandPool,
    free: Vec<CommandBuffer>,
    /// The current command buffer, with its `waits` and `retained` objects.
    recording: Option<CommandBuffer>,
    waits: Waits,
    retained: Vec<Retained>,
    ended: VecDeque<Batch>,
    in_flight: VecDeque<Batch>,
    watermarks: Watermarks,
    barriers: BarrierState,
    /// The current batch writes memory that the host may read.
    host_visible_write: bool,
    pacing: Pacing,
    uploads: TransferRing,
    downloads: TransferRing,
}

impl std::fmt::Debug for BatchRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchRecorder").field("watermarks", &self.watermarks).finish_non_exhaustive()
    }
}

impl BatchRecorder {
    pub(crate) fn new(progress: &Arc<QueueProgress>) -> Result<Self> {
        let logical = &progress.logical;
        let shared_queue = logical.least_used_compute_queue();
        let pool = CommandPool::new(logical, shared_queue.family)?;
        shared_queue.acquire();
        Ok(Self {
            progress: Arc::clone(progress),
            shared_queue,
            pool,
            free: Vec::new(),
            recording: None,
            waits: Waits::new(),
            retained: Vec::new(),
            ended: VecDeque::new(),
            in_flight: VecDeque::new(),
            watermarks: Watermarks::default(),
            barriers: BarrierState::default(),
            host_visible_write: false,
            pacing: Pacing { unsubmitted: 0, threshold: 1 },
            uploads: TransferRing::default(),
            downloads: TransferRing::default(),
        })
    }

    /// The command buffer for a submission that copies or fills, with a barrier behind its dependencies.
    pub(crate) fn commands(&mut self, submit: SubmitInfo) -> Result<&mut CommandBuffer> {
        self.ensure_recording()?;
        let barrier = self.barriers.before_copy(submit);
        self.record_barrier(barrier)
    }

    /// The same for a submission that only runs a kernel.
    #[inline]
    pub(crate) fn commands_for_kernel(&mut self, submit: SubmitInfo) -> Result<&mut CommandBuffer> {
        self.ensure_recording()?;
        let barrier = self.barriers.before_kernel(submit);
        self.record_barrier(barrier)
    }

    /// The command buffer for a timestamp, which is taken when all earlier commands have completed.
    pub(crate) fn commands_for_timestamp(&mut self) -> Result<&mut CommandBuffer> {
        self.ensure_recording()?;
        self.record_barrier(None)
    }

    #[inline]
    fn record_barrier(&mut self, barrier: Option<RequiredBarrier>) -> Result<&mut CommandBuffer> {
        let commands = self
            .recording
            .as_mut()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "no command buffer is being recorded"))?;
        match barrier {
            Some(RequiredBarrier::Kernels) => commands.kernel_barrier(),
            Some(RequiredBarrier::AllWork) => commands.barrier(),
            None => {}
        }
        Ok(commands)
    }

    /// Notes a recorded timestamp. Timed work is submitted in one piece, so that host time is not measured.
    pub(crate) fn note_timestamp(&mut self, ticket: u64) {
        self.barriers.note_timestamp(ticket);
        self.pacing.threshold = MAX_UNSUBMITTED;
    }

    /// Notes whether the next ticket writes memory that the host may read.
    #[inline]
    pub(crate) fn note_host_visible_write(&mut self, writes: bool) {
        self.host_visible_write |= writes;
    }

    /// Keeps an object alive until the next ticket has completed.
    pub(crate) fn retain(&mut self, object: Retained) {
        self.retained.push(object);
    }

    /// Notes that `ticket` is recorded; submits if enough is recorded, or if the device is idle.
    #[inline]
    pub(crate) fn note_recorded(&mut self, ticket: u64) {
        self.watermarks.recorded = ticket;
        self.progress.set_recorded(ticket);
        self.pacing.unsubmitted += 1;
        if self.pacing.unsubmitted >= self.pacing.threshold {
            self.submit_if_due();
        }
    }

    fn submit_if_due(&mut self) {
        let threshold = (self.pacing.threshold * THRESHOLD_GROWTH).min(MAX_UNSUBMITTED);
        if self.pacing.unsubmitted >= MAX_UNSUBMITTED || self.progress.is_idle().unwrap_or(true) {
            self.submit();
        }
        self.pacing.threshold = threshold;
    }

    /// Ends the batch, so that the semaphore is signaled for its last ticket. Not for a timestamp, since the signal would
    /// be measured: a timestamp completes with the tickets behind it in its batch.
    pub(crate) fn request_signal(&mut self) {
        if !self.barriers.is_last_timestamp(self.watermarks.recorded) {
            self.end_batch();
        }
    }

    fn end_batch(&mut self) {
        let last_ticket = self.watermarks.recorded;
        if last_ticket == self.watermarks.batched {
            return;
        }
        let commands = self.recording.take();
        if let (Some(commands), true) = (&commands, self.host_visible_write) {
            commands.make_host_visible();
            self.host_visible_write = false;
        }
        let result = commands.as_ref().map_or(Ok(()), CommandBuffer::end);
        self.ended.push_back(Batch {
            commands,
            waits: std::mem::take(&mut self.waits),
            _retained: std::mem::take(&mut self.retained),
            last_ticket,
        });
        self.watermarks.batched = last_ticket;
        if let Err(error) = result {
            self.abandon(Some(error));
        }
    }

    /// Whether `ticket` is the last of its batch, so that the semaphore is signaled for it.
    pub(crate) fn ends_batch(&self, ticket: u64) -> bool {
        let mut batches = self.in_flight.iter().chain(&self.ended);
        self.watermarks.recorded == ticket || batches.any(|batch| batch.last_ticket == ticket)
    }

    /// Submits everything, because a caller is about to wait.
    pub(crate) fn flush(&mut self) {
        self.submit();
        self.pacing.threshold = 1;
    }

    fn submit(&mut self) {
        self.end_batch();
        self.pacing.unsubmitted = 0;
        let Some(last) = self.ended.back().map(|batch| batch.last_ticket) else { return };
        self.progress.drain_staging();
        if self.progress.first_failed() != 0 || self.progress.logical.check_alive().is_err() {
            return self.abandon(None);
        }
        let semaphore = &*self.progress.semaphore;
        let submissions: SmallVec<[Submission<'_>; INLINE_BATCHES]> = self
            .ended
            .iter()
            .map(|batch| Submission {
                waits: &batch.waits,
                commands: batch.commands.as_ref(),
                signal: (semaphore, batch.last_ticket),
            })
            .collect();
        match self.shared_queue.submit(&self.progress.logical, &submissions) {
            Ok(()) => {
                drop(submissions);
                self.progress.set_submitted(last);
                (self.watermarks.submitted, self.watermarks.resolved) = (last, last);
                self.in_flight.append(&mut self.ended);
            }
            Err(error) => {
                drop(submissions);
                self.abandon(Some(error));
            }
        }
    }

    /// Abandons and fails all batches that the driver did not accept. They complete no earlier than what they should have
    /// waited for: a completed ticket implies that its dependencies have completed.
    fn abandon(&mut self, error: Option<Error>) {
        for batch in self.ended.drain(..) {
            self.progress.abandon(batch.last_ticket, batch.waits);
        }
        if let Some(error) = error {
            self.progress.fail(self.watermarks.resolved + 1, error);
        }
    }

    /// Makes later submissions wait until `semaphore` reaches `value`.
    pub(crate) fn wait_for(&mut self, semaphore: &Arc<Semaphore>, value: u64) {
        self.end_batch();
        self.waits.push((Arc::clone(semaphore), value));
    }

    /// Flushes, and returns the semaphore values that a submission outside the device must wait for.
    pub(crate) fn dependencies(&mut self) -> Vec<(Arc<Semaphore>, u64)> {
        self.flush();
        let mut dependencies = vec![(Arc::clone(&self.progress.semaphore), self.watermarks.submitted)];
        dependencies.extend(std::mem::take(&mut self.waits));
        dependencies.extend(self.progress.abandoned_waits());
        dependencies
    }

    /// The `VkQueue` to submit to.
    pub(crate) fn shared_queue(&self) -> &Arc<SharedQueue> {
        &self.shared_queue
    }

    /// Returns what foreign work must wait for. The next batch, which [`BatchRecorder::end_foreign_work`] submits, orders it before
    /// all later work.
    pub(crate) fn begin_foreign_work(&mut self) -> Result<Vec<(Arc<Semaphore>, u64)>> {
        let waits = self.dependencies();
        self.commands_for_timestamp()?.barrier_behind_foreign_work();
        self.retained.extend(waits.iter().map(|(semaphore, _)| Arc::clone(semaphore) as Retained));
        Ok(waits)
    }

    /// Submits the end of foreign work.
    pub(crate) fn end_foreign_work(&mut self, ticket: u64) {
        self.barriers.order(ticket);
        self.note_recorded(ticket);
        self.flush();
    }

    /// Whether all tickets have completed, and later ones need not wait.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.progress.drain_staging();
        Ok(self.waits.is_empty()
            && self.watermarks.recorded == self.watermarks.batched
            && self.ended.is_empty()
            // The semaphore alone is not enough: earlier reads must have reached the host, too.
            && self.progress.poll()? == self.watermarks.recorded)
    }

    /// Notes that the host itself carried out `ticket`, on an idle queue.
    pub(crate) fn complete_inline(&mut self, ticket: u64) {
        self.set_resolved(ticket);
        self.pacing.threshold = 1;
        self.progress.complete_inline(ticket);
    }

    /// Notes that staging threads will signal `ticket`.
    pub(crate) fn note_staged(&mut self, ticket: u64) {
        self.set_resolved(ticket);
        self.watermarks.submitted = ticket;
        self.progress.set_recorded(ticket);
        self.progress.set_submitted(ticket);
    }

    /// Nothing up to `ticket` is left to record, to submit or to order.
    fn set_resolved(&mut self, ticket: u64) {
        let watermarks = &mut self.watermarks;
        (watermarks.recorded, watermarks.batched, watermarks.resolved) = (ticket, ticket, ticket);
        self.barriers.order(ticket);
    }

    /// `bytes` bytes of memory that the host writes and the device reads, until `ticket` has completed.
    pub(crate) fn upload(&mut self, bytes: u64, ticket: u64) -> Result<(Arc<Memory>, u64)> {
        let (memory, offset) = self.uploads.allocate(&self.progress, bytes, ticket)?;
        if !self.uploads.owns(&memory) {
            self.retain(Arc::clone(&memory) as Retained);
        }
        Ok((memory, offset))
    }

    /// `bytes` bytes of memory that the device writes and the host reads once `ticket` has completed.
    pub(crate) fn download(&mut self, bytes: u64, ticket: u64) -> Result<(Arc<Memory>, u64)> {
        self.host_visible_write = true;
        self.downloads.allocate(&self.progress, bytes, ticket)
    }

    #[inline]
    fn ensure_recording(&mut self) -> Result<()> {
        self.progress.logical.check_alive()?;
        self.progress.drain_staging();
        if self.recording.is_some() { Ok(()) } else { self.begin_recording() }
    }

    fn begin_recording(&mut self) -> Result<()> {
        self.recycle()?;
        let mut commands = match self.free.pop() {
            Some(commands) => commands,
            None => self.pool.allocate()?,
        };
        self.barriers.acquire(self.progress.completed());
        commands.begin()?;
        self.recording = Some(commands);
        Ok(())
    }

    /// Reclaims the command buffers of completed batches.
    fn recycle(&mut self) -> Result<()> {
        let mut completed = self.progress.completed();
        if self.free.is_empty() && self.in_flight.len() >= RECYCLE_THRESHOLD {
            completed = completed.max(self.progress.semaphore.value()?);
        }
        let free_before = self.free.len();
        while self.in_flight.front().is_some_and(|batch| batch.last_ticket <= completed) {
            let batch = self.in_flight.pop_front();
            self.free.extend(batch.and_then(|batch| batch.commands));
        }
        // Reuse them in submission order: drivers keep a command buffer's memory, so that a long one should be long again.
        self.free[free_before..].reverse();
        Ok(())
    }
}

impl Drop for BatchRecorder {
    fn drop(&mut self) {
        self.flush();
        // After an error nothing runs.
        let _ = self.progress.semaphore.wait(self.watermarks.submitted, SHUTDOWN_TIMEOUT);
        self.shared_queue.release();
    }
}
