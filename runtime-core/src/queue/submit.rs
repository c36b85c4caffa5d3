//! How work gets onto a queue: hazards, dependencies on other queues, the ticket, the driver call.
//!
//! Locks are taken in this order: buffers by address, then, one at a time and released again, other queues (to mark
//! and flush them), then the own queue, held through the driver call. Whoever must block first releases them all.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::abi::{self, Handle, Place, QueueCalls, Status};
use crate::memory::buffer::Buffer;
use crate::timeline::Timeline;
use crate::timeline::hazards::{Dependencies, Use};
use crate::timeline::open_device::OpenDevice;
use crate::timeline::queue_table::QueueStatus;
use crate::{Access, Error, ErrorKind, Queue, Result};

/// How long a submission blocks for work of a device that it cannot wait for on its own device.
const FOREIGN_DEADLINE: Duration = Duration::from_secs(60);

/// The buffers that a submission uses, and how, in the order of their addresses; not allocated up to 16.
#[derive(Default)]
pub(crate) struct AccessSet<'a>(SmallVec<[(&'a Buffer, Access); 16]>);

impl<'a> AccessSet<'a> {
    /// Adds a use; two views of one buffer are one use.
    #[inline]
    pub(crate) fn add(&mut self, buffer: &'a Buffer, access: Access) -> Result<()> {
        if buffer.is_frozen() {
            // Final content needs no order: it is skipped, so that threads share it without contention.
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

    /// Adds a use of a buffer that does not lie behind all others.
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

/// The hazards of a submission's buffers, as far as they are locked.
struct HazardGuards<'u, 'a> {
    uses: &'u [(&'a Buffer, Access)],
    /// So many of `uses`, from the first on.
    locked: usize,
}

impl<'u, 'a> HazardGuards<'u, 'a> {
    #[inline]
    fn none(uses: &'u AccessSet<'a>) -> Self {
        Self { uses: &uses.0, locked: 0 }
    }

    /// Locks all, and says what a submission of `queue` waits for: into `foreign`, and as the returned ticket of `queue`.
    ///
    /// # Errors
    /// `InvalidArgument` for a use that a host view or final content forbids.
    #[inline]
    fn lock(&mut self, queue: u64, foreign: &mut Dependencies) -> Result<u64> {
        let mut after = 0;
        for (buffer, access) in self.uses {
            // The drop unlocks; a vector of guards would cost more than the locks.
            std::mem::forget(buffer.hazards.lock());
            self.locked += 1;
            // SAFETY: locked just now, and each buffer stands in the list once.
            let hazards = unsafe { &*buffer.hazards.data_ptr() };
            hazards.check_unmapped(*access)?;
            if access.writes() {
                // It may have been frozen since it was added.
                check_writable(buffer)?;
            }
            after = after.max(hazards.dependencies(*access, queue, foreign));
        }
        Ok(after)
    }

    /// Records the submission on all, which are locked, and unlocks them.
    #[inline]
    fn record(self, by: Use) {
        for (buffer, access) in self.uses {
            // SAFETY: `lock` locked it, and each buffer stands in the list once.
            unsafe { &mut *buffer.hazards.data_ptr() }.record(*access, by);
            // SAFETY: `lock` locked it and forgot the guard.
            unsafe { buffer.hazards.force_unlock() };
        }
        std::mem::forget(self);
    }
}

impl Drop for HazardGuards<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        for (buffer, _) in &self.uses[..self.locked] {
            // SAFETY: `lock` locked it and forgot the guard.
            unsafe { buffer.hazards.force_unlock() };
        }
    }
}

#[inline]
fn check_writable(buffer: &Buffer) -> Result<()> {
    if buffer.is_frozen() { Err(Error::invalid("a frozen tensor cannot be written")) } else { Ok(()) }
}

/// What kind of submission it is.
#[derive(Clone, Copy, Default)]
pub(crate) struct SubmitFlags {
    /// A transfer: marked at once.
    pub(crate) transfer: bool,
    /// An event of it will exist.
    pub(crate) hold: bool,
    /// May run on this thread if the queue is idle.
    pub(crate) inline: bool,
}

