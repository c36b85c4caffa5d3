//! Virtual queues: they collect launches in a list, and pass everything else to their real queue.

use std::fmt;
use std::sync::Arc;

use crate::code::owned_arg::OwnedArg;
use crate::memory::buffer::Buffer;
use crate::queue::Detour;
use crate::queue::fusion_list::FusionList;
use crate::queue::submit::{AccessSet, HazardGuards, QueueWaits, Submitted, WaitPlan, block};
use crate::timeline::Timeline;
use crate::timeline::hazards::{Dependencies, PROMOTED, Use};
use crate::timeline::virtual_queue::Cause;
use crate::{Access, Arg, Kernel, LaunchConfig, Queue, Result};

/// What a virtual queue does with its launches. `fusion` implements it once; it is a trait because `fusion` lies above `queue`.
pub(crate) trait Completion: fmt::Debug + Send + Sync {
    /// The most launches that are listed.
    fn limit(&self) -> usize;

    /// Whether the program has said that this memory is not read after the list.
    fn promises(&self, buffer: &Buffer) -> bool;

    /// Completes the list of `queue`, which is full. Called without any lock.
    ///
    /// # Errors
    /// A list that cannot be completed; the next launch is then refused.
    fn complete_full(&self, queue: &Queue) -> Result<()>;
}

/// What only a virtual queue has.
#[derive(Debug)]
pub(crate) struct Collector {
    real: Arc<Queue>,
    pub(crate) list: Arc<FusionList>,
    completion: Arc<dyn Completion>,
}

/// The outcome of one attempt to collect a launch.
enum Attempt {
    Listed(u64),
    /// It must first wait, with no lock held.
    Blocked(Arc<Timeline>, u64),
}

impl Queue {
    /// Opens a virtual queue in front of this one.
    pub(crate) fn open_virtual(&self, completion: Arc<dyn Completion>) -> Self {
        self.timeline.add_handle();
        let mut real = Self::new(self.timeline.clone(), self.device.clone());
        real.inline = self.inline;
        let real = Arc::new(real);
        let list = Arc::new(FusionList::new(real.clone()));
        let timeline = self.device.open_virtual_timeline(&self.timeline, list.clone());
        let mut queue = Self::new(timeline, self.device.clone());
        queue.detour = Some(Box::new(Detour::List(Collector { real, list, completion })));
        queue
    }

    #[inline]
    pub(crate) fn collector(&self) -> Option<&Collector> {
        match self.detour.as_deref() {
            Some(Detour::List(collector)) => Some(collector),
            _ => None,
        }
    }

    /// The real queue of a virtual one, for what is not a launch. It is in order with what is listed as far as tensors tell.
    #[inline]
    pub(crate) fn real_queue(&self) -> Option<&Self> {
        self.collector().map(|collector| &*collector.real)
    }

    /// The same, for what no tensor orders: hands over what is listed first.
    #[inline]
    pub(crate) fn in_order(&self) -> Option<&Self> {
        let real = self.real_queue()?;
        self.cancel_list(Cause::NotALaunch);
        Some(real)
    }

    /// Hands over what is listed.
    pub(crate) fn cancel_list(&self, cause: Cause) {
        self.timeline.hand_over(self.timeline.last_submitted(), cause);
    }

    /// Ends a virtual queue.
    pub(super) fn close_collector(&self) {
        self.cancel_list(Cause::Dropped);
        if let Some(collector) = self.collector() {
            collector.list.close();
        }
        // Nothing refers to its tickets by the id any more, except to those that have failed.
        self.device.queues.remove(&self.timeline);
    }

    /// Adds a launch to the list instead of submitting it.
    #[cold]
    pub(super) fn collect(
        &self,
        collector: &Collector,
        uses: &AccessSet<'_>,
        (kernel, config, args): (&Kernel, &LaunchConfig, &[Arg<'_>]),
        is_tracked: bool,
    ) -> Result<Submitted> {
        self.device.check()?;
        self.device.reap();
        if collector.list.len() >= collector.completion.limit() {
            collector.completion.complete_full(self)?;
        }
        let args: Arc<[OwnedArg]> = args.iter().map(OwnedArg::new).collect();
        loop {
            match self.try_collect(collector, uses, (kernel, config, &args), is_tracked)? {
                Attempt::Listed(ticket) => return Ok(Submitted::Async(ticket)),
                Attempt::Blocked(source, ticket) => block(&source, ticket)?,
            }
        }
    }

    fn try_collect(
        &self,
        collector: &Collector,
        uses: &AccessSet<'_>,
        (kernel, config, args): (&Kernel, &LaunchConfig, &Arc<[OwnedArg]>),
        is_tracked: bool,
    ) -> Result<Attempt> {
        let (timeline, real) = (&*self.timeline, &collector.real);
        let mut foreign = Dependencies::new();
        let mut hazards = HazardGuards::new(uses);
        hazards.lock(timeline.id, &mut foreign)?;
        // What is listed goes to the real queue after all work that it has already.
        foreign.retain(|dependency| dependency.on.queue != real.timeline.id);
        // A kernel that also writes such a tensor is taken to overwrite it first.
        let is_promised =
            |(buffer, access): (&Buffer, Access)| access.writes() && collector.completion.promises(buffer);
        if hazards.written_by(PROMOTED).all(is_promised) {
            foreign.retain(|dependency| dependency.on.queue != PROMOTED);
        }
        let waits = match foreign.is_empty() {
            true => QueueWaits::new(),
            false => match real.resolve(&foreign, false)? {
                WaitPlan::OnDevice(waits, _) => waits,
                WaitPlan::Block(source, ticket) => return Ok(Attempt::Blocked(source, ticket)),
            },
        };
        let _submission = timeline.submission.lock();
        timeline.check_healthy()?;
        real.timeline.check_healthy()?;
        let last = timeline.last_submitted();
        let (ticket, watches_last) = (last + 1, last != 0 && timeline.is_watched(last));
        collector.list.push((ticket, kernel, config), args.clone(), waits, (is_tracked, watches_last));
        timeline.set_last_submitted(ticket);
        hazards.record(Use { queue: timeline.id, ticket });
        timeline.watch(ticket);
        Ok(Attempt::Listed(ticket))
    }
}
