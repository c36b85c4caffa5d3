//! Completes a list: plans its runs, submits fused code and the rest in order, and reports it.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::fusion::options::FusionOptions;
use crate::fusion::plan::Plan;
use crate::fusion::plan_cache::{Key, PlanCache};
use crate::fusion::report::{FusionReport, ReportedKernel};
use crate::fusion::run::{self, Run};
use crate::memory::buffer::Buffer;
use crate::queue::collect::Completion;
use crate::queue::fusion_list::{Entry, Step};
use crate::timeline::event::Event;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, Queue, Result, Seam};

/// What a fuser needs to complete its list.
#[derive(Debug)]
pub(super) struct Completer {
    options: FusionOptions,
    plans: Arc<PlanCache>,
    /// What became of the launches so far.
    report: Mutex<FusionReport>,
}

/// Launches of a list, planned together.
pub(super) struct Part<'e> {
    range: Range<usize>,
    /// What a plan needs, unless the part is a single launch.
    run: Option<(Run<'e>, Arc<Plan>)>,
    is_cached: bool,
}

impl Completer {
    pub(super) fn new(options: FusionOptions, plans: Arc<PlanCache>) -> Self {
        Self { options, plans, report: Mutex::default() }
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
            self.report.lock().note_cancelled(&cause, count);
        }
        Ok(at)
    }

    fn submit(&self, queue: &Queue, entries: &[Entry]) -> Result<Option<u64>> {
        let Some(collector) = queue.collector() else { return Ok(None) };
        let is_on = queue.device.instance.fusion;
        let parts = self.plan(&queue.device, entries, is_on, |_| entries.len());
        let steps = steps(&parts);
        let mut report = report(&parts, entries);
        let require = self.options.require && is_on;
        if require && steps.len() > 1 {
            return Err(refusal(queue, &report));
        }
        let handed_over = collector.list.complete(&queue.timeline, entries, &steps, require);
        let Some(handed_over) = handed_over.map_err(|error| queue.annotate(error, "fuse"))? else {
            // Another thread needed it meanwhile, so it has run unfused.
            return Ok(None);
        };
        for (step, error) in handed_over.refused.iter().rev() {
            let device = &queue.device.name;
            tracing::warn!(target: "runtime::fusion", %device, %error, "launches were not fused");
            report.note_refused(*step, error);
        }
        if !is_on {
            report.note_off();
        }
        tracing::debug!(target: "runtime::fusion", device = %queue.device.name, %report, "completed");
        self.report.lock().append(report);
        Ok(handed_over.last())
    }

    /// Plans all parts of a list. The part that begins at an entry ends at `limit` of it, or before.
    pub(super) fn plan<'e>(
        &self,
        device: &Arc<OpenDevice>,
        entries: &'e [Entry],
        is_on: bool,
        limit: impl Fn(usize) -> usize,
    ) -> Vec<Part<'e>> {
        let mut parts = Vec::new();
        let mut start = 0;
        while start < entries.len() {
            let end = if is_on { end_of_run(&entries[..limit(start)], start) } else { start + 1 };
            parts.push(self.plan_part(device, entries, start..end));
            start = end;
        }
        parts
    }

    fn plan_part<'e>(&self, device: &Arc<OpenDevice>, entries: &'e [Entry], range: Range<usize>) -> Part<'e> {
        let run = if range.len() > 1 { Run::new(entries, range.clone(), &self.options).ok() } else { None };
        let Some(run) = run else { return Part { range, run: None, is_cached: true } };
        let key = || run.request(&self.options, |request| Ok(Key::new(request, &run))).ok();
        let key = self.options.cache.then(key).flatten();
        // A plan was made for other tensors: the device may refuse these, for example because of their alignment.
        let is_usable = |plan: &Arc<Plan>| plan.steps(&run, 0).is_ok();
        if let Some(plan) = key.as_ref().and_then(|key| self.plans.find(key, &run)).filter(is_usable) {
            return Part { range, run: Some((run, plan)), is_cached: true };
        }
        let planned = Plan::new(device, &run, &self.options).unwrap_or_else(|error| {
            tracing::warn!(target: "runtime::fusion", device = %device.name, launches = range.len(), %error, "launches were not fused");
            Plan::failed(range.len(), error)
        });
        let plan = Arc::new(planned);
        if let Some(key) = key.filter(|_| plan.is_final()) {
            self.plans.keep(key, &run, &plan);
        }
        Part { range, run: Some((run, plan)), is_cached: false }
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
fn end_of_run(entries: &[Entry], start: usize) -> usize {
    let first = &entries[start];
    if run::obstacle(first).is_some() {
        return start + 1;
    }
    let more = entries[start + 1..]
        .iter()
        .take_while(|entry| run::obstacle(entry).is_none() && run::may_meet(first, entry));
    start + 1 + more.count()
}

/// What is submitted for the parts of a list, in order.
pub(super) fn steps<'e>(parts: &'e [Part<'e>]) -> Vec<Step<'e>> {
    let mut steps = Vec::new();
    for Part { range, run, .. } in parts {
        let single = |at| Step { entries: at..at + 1, fused: None };
        match run.as_ref().map(|(run, plan)| plan.steps(run, range.start)) {
            Some(Ok(planned)) => steps.extend(planned),
            Some(Err(_)) | None => steps.extend(range.clone().map(single)),
        }
    }
    steps
}

/// What becomes of the launches.
pub(super) fn report(parts: &[Part<'_>], entries: &[Entry]) -> FusionReport {
    let mut report = FusionReport {
        launches: entries.iter().map(|entry| entry.kernel.name().to_owned()).collect(),
        is_cached: parts.iter().all(|part| part.is_cached),
        ..FusionReport::default()
    };
    for Part { range, run, .. } in parts {
        if range.start != 0 {
            report.seams.push(seam_before(entries, range.start));
        }
        match run {
            Some((_, plan)) => {
                report.seams.extend(plan.seams.iter().cloned());
                report.fallback = report.fallback.or_else(|| plan.failure.as_ref().map(Error::to_string));
                report.kernels.extend(plan.kernels.iter().map(|planned| ReportedKernel {
                    launches: range.start + planned.launches.start..range.start + planned.launches.end,
                    is_fused: planned.fused.is_some(),
                    barriers: planned.fused.as_ref().map_or(0, |fused| fused.barriers),
                    promoted: planned.fused.as_ref().map_or(0, |fused| fused.promoted.len()),
                    code: planned.fused.as_ref().map(|fused| fused.text.clone()),
                }));
            }
            None => report.kernels.extend(range.clone().map(ReportedKernel::unfused)),
        }
    }
    report
}

/// Why two parts of a list are not one.
fn seam_before(entries: &[Entry], start: usize) -> Seam {
    let obstacle = [start, start - 1].into_iter().find_map(|at| {
        run::obstacle(&entries[at]).map(|why| format!("\"{}\" {why}", entries[at].kernel.name()))
    });
    let reason = obstacle.unwrap_or_else(|| {
        "other work lies between them, their code has two formats, or fusion is turned off".to_owned()
    });
    Seam { fused: false, reason }
}

#[cold]
fn refusal(queue: &Queue, report: &FusionReport) -> Error {
    let count = report.launches.len();
    let message = format!("{count} launches cannot become one kernel, which `require` asks for: {report}");
    queue.annotate(Error::unsupported(message), "fuse")
}
