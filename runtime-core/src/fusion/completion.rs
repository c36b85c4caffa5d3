//! Completes a list: plans its runs, submits fused code and the rest in order, and reports it.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::fusion::fusible_run::{Run, may_meet};
use crate::fusion::obstacles::obstacle;
use crate::fusion::options::FusionOptions;
use crate::fusion::plan::Plan;
use crate::fusion::plan_cache::QueueCache;
use crate::fusion::report::{CompletedList, CompletedPart, FusionReport};
use crate::fusion::shape::Shape;
use crate::memory::buffer::Buffer;
use crate::queue::collect::Completion;
use crate::queue::fusion_list::{Entry, Step};
use crate::queue::submit::QueueWaits;
use crate::timeline::event::Event;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, Queue, Result};

/// What a fuser needs to complete its list.
#[derive(Debug)]
pub(super) struct Completer {
    options: FusionOptions,
    cache: Arc<QueueCache>,
    /// What became of the launches so far.
    report: Mutex<FusionReport>,
}

/// What keeps each launch of a list from being fused.
type Obstacles = SmallVec<[Option<&'static str>; 16]>;

/// How a list is submitted.
#[derive(Default)]
pub(super) struct PlannedList<'e> {
    /// What is submitted, in order.
    pub(super) steps: Vec<Step<'e>>,
    parts: SmallVec<[CompletedPart; 1]>,
}

impl Completer {
    pub(super) fn new(options: FusionOptions, cache: Arc<QueueCache>) -> Self {
        Self { options, cache, report: Mutex::default() }
    }

    /// Completes what `queue` lists; returns the event of the last launch, and what became of all of them.
    ///
    /// # Errors
    /// With `require`, what keeps the launches from becoming one kernel; nothing has been submitted then.
    pub(super) fn complete(&self, queue: &Queue) -> Result<(Event, FusionReport)> {
        let at = self.complete_list(queue)?;
        let event = match (at, queue.real_queue()) {
            (Some(at), Some(real)) => Event::new(&real.timeline, at),
            _ => Event::new(&queue.timeline, queue.submitted()),
        };
        Ok((event, std::mem::take(&mut *self.report.lock())))
    }

    /// Completes the list; returns the last ticket of the real queue, unless a launch failed or there was none.
    fn complete_list(&self, queue: &Queue) -> Result<Option<u64>> {
        let Some(collector) = queue.collector() else { return Ok(None) };
        let entries = collector.list.snapshot(true);
        let at = if entries.is_empty() { None } else { self.submit(queue, &entries)? };
        if let Some((cause, count)) = collector.list.take_cancelled() {
            self.report.lock().note_cancelled(cause, count);
        }
        Ok(at)
    }

    fn submit(&self, queue: &Queue, entries: &[Entry]) -> Result<Option<u64>> {
        let Some(collector) = queue.collector() else { return Ok(None) };
        let is_on = queue.device.instance.fusion;
        let PlannedList { steps, parts } = self.plan(&queue.device, entries, is_on, |_| entries.len());
        let mut completed = CompletedList { parts, ..CompletedList::default() };
        completed.is_off = !is_on;
        let require = self.options.require && is_on;
        if require && steps.len() > 1 {
            return Err(refusal(queue, completed, entries.len()));
        }
        let mut unused = Vec::new();
        let may_be_graph = is_on && self.options.cache;
        let mut at_once = |real: &Queue, waits: &dyn Fn() -> QueueWaits, watched| {
            let list = (entries, &steps[..]);
            may_be_graph
                .then(|| self.cache.graphs.submit(real, list, (waits, watched), &mut unused))
                .flatten()
        };
        let handed_over = collector.list.complete(&queue.timeline, entries, (&steps, &mut at_once), require);
        let Some(handed_over) = handed_over.map_err(|error| queue.annotate(error, "fuse"))? else {
            // Another thread needed it meanwhile, so it has run unfused.
            return Ok(None);
        };
        let last = handed_over.last();
        completed.refused = handed_over.refused;
        completed.is_graph = handed_over.is_at_once;
        let device = &queue.device.name;
        for (_, error) in &completed.refused {
            tracing::warn!(target: "runtime::fusion", %device, %error, "launches were not fused");
        }
        let mut report = self.report.lock();
        report.push(completed);
        tracing::debug!(target: "runtime::fusion", %device, report = %*report, "completed");
        Ok(last)
    }

