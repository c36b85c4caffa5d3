//! Judges code that the worker itself loads: code of devices, and portable code of the host. It reaches neither the clock nor what is
//! expected, but it knows its tensors, and may remember what it has done: in variables of the device, and in what it has written.

mod window_data;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use runtime_core::evaluate::{
    Clock, ClockChoice, EvaluationArg, FlushCache, Measurement, Moment, Validation, Warmup,
};
use runtime_core::{CommonRuntime, DeviceKind, Error, ErrorKind, Result, Tensor};

use crate::device::RunnerSetup;
use crate::executor::block_on;
use crate::heartbeat::{Heartbeat, beat, max_window};
use crate::job::{BoundKernel, Job, JobData, ReferenceRunner, evaluation_args};
use crate::row::{CacheState, Check, Finding, Outcome};
use crate::settings::Settings;
use crate::single_calls::{SingleCall, SingleCalls, inconsistency};
use window_data::WatchedData;

/// A kernel that is timed with two sets of tensors.
#[derive(Debug)]
pub(crate) struct Watch<'j> {
    job: &'j Job,
    /// The tensors of the other set; empty if the device has no room for them.
    other: Vec<Option<Tensor>>,
    data: WatchedData,
}

/// A device, and who is told that an evaluation on it goes on.
pub(crate) type Watched<'d> = (&'d dyn CommonRuntime, Option<&'d Heartbeat>);

impl<'j> Watch<'j> {
    /// Gives a kernel that has not run yet its tensors.
    ///
    /// # Errors
    /// The error in the data; those of allocating and writing.
    pub(crate) fn new(
        device: &dyn CommonRuntime,
        bound: &mut BoundKernel,
        job: &'j Job,
        settings: &Settings,
    ) -> Result<Self> {
        let mut data = WatchedData::new(device, job, settings)?;
        bound.tensors = data.add_set(device, job)?;
        // Without room for it, addresses stay the same.
        let other = match data.has_room(device) {
            true => data.add_set(device, job).or_else(|error| match error.kind() {
                ErrorKind::OutOfMemory | ErrorKind::OutOfResources => Ok(Vec::new()),
                _ => Err(error),
            })?,
            false => Vec::new(),
        };
        Ok(Self { job, other, data })
    }

    /// The arguments of the other set, if there is one, and what looks after the data of windows.
    pub(crate) fn parts(&mut self) -> (Vec<Vec<EvaluationArg<'_>>>, &mut WatchedData) {
        let Self { job, other, data } = self;
        let args = (!other.is_empty()).then(|| evaluation_args(&job.spec, other));
        (args.into_iter().collect(), data)
    }

    /// Checks what the last window has left, before anything else runs.
    ///
    /// # Errors
    /// Those of reading it.
    pub(crate) fn check_last(&mut self) -> Result<()> {
        self.data.check_last()
    }

    /// Checks single calls of the kernel that was timed, which may have kept state on the device, and of a freshly loaded copy, which has
    /// none. The result is why the times are not believed.
    ///
    /// # Errors
    /// Those of calls, of loading, and of the reference.
    pub(crate) fn finish(
        &mut self,
        watched: Watched<'_>,
        (bound, setup): (&mut BoundKernel, &RunnerSetup),
        settings: &Settings,
        measurement: &mut Measurement,
    ) -> Result<Option<Outcome>> {
        if measurement.validation.is_failed() {
            self.data.note_finding(Check::FirstCalls);
            return Ok(None);
        }
        let (job, clock) = (self.job, measurement.clock);
        let batch_ns = measurement.statistics.median_ns;
        let reference = (&setup.runtime, setup as &dyn ReferenceRunner);
        let mut outcome = None;
        for is_anew in [false, true] {
            if outcome.is_none() && !self.data.is_wrong() {
                if is_anew {
                    beat(watched.1);
                    bound.load_anew(watched.0, job)?;
                    beat(watched.1);
                    self.data.forget_inputs(job)?;
                }
                let mut calls = Calls { watched, bound, settings, clock, watch: self };
                outcome = inconsistency(&mut calls, job, reference, batch_ns)?;
            }
        }
        if outcome.is_some() {
            self.data.note_finding(Check::SingleCall);
        }
        if let Some(mismatch) = self.data.wrong() {
            measurement.validation = Validation::Failed(mismatch);
        }
        measurement.calls = measurement.calls.max(self.data.calls());
        Ok(outcome)
    }

    /// What the caches held when windows began, if any did.
    pub(crate) const fn cache(&self) -> Option<CacheState> {
        self.data.cache()
    }

    /// What has found that the candidate is wrong or inconsistent, if it is.
    pub(crate) const fn found(&self) -> Option<Finding> {
        self.data.found()
    }
}

/// Single calls of a kernel, each of them an evaluation.
struct Calls<'c, 'j> {
    watched: Watched<'c>,
    bound: &'c BoundKernel,
    settings: &'c Settings,
    /// That of the batches.
    clock: Clock,
    watch: &'c mut Watch<'j>,
}

impl Calls<'_, '_> {
    /// Makes a call with the other set on this data, after one with the first set that finds the code warm.
    fn call(&mut self, data: Arc<JobData>) -> Result<f64> {
        let (device, heartbeat) = self.watched;
        let job = self.watch.job;
        let mut evaluation = self.bound.evaluation(job, None)?;
        evaluation.timing = self.settings.timing();
        evaluation.timing.repeat = 1;
        evaluation.timing.until = None;
        evaluation.timing.number = Some(1);
        // A call at least; more if the clocks of a GPU have gone down meanwhile.
        evaluation.timing.warmup = Warmup::Time(Duration::from_nanos(1));
        evaluation.timing.clock = ClockChoice::Use(self.clock);
        evaluation.timing.flush_cache = FlushCache::Never;
        evaluation.timing.max_window = max_window(heartbeat);
        let (other_args, window_data) = self.watch.parts();
        let is_next = window_data.begin_single_call(data);
        evaluation.observer = Some(Box::new(move |moment| {
            is_next.fetch_or(moment == Moment::BeforeSamples, Ordering::SeqCst);
            beat(heartbeat);
        }));
        evaluation.other_args = other_args;
        evaluation.window_data = Some(window_data);
        let measured = block_on(device.evaluate(&mut evaluation)).flatten()?;
        beat(heartbeat);
        let sample = measured.samples_ns.first().copied();
        let time_ns = sample.ok_or_else(|| Error::new(ErrorKind::Internal, "a single call has no time"))?;
        Ok((time_ns - measured.overhead_ns.unwrap_or(0.0)).max(0.0))
    }
}

impl SingleCalls for Calls<'_, '_> {
    fn repeated_call(&mut self) -> Result<f64> {
        self.call(self.watch.data.last_data())
    }

    fn single_call(&mut self, data: Arc<JobData>) -> Result<SingleCall> {
        Ok(SingleCall { ns: self.call(data)?, copy_ns: 0.0 })
    }

    fn check_single_call(&mut self, data: Option<Arc<JobData>>) -> Result<()> {
        self.watch.data.check_single_call(data)
    }

    fn is_parallel(&self) -> bool {
        let info = self.watched.0.info();
        info.kind == DeviceKind::Host || info.properties.texts("type").any(|kind| kind == "cpu")
    }
}
