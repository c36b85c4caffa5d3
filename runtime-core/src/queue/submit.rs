//! Submission: hazards, dependencies on other queues, the ticket, and the driver call.
//!
//! ```text
//!   lock the hazards of all buffers (by address) ── dependencies on other queues?
//!        │ no                                         │ yes: signal and flush each of them
//!        ▼                                            ▼
//!   lock the own queue ◄──────────────────────── can the device wait for them? ── no ──► unlock everything, block, start over
//!        │
//!   wait on the device for other queues ─► driver call ─► assign the ticket ─► record the accesses ─► unlock
//! ```
//!
//! A submission that depends on work that a virtual queue lists first has it handed over, with no lock held, and starts over. What
//! a virtual queue lists goes through the upper half of this when it is listed, and through the lower half when it is handed
//! over; see [`fusion_list`](super::fusion_list).
//!
//! Other queues' locks are taken one at a time, and each is released before this queue's own lock is taken, which is held until
//! the driver call returns. A thread that must block first releases all locks. A refused driver call takes no ticket. The replay
//! of a graph holds the lock of the graph around all of this, also while it blocks: no other lock is held when it takes that one.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::lock_api::RawMutex;
use smallvec::SmallVec;

use crate::abi::{self, Handle, QueueCalls, Status, SubmitInfo};
use crate::code::raw_launch::RawLaunch;
use crate::memory::buffer::Buffer;
use crate::timeline::Timeline;
use crate::timeline::device_state::DeviceState;
use crate::timeline::event::Event;
use crate::timeline::hazards::{Dependencies, Use};
use crate::timeline::queue_table::QueueStatus;
use crate::timeline::virtual_queue::{Cause, Location};
use crate::{Access, Arg, Error, ErrorKind, Kernel, LaunchConfig, Queue, Result};

/// How long a submission blocks for work that its device cannot wait for.
const FOREIGN_DEADLINE: Duration = Duration::from_secs(60);

/// The buffers that a submission accesses, in the order of their addresses. Up to 16 need no allocation.
#[derive(Default)]
pub(crate) struct AccessSet<'a>(SmallVec<[(&'a Buffer, Access); 16]>);

impl<'a> AccessSet<'a> {
    /// Adds an access; those of several views of one buffer are merged.
    #[inline]
    pub(crate) fn add(&mut self, buffer: &'a Buffer, access: Access) -> Result<()> {
        if buffer.is_frozen() {
            // A frozen buffer needs no order: it is skipped, so that threads share it without contention.
            return if access.writes() { check_writable(buffer) } else { Ok(()) };
        }
        match self.0.last() {
            Some((last, _)) if std::ptr::from_ref(*last) >= std::ptr::from_ref(buffer) => {
                self.insert(buffer, access);
            }
            _ => self.0.push((buffer, access)),
        }
        Ok(())
    }

    /// Adds a buffer that does not come last in the order of addresses.
    fn insert(&mut self, buffer: &'a Buffer, access: Access) {
        let address = std::ptr::from_ref(buffer);
        let at = self.0.partition_point(|(other, _)| std::ptr::from_ref(*other) < address);
        match self.0.get_mut(at) {
            Some((same, before)) if std::ptr::eq(*same, buffer) => {
                *before = Access::from_bits(before.bits() | access.bits());
            }
            _ => self.0.insert(at, (buffer, access)),
        }
    }
}

/// The locked hazards of a submission's buffers; unlocks them when dropped. A vector of guards would cost more than the locks.
pub(super) struct HazardGuards<'u, 'a> {
    uses: &'u [(&'a Buffer, Access)],
    /// How many are locked, from the first.
    locked: usize,
}

impl<'u, 'a> HazardGuards<'u, 'a> {
    #[inline]
    pub(super) fn new(uses: &'u AccessSet<'a>) -> Self {
        Self { uses: &uses.0, locked: 0 }
    }