    /// Plans all parts of a list. The part that begins at an entry ends at `limit` of it, or before.
    pub(super) fn plan<'e>(
        &self,
        device: &Arc<OpenDevice>,
        entries: &'e [Entry],
        is_on: bool,
        limit: impl Fn(usize) -> usize,
    ) -> PlannedList<'e> {
        let mut list = PlannedList::default();
        let obstacles: Obstacles = entries.iter().map(obstacle).collect();
        let mut start = 0;
        while start < entries.len() {
            let end = if is_on { end_of_run(&entries[..limit(start)], &obstacles, start) } else { start + 1 };
            if end == start + 1 || !self.plan_part(device, (entries, start..end), &mut list) {
                (start..end).for_each(|at| list.push_single(&entries[at], at, obstacles[at]));
            }
            start = end;
        }
        list
    }

    /// Plans several launches together; returns whether it can.
    fn plan_part<'e>(
        &self,
        device: &Arc<OpenDevice>,
        (entries, range): (&'e [Entry], Range<usize>),
        list: &mut PlannedList<'e>,
    ) -> bool {
        let Ok(run) = Run::new(entries, range.clone(), &self.options) else { return false };
        let shape = self.options.cache.then(|| Shape::of(&run, &self.options));
        if let Some(plan) = shape.as_ref().and_then(|shape| self.cache.plans.find(shape, &run))
            // A plan was made for other tensors: the device may refuse these, for example because of their alignment.
            && plan.add_steps(&run, range.start, &mut list.steps).is_ok()
        {
            list.parts.push(CompletedPart::Planned { outline: plan.outline.clone(), is_cached: true });
            return true;
        }
        let planned = Plan::new(device, (&run, shape.as_ref()), &self.options)
            // What the device would refuse now, it would refuse whenever the plan is used.
            .and_then(|plan| plan.add_steps(&run, range.start, &mut list.steps).map(|()| plan));
        let plan = Arc::new(planned.unwrap_or_else(|error| {
            tracing::warn!(target: "runtime::fusion", device = %device.name, launches = range.len(), %error, "launches were not fused");
            list.steps.extend(range.clone().map(Step::unfused));
            Plan::failed(&run, &error)
        }));
        if let Some(shape) = shape.filter(|_| plan.is_final()) {
            self.cache.plans.insert(&shape, &run, &plan);
        }
        list.parts.push(CompletedPart::Planned { outline: plan.outline.clone(), is_cached: false });
        true
    }
}

impl PlannedList<'_> {
    fn push_single(&mut self, entry: &Entry, at: usize, obstacle: Option<&'static str>) {
        self.steps.push(Step::unfused(at));
        self.parts.push(CompletedPart::Single { name: entry.kernel.shared_name().clone(), obstacle });
    }

    /// What becomes of the list, before it is submitted; `is_off` if nothing is fused.
    pub(super) fn report(&self, is_off: bool) -> FusionReport {
        let mut report = FusionReport::default();
        report.push(CompletedList { parts: self.parts.clone(), is_off, ..CompletedList::default() });
        report
    }
}

impl Completion for Completer {
    fn limit(&self) -> usize {
        self.options.limit
    }

    fn promises(&self, buffer: &Buffer) -> bool {
        let promised = self.options.promote.iter().filter_map(|(tensor, _)| tensor.buffer("fuse").ok());
        promised.into_iter().any(|promised| std::ptr::eq(&**promised, buffer))
    }

    fn complete_full(&self, queue: &Queue) -> Result<()> {
        if self.options.require {
            let message = format!(
                "the list is full with {} launches, and `require` asks for one kernel; raise `limit`",
                self.options.limit
            );
            return Err(Error::new(crate::ErrorKind::OutOfResources, message));
        }
        self.complete_list(queue).map(drop)
    }
}

/// The end of the longest run that begins with launch `start`: one past it if it cannot be fused.
fn end_of_run(entries: &[Entry], obstacles: &Obstacles, start: usize) -> usize {
    if obstacles[start].is_some() {
        return start + 1;
    }
    let may_join = |at: &usize| obstacles[*at].is_none() && may_meet(&entries[start], &entries[*at]);
    start + 1 + (start + 1..entries.len()).take_while(may_join).count()
}

#[cold]
fn refusal(queue: &Queue, completed: CompletedList, launches: usize) -> Error {
    let mut report = FusionReport::default();
    report.push(completed);
    let message = format!("{launches} launches cannot become one kernel, which `require` asks for: {report}");
    queue.annotate(Error::unsupported(message), "fuse")
}
