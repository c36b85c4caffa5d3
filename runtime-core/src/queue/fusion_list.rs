//! The list of a virtual queue: launches that wait to be fused, and how they reach the real queue.
//!
//! ```text
//!   collected: dependencies captured, accesses recorded under the virtual queue's id, a ticket of the virtual queue
//!        │ the list is completed, or cancelled
//!        ▼
//!   lock `resolving` ─► submit to the real queue, in order ─► resolve the tickets, all at once
//!        ─► replace the accesses by the real queue's, buffer by buffer ─► unlock
//! ```
//!
//! The accesses of the virtual queue stay recorded until everything is submitted. Another thread that meets one of them meanwhile
//! waits for `resolving`, so nobody sees a list that is submitted in part.
//!
//! Locks: `resolving` comes before all others, and nobody waits for it with another lock held. While it is held, the real queue is
//! locked for each submission, and then the hazards of one buffer at a time. It is held during waits only where a device
//! refuses to wait by itself; what is waited for then cannot depend on the list, because whatever depends on it hands it over
//! first. `entries` is locked for a moment, after the hazards of buffers and the submission lock of the virtual queue.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::code::owned_arg::OwnedArg;
use crate::queue::submit::{QueueWaits, add_wait, add_waits};
use crate::timeline::Timeline;
use crate::timeline::hazards::{PROMOTED, Use};
use crate::timeline::virtual_queue::{Cause, Unsubmitted};
use crate::{Access, Arg, Error, Kernel, LaunchConfig, Queue, Result, Tensor};

/// A launch of the list. Clones share its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its ticket of the virtual queue.
    pub(crate) ticket: u64,
    pub(crate) kernel: Kernel,
    pub(crate) config: LaunchConfig,
    pub(crate) args: Arc<[OwnedArg]>,
    /// Whether its accesses are recorded.
    pub(crate) is_tracked: bool,
    /// Whether the program had an event of it when the next one was added.
    is_watched: bool,
    waits: QueueWaits,
}

impl Entry {
    /// A launch that no queue has taken.
    pub(crate) fn recorded(kernel: Kernel, config: LaunchConfig, args: Vec<OwnedArg>) -> Self {
        let waits = QueueWaits::new();
        Self { ticket: 0, kernel, config, args: args.into(), is_tracked: true, is_watched: false, waits }
    }
}

#[derive(Debug, Default)]
struct Entries {
    list: Vec<Entry>,
    /// What the next entry waits for, by request of the program.
    next_waits: QueueWaits,
}

/// Launches that a virtual queue has collected.
#[derive(Debug)]
pub(crate) struct FusionList {
    entries: Mutex<Entries>,
    /// The real queue, until the virtual one is closed. Held while the list is handed over.
    resolving: Mutex<Option<Arc<Queue>>>,
    /// Why entries were handed over without being fused, most recently, and how many in all.
    cancelled: Mutex<Option<(Cause, usize)>>,
}

/// What is submitted at once: entries as they are, or code that stands for them.
pub(crate) struct Step<'e> {
    pub(crate) entries: Range<usize>,
    pub(crate) fused: Option<FusedLaunch<'e>>,
}

impl Step<'_> {
    /// An entry as it is.
    pub(crate) fn unfused(entry: usize) -> Self {
        Self { entries: entry..entry + 1, fused: None }
    }

    /// The kernel and geometry of its launch, the first one if there are several.
    pub(crate) fn launch<'s>(&'s self, entries: &'s [Entry]) -> (&'s Kernel, &'s LaunchConfig) {
        let entry = &entries[self.entries.start];
        self.fused.as_ref().map_or((&entry.kernel, &entry.config), |fused| (&fused.kernel, &fused.config))
    }

    /// The arguments of that launch.
    pub(crate) fn args<'s>(&'s self, entries: &'s [Entry]) -> SmallVec<[Arg<'s>; 16]> {
        match &self.fused {
            Some(fused) => fused.args.iter().copied().collect(),
            None => entries[self.entries.start].args.iter().map(OwnedArg::borrow).collect(),
        }
    }
}