    /// Locks the hazards of all buffers, and collects what a submission of `queue` depends on: adds accesses of other queues to
    /// `foreign`, and also returns the latest ticket of `queue` itself, or 0.
    ///
    /// # Errors
    /// `InvalidArgument` for an access that a host view forbids, or a write to a frozen buffer.
    #[inline]
    pub(super) fn lock(&mut self, queue: u64, foreign: &mut Dependencies) -> Result<u64> {
        let mut after = 0;
        for (buffer, access) in self.uses {
            // SAFETY: `record` or `Drop` unlocks it; each buffer is in the list once.
            unsafe { buffer.hazards.raw() }.lock();
            self.locked += 1;
            // SAFETY: it was locked just now.
            let hazards = unsafe { &*buffer.hazards.data_ptr() };
            hazards.check_unmapped(*access)?;
            if access.writes() {
                // It may have been frozen since it was added to the set.
                check_writable(buffer)?;
            }
            after = after.max(hazards.dependencies(*access, queue, foreign));
        }
        Ok(after)
    }

    /// The locked buffers that `queue` has written last, with their accesses.
    pub(super) fn written_by(&self, queue: u64) -> impl Iterator<Item = (&'a Buffer, Access)> {
        let locked = self.uses[..self.locked].iter().copied();
        // SAFETY: `lock` locked them.
        locked.filter(move |(buffer, _)| unsafe { &*buffer.hazards.data_ptr() }.writer().queue == queue)
    }

    /// Records the submission in the hazards, and unlocks them.
    #[inline]
    pub(super) fn record(mut self, by: Use) {
        for (buffer, access) in &self.uses[..self.locked] {
            // SAFETY: `lock` locked it, and each buffer is in the list once.
            unsafe { &mut *buffer.hazards.data_ptr() }.record(*access, by);
            // SAFETY: as above.
            unsafe { buffer.hazards.force_unlock() };
        }
        self.locked = 0;
    }
}

impl Drop for HazardGuards<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        for (buffer, _) in &self.uses[..self.locked] {
            // SAFETY: `lock` locked it.
            unsafe { buffer.hazards.force_unlock() };
        }
    }
}

#[inline]
fn check_writable(buffer: &Buffer) -> Result<()> {
    if buffer.is_frozen() { Err(Error::invalid("a frozen tensor cannot be written")) } else { Ok(()) }
}

/// How to submit.
#[derive(Clone, Copy, Default)]
pub(crate) struct SubmitFlags {
    /// It is a transfer: signal it at once.
    pub(crate) transfer: bool,
    /// The caller will make an event of it.
    pub(crate) watched: bool,
    /// It may run on this thread if the queue is idle.
    pub(crate) inline: bool,
    /// A ticket of this queue that it runs after, besides those that use its buffers; 0 for none.
    pub(crate) after: u64,
}

/// A submission, with its ticket.
#[derive(Clone, Copy)]
pub(crate) enum Submitted {
    /// Handed to the driver.
    Async(u64),
    /// To be run on this thread, now.
    Inline(u64),
}

impl Submitted {
    pub(crate) const fn ticket(self) -> u64 {
        let (Self::Async(ticket) | Self::Inline(ticket)) = self;
        ticket
    }
}

/// The outcome of one attempt to submit.
enum Attempt {
    Done(Submitted),
    /// It must first wait on this thread, with no lock held.
    Blocked(Arc<Timeline>, u64),
}

/// A wait on the device for work of another queue.
#[derive(Clone, Debug)]
pub(crate) struct QueueWait {
    source: Arc<Timeline>,
    /// The latest ticket to wait for.
    ticket: u64,
    /// The latest ticket whose failure propagates; 0 if only the order matters.
    propagates_failure: u64,
}

pub(crate) type QueueWaits = SmallVec<[QueueWait; 4]>;

/// How to wait for work of other queues.
pub(super) enum WaitPlan {
    /// On the device. The latest ticket of the queue itself that stands for work of a virtual queue comes second.
    OnDevice(QueueWaits, u64),
    /// On this thread.
    Block(Arc<Timeline>, u64),
}

impl Queue {
    /// Submits one operation.
    ///
    /// # Errors
    /// A refusal, which takes no ticket and poisons nothing.
    #[inline]
    pub(crate) fn submit(
        &self,
        uses: &AccessSet<'_>,
        flags: SubmitFlags,
        mut operation: impl FnMut(&QueueCalls, Handle, SubmitInfo) -> Status,
    ) -> Result<Submitted> {
        self.device.check()?;
        self.device.reap();
        loop {
            match self.try_submit(uses, flags, &mut operation)? {
                Attempt::Done(submitted) => return Ok(submitted),
                Attempt::Blocked(source, ticket) => block(&source, ticket)?,
            }
        }
    }