/// A submission that was made.
#[derive(Clone, Copy)]
pub(crate) enum Submitted {
    /// Handed to the driver under this ticket.
    Async(u64),
    /// Claimed for this thread, which runs it now.
    Inline(u64),
}

impl Submitted {
    pub(crate) const fn ticket(self) -> u64 {
        let (Self::Async(ticket) | Self::Inline(ticket)) = self;
        ticket
    }
}

/// A wait on the device for work of another queue.
struct QueueWait {
    source: Arc<Timeline>,
    /// The latest ticket to wait for.
    ticket: u64,
    /// The latest ticket whose failure travels; 0: none. Order alone carries no failure.
    propagates_failure: u64,
}

type QueueWaits = SmallVec<[QueueWait; 4]>;

/// What to do about work of other queues.
enum Next {
    Go(QueueWaits),
    /// Wait for it on this thread.
    Block(Arc<Timeline>, u64),
}

impl Queue {
    /// Submits one thing.
    ///
    /// # Errors
    /// A refusal, which takes no ticket and poisons nothing.
    #[inline]
    pub(crate) fn submit(
        &self,
        uses: &AccessSet<'_>,
        flags: SubmitFlags,
        mut operation: impl FnMut(&QueueCalls, Handle, Place) -> Status,
    ) -> Result<Submitted> {
        self.device.check()?;
        self.device.reap();
        loop {
            let mut hazards = HazardGuards::none(uses);
            let mut foreign = Dependencies::new();
            let after = hazards.lock(self.timeline.id, &mut foreign)?;
            let mut joins = None;
            if !foreign.is_empty() {
                match self.resolve(&foreign, flags.inline)? {
                    Next::Go(found) => joins = Some(found),
                    Next::Block(timeline, ticket) => {
                        drop(hazards);
                        block(&timeline, ticket)?;
                        continue;
                    }
                }
            }
            let timeline = &*self.timeline;
            let lock = timeline.submission.lock();
            timeline.check_healthy()?;
            timeline.mark_held()?;
            let ticket = timeline.last_submitted() + 1;
            if let Some(joins) = &joins
                && let Some((source, ticket)) = self.join(joins)?
            {
                drop((lock, hazards));
                block(&source, ticket)?;
                continue;
            }
            // While another queue's failure may travel here, nothing may end unseen.
            let may_claim = flags.inline && !timeline.has_edges();
            // SAFETY: the queue is open, and its lock is held.
            let claimed = may_claim && unsafe { (timeline.calls.claim)(timeline.handle, ticket) } == 1;
            if !claimed {
                timeline.raw("submit", |calls, queue| operation(calls, queue, Place { ticket, after }))?;
            }
            // Only now: a refused submission must not tie its ticket's next owner to somebody else's failure.
            if let Some(joins) = &joins {
                self.push_edges(joins, ticket);
            }
            timeline.set_last_submitted(ticket);
            hazards.record(Use { queue: timeline.id, ticket });
            if claimed {
                return Ok(Submitted::Inline(ticket));
            }
            // The work is submitted; a mark that failed is tried again by whoever waits.
            let _ = timeline.mark_submitted(flags.transfer);
            if flags.hold {
                timeline.event_held(ticket);
            }
            return Ok(Submitted::Async(ticket));
        }
    }

    /// Decides what to do about work of other queues: nothing if it has ended, wait on the device, or block.
    #[cold]
    fn resolve(&self, foreign: &Dependencies, inline: bool) -> Result<Next> {
        let mut joins = QueueWaits::new();
        for dependency in foreign {
            let (ticket, propagates_failure) = (dependency.on.ticket, dependency.propagates_failure);
            let source = match self.device.queues.find(dependency.on.queue) {
                QueueStatus::Live(source) => source,
                QueueStatus::Failed(failed, error) if propagates_failure && failed <= ticket => return Err(error),
                QueueStatus::Failed(..) | QueueStatus::Gone => continue,
            };
            match source.status(ticket) {
                Some(Err(error)) if propagates_failure => return Err(error),
                // What has failed may still use the memory.
                Some(_) if !source.maybe_running(ticket) => {}
                _ if inline || !self.can_join(&source) => return Ok(Next::Block(source, ticket)),
                _ => add_join(&mut joins, source, ticket, propagates_failure),
            }
        }
        for QueueWait { source, ticket, .. } in &joins {
            let Some(_open) = source.device.upgrade() else {
                return Ok(Next::Block(source.clone(), *ticket));
            };
            source.mark_from_now_on();
            source.signal_and_flush(*ticket)?;
        }
        Ok(Next::Go(joins))
    }