/// A launch of fused code.
pub(crate) struct FusedLaunch<'e> {
    pub(crate) kernel: Kernel,
    pub(crate) config: LaunchConfig,
    pub(crate) args: SmallVec<[Arg<'e>; 16]>,
    /// Tensors that it does not write because the program gave them up.
    pub(crate) promoted: SmallVec<[&'e Tensor; 2]>,
}

/// Submits the steps of a list at once, after the waits, which are merged only when they are asked for; `true` if the last step
/// is watched. Returns the ticket, or `None` if they must be submitted one by one.
pub(crate) type SubmitAtOnce<'a> = &'a mut dyn FnMut(&Queue, &dyn Fn() -> QueueWaits, bool) -> Option<u64>;

/// What became of a list.
#[derive(Default)]
pub(crate) struct HandedOver {
    /// The tickets of the virtual queue, each with that of the real one.
    tickets: SmallVec<[(u64, u64); 16]>,
    /// The first entry that could not be submitted, with the reason.
    failure: Option<(u64, Error)>,
    /// The steps whose fused code the device refused, with the reason; their entries were submitted as they are.
    pub(crate) refused: Vec<(usize, Error)>,
    /// All steps were submitted at once.
    pub(crate) is_at_once: bool,
}

impl HandedOver {
    /// The last ticket of the real queue, unless an entry has failed.
    pub(crate) fn last(&self) -> Option<u64> {
        if self.failure.is_some() { None } else { self.tickets.last().map(|(_, at)| *at) }
    }
}

impl FusionList {
    pub(crate) fn new(real: Arc<Queue>) -> Self {
        Self { entries: Mutex::default(), resolving: Mutex::new(Some(real)), cancelled: Mutex::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().list.len()
    }

    /// The entries as they are now; `watches_last` if the last one is watched.
    pub(crate) fn snapshot(&self, watches_last: bool) -> Vec<Entry> {
        let mut entries = self.entries.lock().list.clone();
        if let Some(last) = entries.last_mut() {
            last.is_watched = watches_last;
        }
        entries
    }

    /// Adds a launch. Call it under the submission lock of the virtual queue.
    pub(super) fn push(
        &self,
        (ticket, kernel, config): (u64, &Kernel, &LaunchConfig),
        args: Arc<[OwnedArg]>,
        mut waits: QueueWaits,
        (is_tracked, watches_last): (bool, bool),
    ) {
        let mut entries = self.entries.lock();
        if let Some(last) = entries.list.last_mut() {
            last.is_watched = watches_last;
        }
        if !entries.next_waits.is_empty() {
            add_waits(&mut waits, &std::mem::take(&mut entries.next_waits));
        }
        let (kernel, config) = (kernel.clone(), *config);
        entries.list.push(Entry { ticket, kernel, config, args, is_tracked, is_watched: false, waits });
    }

    /// Makes the next entry wait.
    pub(super) fn wait_for(&self, source: Arc<Timeline>, ticket: u64, propagates_failure: bool) {
        add_wait(&mut self.entries.lock().next_waits, source, ticket, propagates_failure);
    }

    /// Why entries were handed over without being fused, and how many; forgets it.
    pub(crate) fn take_cancelled(&self) -> Option<(Cause, usize)> {
        self.cancelled.lock().take()
    }

    /// Closes the list, which must be handed over.
    pub(super) fn close(&self) {
        let real = self.resolving.lock().take();
        drop(real);
    }

    /// Submits `entries`, a snapshot of the whole list, as `steps`, in one submission if `at_once` accepts it; `None` if the list
    /// was handed over in the meantime.
    ///
    /// # Errors
    /// With `require`, the refusal of fused code while nothing has been submitted; the list is kept.
    pub(crate) fn complete(
        &self,
        timeline: &Timeline,
        entries: &[Entry],
        (steps, at_once): (&[Step<'_>], SubmitAtOnce<'_>),
        require: bool,
    ) -> Result<Option<HandedOver>> {
        let resolving = self.resolving.lock();
        let first = self.entries.lock().list.first().map(|entry| entry.ticket);
        let Some(real) = resolving.clone().filter(|_| first == entries.first().map(|entry| entry.ticket))
        else {
            return Ok(None);
        };
        let mut handed_over = HandedOver::default();
        if let Some(at) = submit_at_once(&real, (entries, steps), at_once) {
            handed_over.tickets.extend(entries.iter().map(|entry| (entry.ticket, at)));
            handed_over.is_at_once = true;
        } else {
            for (index, step) in steps.iter().enumerate() {
                submit_step(&real, (entries, index), step, require, &mut handed_over)?;
            }
        }
        let done = self.resolve(timeline, &real, entries, steps, &handed_over);
        drop(resolving);
        // Dropping tensors may run foreign code, which may use the list.
        drop(done);
        real.device.reap();
        Ok(Some(handed_over))
    }

    /// Publishes what was submitted, and returns the entries, which are no longer listed, and what was retained until then.
    fn resolve(
        &self,
        timeline: &Timeline,
        real: &Queue,
        entries: &[Entry],
        steps: &[Step<'_>],
        handed_over: &HandedOver,
    ) -> (Vec<Entry>, Vec<Box<dyn Any + Send>>) {
        let HandedOver { tickets, failure, .. } = handed_over;
        if let Some((ticket, error)) = failure {
            timeline.fail_from(*ticket, error);
        }
        let retained = timeline.resolve_tickets(tickets, entries.last().map_or(0, |entry| entry.ticket));
        let used = |ticket: u64| {
            let at = tickets.binary_search_by_key(&ticket, |(own, _)| *own).ok()?;
            Some(Use { queue: real.timeline.id, ticket: tickets[at].1 })
        };
        for (tensor, _) in entries.iter().flat_map(|entry| entry.args.iter()).filter_map(OwnedArg::tensor) {
            if let Ok(buffer) = tensor.buffer("fuse")
                && !buffer.is_frozen()
            {
                buffer.hazards.lock().replace(timeline.id, used);
            }
        }
        mark_promoted(real, steps, entries, handed_over);
        (self.entries.lock().list.drain(..entries.len()).collect(), retained)
    }
}

impl Unsubmitted for FusionList {
    fn submit_all(&self, timeline: &Timeline, cause: Cause) {
        let resolving = self.resolving.lock();
        let Some(real) = resolving.clone() else { return };
        let entries = self.snapshot(timeline.is_watched(timeline.last_submitted()));
        if entries.is_empty() {
            return;
        }
        let step = Step { entries: 0..entries.len(), fused: None };
        let mut handed_over = HandedOver::default();
        // Only a refusal of fused code is returned.
        let _ = submit_step(&real, (&entries, 0), &step, false, &mut handed_over);
        let done = self.resolve(timeline, &real, &entries, &[], &handed_over);
        let mut cancelled = self.cancelled.lock();
        let before = cancelled.map_or(0, |(_, count)| count);
        *cancelled = Some((cause, before + entries.len()));
        drop(cancelled);
        drop(resolving);
        drop(done);
        let (device, count) = (&real.device.name, entries.len());
        tracing::warn!(target: "runtime::fusion", %device, launches = count, "launches were not fused: {cause}");
        drop(entries);
        real.device.reap();
    }
}

/// Submits several steps at once. Steps that the program watches are not, because a wait for early work must not wait for
/// later work.
fn submit_at_once(
    real: &Queue,
    (entries, steps): (&[Entry], &[Step<'_>]),
    at_once: SubmitAtOnce<'_>,
) -> Option<u64> {
    let last = steps.last().filter(|_| steps.len() > 1)?.entries.start;
    if entries[..last].iter().any(|entry| entry.is_watched) {
        return None;
    }
    at_once(real, &|| merged_waits(entries), entries[last..].iter().any(|entry| entry.is_watched))
}

/// What any of the entries waits for.
fn merged_waits(entries: &[Entry]) -> QueueWaits {
    let mut waits = QueueWaits::new();
    entries.iter().for_each(|entry| add_waits(&mut waits, &entry.waits));
    waits
}

/// Submits one step. If fused code is refused, its entries are submitted as they are.
///
/// # Errors
/// With `require`, the refusal of fused code while nothing has been submitted.
fn submit_step(
    real: &Queue,
    (entries, index): (&[Entry], usize),
    step: &Step<'_>,
    require: bool,
    handed_over: &mut HandedOver,
) -> Result<()> {
    let run = &entries[step.entries.clone()];
    if let (Some(FusedLaunch { kernel, config, args, .. }), None) = (&step.fused, &handed_over.failure) {
        let waits = merged_waits(run);
        match real.submit_listed((kernel, config, args), &waits, run.iter().any(|entry| entry.is_watched)) {
            Ok(at) => {
                handed_over.tickets.extend(run.iter().map(|entry| (entry.ticket, at)));
                return Ok(());
            }
            Err(error) if require && handed_over.tickets.is_empty() => return Err(error),
            Err(error) => handed_over.refused.push((index, error)),
        }
    }
    for entry in run {
        if handed_over.failure.is_some() {
            break;
        }
        let args: SmallVec<[Arg<'_>; 16]> = entry.args.iter().map(OwnedArg::borrow).collect();
        match real.submit_listed((&entry.kernel, &entry.config, &args), &entry.waits, entry.is_watched) {
            Ok(at) => handed_over.tickets.push((entry.ticket, at)),
            Err(error) => handed_over.failure = Some((entry.ticket, error)),
        }
    }
    Ok(())
}

/// Makes later reads fail of tensors that fused code does not write because the program gave them up.
fn mark_promoted(real: &Queue, steps: &[Step<'_>], entries: &[Entry], handed_over: &HandedOver) {
    for (index, step) in steps.iter().enumerate() {
        let Some(fused) = &step.fused else { continue };
        let first = entries[step.entries.start].ticket;
        let submitted = handed_over.tickets.binary_search_by_key(&first, |(own, _)| *own).ok();
        let is_refused = handed_over.refused.iter().any(|(refused, _)| *refused == index);
        let Some(at) = submitted.filter(|_| !is_refused) else { continue };
        for buffer in fused.promoted.iter().filter_map(|tensor| tensor.buffer("fuse").ok()) {
            let mut hazards = buffer.hazards.lock();
            hazards.record(Access::Write, Use { queue: PROMOTED, ticket: 1 });
            // The memory may still be bound, so it must not be reused before the work has ended.
            let reader = Use { queue: real.timeline.id, ticket: handed_over.tickets[at].1 };
            hazards.record(Access::Read, reader);
        }
    }
}