    /// Submits under all locks, unless it must block.
    #[inline]
    fn try_submit(
        &self,
        uses: &AccessSet<'_>,
        flags: SubmitFlags,
        operation: &mut impl FnMut(&QueueCalls, Handle, SubmitInfo) -> Status,
    ) -> Result<Attempt> {
        let timeline = &*self.timeline;
        let mut foreign = Dependencies::new();
        let mut hazards = HazardGuards::new(uses);
        let mut after = hazards.lock(timeline.id, &mut foreign)?.max(flags.after);
        let waits = match foreign.is_empty() {
            true => None,
            false => match self.resolve(&foreign, flags.inline)? {
                WaitPlan::OnDevice(waits, own) => {
                    after = after.max(own);
                    Some(waits)
                }
                WaitPlan::Block(source, ticket) => return Ok(Attempt::Blocked(source, ticket)),
            },
        };
        let record = |ticket| hazards.record(Use { queue: timeline.id, ticket });
        self.submit_after(waits.as_ref(), Some(after), flags, operation, record)
    }

    /// Submits after `waits`, and after the ticket `after` of this queue or, without one, after all its work. Calls `record` with
    /// the ticket.
    #[inline]
    fn submit_after(
        &self,
        waits: Option<&QueueWaits>,
        after: Option<u64>,
        flags: SubmitFlags,
        operation: &mut impl FnMut(&QueueCalls, Handle, SubmitInfo) -> Status,
        record: impl FnOnce(u64),
    ) -> Result<Attempt> {
        let timeline = &*self.timeline;
        let _submission = timeline.submission.lock();
        timeline.check_healthy()?;
        timeline.signal_watched()?;
        let ticket = timeline.last_submitted() + 1;
        let after = after.unwrap_or(ticket - 1);
        if let Some(waits) = waits
            && let Some((source, ticket)) = self.wait_on_device(waits)?
        {
            return Ok(Attempt::Blocked(source, ticket));
        }
        let submitted = self.call_backend(flags, SubmitInfo { ticket, after }, operation)?;
        // Only now: the ticket of a refused submission is used again, and must not inherit its dependencies.
        if let Some(waits) = waits {
            self.push_edges(waits, ticket);
        }
        timeline.set_last_submitted(ticket);
        record(ticket);
        if let Submitted::Async(_) = submitted {
            // The work is submitted. A wait tries a failed signal again.
            let _ = timeline.signal_submitted(flags.transfer);
            if flags.watched {
                timeline.watch(ticket);
            }
        }
        Ok(Attempt::Done(submitted))
    }