    /// Whether this queue can wait for `source` on the device.
    fn can_join(&self, source: &Timeline) -> bool {
        let capable = |device: &OpenDevice| device.info.capabilities.has(abi::CAP_WAIT_FOR);
        let same_backend =
            |other: Arc<OpenDevice>| Arc::ptr_eq(&other.instance, &self.device.instance) && capable(&other);
        capable(&self.device) && source.device.upgrade().is_some_and(same_backend)
    }

    /// Makes the next submission wait on the device; what the device refuses is returned, to be blocked for.
    fn join(&self, joins: &QueueWaits) -> Result<Option<(Arc<Timeline>, u64)>> {
        for QueueWait { source, ticket, .. } in joins {
            if self.timeline.waits_for(source, *ticket) {
                continue;
            }
            // It is being closed, on another thread, which waits for its work.
            let Some(_open) = source.device.upgrade() else { return Ok(Some((source.clone(), *ticket))) };
            let joined = self.timeline.raw("wait_for", |calls, queue| {
                // SAFETY: both queues are open, and the source's ticket is marked and flushed.
                unsafe { (calls.wait_for)(queue, source.handle, *ticket) }
            });
            match joined {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Ok(Some((source.clone(), *ticket)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Notes through which joins a failure travels to `ticket`.
    fn push_edges(&self, joins: &QueueWaits, ticket: u64) {
        for join in joins.iter().filter(|join| join.propagates_failure != 0) {
            self.timeline.push_edge(ticket, &join.source, join.propagates_failure);
        }
    }

    /// Makes later submissions wait for `ticket` of `source`: on the device if it can, else on this thread.
    pub(crate) fn wait_for_ticket(&self, source: &Arc<Timeline>, ticket: u64) -> Result<()> {
        self.device.check()?;
        if Arc::ptr_eq(source, &self.timeline) {
            return Ok(());
        }
        if let Some(result) = source.status(ticket) {
            return result;
        }
        if self.can_join(source)
            && let Some(_open) = source.device.upgrade()
        {
            source.mark_from_now_on();
            source.signal_and_flush(ticket)?;
            let _lock = self.timeline.submission.lock();
            self.timeline.check_healthy()?;
            let mut joins = QueueWaits::new();
            joins.push(QueueWait { source: source.clone(), ticket, propagates_failure: ticket });
            if self.join(&joins)?.is_none() {
                self.push_edges(&joins, self.timeline.last_submitted() + 1);
                return Ok(());
            }
        }
        block(source, ticket)?;
        source.status(ticket).unwrap_or(Ok(()))
    }
}

/// One join per queue: its latest ticket.
fn add_join(joins: &mut QueueWaits, source: Arc<Timeline>, ticket: u64, propagates_failure: bool) {
    let propagates_failure = if propagates_failure { ticket } else { 0 };
    match joins.iter_mut().find(|join| Arc::ptr_eq(&join.source, &source)) {
        Some(join) => {
            join.ticket = ticket.max(join.ticket);
            join.propagates_failure = propagates_failure.max(join.propagates_failure);
        }
        None => joins.push(QueueWait { source, ticket, propagates_failure }),
    }
}

/// Waits on this thread, with a deadline; a failure is left for the caller to look at.
#[cold]
fn block(timeline: &Arc<Timeline>, ticket: u64) -> Result<()> {
    let ended = timeline.wait_ended(ticket, Some(Instant::now() + FOREIGN_DEADLINE));
    ended.map_err(|error| error.with_note("a submission depends on it"))
}