    /// Submits a launch that a virtual queue listed, after all work of this queue and after `waits`; returns its ticket. Its
    /// accesses are recorded already. Frees nothing, since it runs while a list is locked.
    ///
    /// # Errors
    /// As [`Queue::submit`].
    pub(super) fn submit_listed(
        &self,
        launch: (&Kernel, &LaunchConfig, &[Arg<'_>]),
        waits: &QueueWaits,
        watched: bool,
    ) -> Result<u64> {
        let (kernel, config, args) = launch;
        let mut raw = RawLaunch::default();
        raw.fill((kernel.lowered(), config), args, |_, _| Ok(()))?;
        let launch = &raw.pointed(config);
        self.submit_listed_as(waits, watched, |calls, queue, submit| {
            call_launch(calls, queue, submit, (kernel, config, launch))
        })
    }

    /// Submits what stands for launches that a virtual queue listed: the part of [`Queue::submit_listed`] that is the same for all.
    ///
    /// # Errors
    /// As [`Queue::submit`].
    pub(crate) fn submit_listed_as(
        &self,
        waits: &QueueWaits,
        watched: bool,
        mut operation: impl FnMut(&QueueCalls, Handle, SubmitInfo) -> Status,
    ) -> Result<u64> {
        self.device.check()?;
        let flags = SubmitFlags { watched, ..SubmitFlags::default() };
        loop {
            match self.submit_after(Some(waits), None, flags, &mut operation, |_| {})? {
                Attempt::Done(submitted) => return Ok(submitted.ticket()),
                Attempt::Blocked(source, ticket) => block(&source, ticket)?,
            }
        }
    }

    /// Begins the operation on this thread if it may run here, or hands it to the driver. The queue is locked.
    #[inline]
    fn call_backend(
        &self,
        flags: SubmitFlags,
        submit: SubmitInfo,
        operation: &mut impl FnMut(&QueueCalls, Handle, SubmitInfo) -> Status,
    ) -> Result<Submitted> {
        let (timeline, ticket) = (&*self.timeline, submit.ticket);
        // While another queue's failure may still arrive, core must see the end of every ticket.
        let may_run_inline = flags.inline && !timeline.has_edges();
        // SAFETY: the queue is open, and its lock is held.
        if may_run_inline && unsafe { (timeline.calls.try_begin_inline)(timeline.handle, ticket) } == 1 {
            return Ok(Submitted::Inline(ticket));
        }
        timeline.raw("submit", |calls, queue| operation(calls, queue, submit))?;
        Ok(Submitted::Async(ticket))
    }

    /// Decides how to wait for work of other queues: not at all if it has ended, on the device, or on this thread.
    #[cold]
    pub(super) fn resolve(&self, foreign: &Dependencies, inline: bool) -> Result<WaitPlan> {
        let (mut waits, mut after) = (QueueWaits::new(), 0);
        for dependency in foreign {
            let (mut ticket, propagates_failure) = (dependency.on.ticket, dependency.propagates_failure);
            let mut source = match self.device.queues.find(dependency.on.queue) {
                QueueStatus::Live(source) => source,
                QueueStatus::Failed(failed, error) if propagates_failure && failed <= ticket => {
                    return Err(error);
                }
                QueueStatus::Failed(..) | QueueStatus::Gone => continue,
            };
            match source.locate(ticket) {
                Location::Here => {}
                Location::Listed => return Ok(WaitPlan::Block(source, ticket)),
                Location::Real(real, at) => (source, ticket) = (real, at),
                Location::Over => {}
            }
            if source.id == self.timeline.id {
                after = after.max(ticket);
                continue;
            }
            match source.status(ticket) {
                Some(Err(error)) if propagates_failure => return Err(error),
                // A failed ticket may still use the memory.
                Some(_) if !source.maybe_running(ticket) => {}
                _ if inline || !self.can_wait_on_device(&source) => {
                    return Ok(WaitPlan::Block(source, ticket));
                }
                _ => add_wait(&mut waits, source, ticket, propagates_failure),
            }
        }
        for QueueWait { source, ticket, .. } in &waits {
            let Some(_open) = source.device.upgrade() else {
                return Ok(WaitPlan::Block(source.clone(), *ticket));
            };
            source.signal_from_now_on();
            source.signal_and_flush(*ticket)?;
            source.resume()?;
        }
        Ok(WaitPlan::OnDevice(waits, after))
    }

    /// Whether this queue can wait for `source` on the device.
    fn can_wait_on_device(&self, source: &Timeline) -> bool {
        let capable = |device: &DeviceState| device.info.capabilities.has(abi::CAP_WAIT_FOR);
        let is_same_backend = |other: &DeviceState| Arc::ptr_eq(&other.instance, &self.device.instance);
        capable(&self.device)
            && !source.is_of_program()
            && source.device.upgrade().is_some_and(|other| {
                let other = other.state();
                is_same_backend(other) && capable(other)
            })
    }

    /// Makes the next submission wait on the device. Returns the first wait that the device refuses.
    fn wait_on_device(&self, waits: &QueueWaits) -> Result<Option<(Arc<Timeline>, u64)>> {
        for QueueWait { source, ticket, .. } in waits {
            if self.timeline.waits_for(source, *ticket) {
                continue;
            }
            // Another thread is closing its device, and waits for its work.
            let Some(_open) = source.device.upgrade() else { return Ok(Some((source.clone(), *ticket))) };
            let result = self.timeline.raw("wait_for", |calls, queue| {
                // SAFETY: both queues are open, and the source's ticket is signaled and flushed.
                unsafe { (calls.wait_for)(queue, source.handle, *ticket) }
            });
            match result {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Ok(Some((source.clone(), *ticket)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Records the edges along which failures reach `ticket`.
    fn push_edges(&self, waits: &QueueWaits, ticket: u64) {
        for wait in waits.iter().filter(|wait| wait.propagates_failure != 0) {
            self.timeline.push_edge(ticket, &wait.source, wait.propagates_failure);
        }
    }

    /// Makes later submissions wait for an event: on the device if it can, otherwise on this thread.
    pub(crate) fn wait_for_point(&self, event: &Event) -> Result<()> {
        if let Some(timeline) = event.timeline() {
            return self.wait_for_ticket(timeline, event.ticket(), true);
        }
        if let Some(parts) = event.all_of() {
            return parts.iter().try_for_each(|part| self.wait_for_point(part));
        }
        let ended = event.wait_until(Some(Instant::now() + FOREIGN_DEADLINE));
        ended.map_err(|error| error.with_note("a submission depends on it"))
    }

    /// Makes later submissions wait for `ticket` of `source`: on the device if it can, otherwise on this thread. Whether they fail
    /// if it fails is up to `propagates_failure`.
    pub(crate) fn wait_for_ticket(
        &self,
        source: &Arc<Timeline>,
        ticket: u64,
        propagates_failure: bool,
    ) -> Result<()> {
        self.device.check()?;
        if Arc::ptr_eq(source, &self.timeline) {
            return Ok(());
        }
        let real = source.to_real(ticket, Cause::Submission);
        let (source, ticket) = real.as_ref().map_or((source, ticket), |(source, ticket)| (source, *ticket));
        // The work of a virtual queue is in order with that of its real queue.
        if Arc::ptr_eq(source, self.timeline.real()) {
            return Ok(());
        }
        match source.status(ticket) {
            Some(result) if propagates_failure => return result,
            Some(_) if !source.maybe_running(ticket) => return Ok(()),
            _ => {}
        }
        if self.can_wait_on_device(source)
            && let Some(_open) = source.device.upgrade()
        {
            source.signal_from_now_on();
            source.signal_and_flush(ticket)?;
            source.resume()?;
            if let Some(collector) = self.collector() {
                collector.list.wait_for(source.clone(), ticket, propagates_failure);
                return Ok(());
            }
            let _lock = self.timeline.submission.lock();
            self.timeline.check_healthy()?;
            let mut waits = QueueWaits::new();
            add_wait(&mut waits, source.clone(), ticket, propagates_failure);
            if self.wait_on_device(&waits)?.is_none() {
                self.push_edges(&waits, self.timeline.last_submitted() + 1);
                return Ok(());
            }
        }
        block(source, ticket)?;
        if propagates_failure { source.status(ticket).unwrap_or(Ok(())) } else { Ok(()) }
    }
}

/// Adds other waits to `waits`.
pub(super) fn add_waits(waits: &mut QueueWaits, others: &QueueWaits) {
    for QueueWait { source, ticket, propagates_failure } in others {
        add_wait(waits, source.clone(), *ticket, *propagates_failure != 0);
    }
}

/// Adds a wait; there is one per queue, for its latest ticket.
pub(super) fn add_wait(waits: &mut QueueWaits, source: Arc<Timeline>, ticket: u64, propagates_failure: bool) {
    let propagates_failure = if propagates_failure { ticket } else { 0 };
    match waits.iter_mut().find(|wait| Arc::ptr_eq(&wait.source, &source)) {
        Some(wait) => {
            wait.ticket = ticket.max(wait.ticket);
            wait.propagates_failure = propagates_failure.max(wait.propagates_failure);
        }
        None => waits.push(QueueWait { source, ticket, propagates_failure }),
    }
}

/// Passes a launch to the driver.
#[inline]
pub(super) fn call_launch(
    calls: &QueueCalls,
    queue: Handle,
    submit: SubmitInfo,
    (kernel, config, launch): (&Kernel, &LaunchConfig, &abi::Launch),
) -> Status {
    if config.is_empty() {
        // Drivers reject a launch of 0 groups.
        // SAFETY: the queue is open.
        return unsafe { (calls.noop)(queue, submit) };
    }
    // SAFETY: the queue is open, the kernel is of its device, and `launch` and what it points to live during the call.
    unsafe { (calls.launch)(queue, submit, kernel.handle(), launch) }
}

/// Waits on this thread, with a deadline. The caller checks the result of the ticket.
#[cold]
pub(super) fn block(timeline: &Arc<Timeline>, ticket: u64) -> Result<()> {
    if timeline.is_virtual() {
        timeline.hand_over(ticket, Cause::Submission);
        return Ok(());
    }
    let ended = timeline.wait_ended(ticket, Some(Instant::now() + FOREIGN_DEADLINE));
    ended.map_err(|error| error.with_note("a submission depends on it"))
}
