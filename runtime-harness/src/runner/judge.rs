//! The judge: checks and times a candidate that runs in a runner.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::backend::SandboxPolicy;
use runtime_core::evaluate::{
    Clock, ClockChoice, FlushCache, HostCaches, Measurement, Observer, Validation, time_calls,
};
use runtime_core::{CommonRuntime, DeviceInfo, DeviceKind, Error, Result};

use super::loaded::{self, Loaded, Role, is_foreign};
use super::process::WindowTime;
use super::windows::Windows;
use crate::device::RunnerSetup;
use crate::heartbeat::Heartbeat;
use crate::job::{Job, JobData, PackageChoice, PackagedKind, has_fresh_inputs, packaged_kind};
use crate::platform::ExitKind;
use crate::row::{Check, Finding, Outcome};
use crate::settings::Settings;

/// Single calls on inputs that were never seen, until one is as fast as it should be: at least so many,
const SINGLE_CALLS: usize = 5;
/// and at most so many, as long as they take no longer than this. Threads that wait for each other on a busy machine need some.
const MOST_CALLS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(1);
/// How often this is done before single calls are believed to take longer.
const ROUNDS: usize = 4;
/// How often the time of a call that it is compared with a single call may take,
const SLACK: f64 = 1.5;
/// and how much more; with threads, which wait for each other, more.
const COLD_NS: f64 = 20e3;
const COLD_THREADS_NS: f64 = 100e3;
/// What a call costs whose data is not in the caches and whose threads sleep, a single call on inputs that were seen before tells. It is
/// believed up to so many times what copying the tensors takes longer if they are not in the caches,
const COPIES: f64 = 3.0;
/// and so much for threads.
const WAKING_NS: f64 = 500e3;

/// A candidate in a runner.
#[derive(Debug)]
pub(crate) struct Judge<'j> {
    job: &'j Job,
    setup: &'j RunnerSetup,
    /// The host.
    info: DeviceInfo,
    /// That of the spec.
    data: Arc<JobData>,
    windows: Windows,
}

/// Where the code of a job runs.
#[derive(Debug)]
pub(crate) enum Place<'s> {
    /// In a runner.
    Runner(&'s RunnerSetup),
    /// In this process: candidates are trusted, or it is no native code of the host.
    Here,
    /// In this process, which believes it, for a reason.
    Believed(Error),
    /// It does not run.
    Nowhere(Error),
}

impl<'s> Place<'s> {
    /// Where a job runs; everything runs here if there is no setup for runners.
    pub(crate) fn of(
        job: &Job,
        device: &dyn CommonRuntime,
        setup: Option<&'s RunnerSetup>,
        settings: &Settings,
    ) -> Self {
        let Some(setup) = setup else { return Self::Here };
        let foreign = if device.info().kind == DeviceKind::Host { Foreign::of(job, device) } else { None };
        let Some(foreign) = foreign else { return Self::here(setup) };
        let place = match check_takes(job, foreign, settings) {
            Ok(()) if !setup.needs_fresh_inputs || has_fresh_inputs(&job.spec) => Self::Runner(setup),
            Ok(()) => {
                return Self::Nowhere(Error::unsupported(
                    "its inputs are always the same, as none is random or what is expected comes from files; --fresh-inputs asks for others",
                ));
            }
            Err(why) => Self::Believed(why),
        };
        match place {
            Self::Believed(_) if setup.needs_fresh_inputs => Self::here(setup),
            place => place,
        }
    }

    fn here(setup: &RunnerSetup) -> Self {
        match setup.needs_fresh_inputs {
            true => Self::Nowhere(Error::unsupported(
                "--fresh-inputs asks for inputs that it has never seen, which only native code of the host gets, in a runner",
            )),
            false => Self::Here,
        }
    }
}

/// Code that does what it likes on the host.
#[derive(Clone, Copy, Debug)]
enum Foreign {
    /// That of a file.
    File,
    /// That of a package, which is not portable.
    Packaged(PackagedKind),
}

impl Foreign {
    /// The code of a job, if it is foreign. A package that cannot be read has no code.
    fn of(job: &Job, device: &dyn CommonRuntime) -> Option<Self> {
        let code = &job.spec.kernel;
        if !code.is_package() {
            return is_foreign(code).then_some(Self::File);
        }
        let kind = packaged_kind(device, code, &job.spec.specialise).ok()?;
        (kind != PackagedKind::Portable).then_some(Self::Packaged(kind))
    }
}

/// Whether the sandbox of runners is whole.
pub(crate) fn is_sandboxed() -> bool {
    // The policy of a worker is that of its parent, which has looked for what is missing.
    matches!(SandboxPolicy::of_process(), Ok(SandboxPolicy::Required))
}

/// Checks that a job is judged in a runner with these settings: without counters.
fn check_takes(job: &Job, foreign: Foreign, settings: &Settings) -> Result<()> {
    let timing = settings.timing();
    let is_wall_time = matches!(timing.clock, ClockChoice::Auto | ClockChoice::Use(Clock::HostWall));
    let refused = |why: &str| Err(Error::unsupported(why));
    match foreign {
        _ if !is_wall_time => refused("another clock than host_wall is asked for"),
        _ if settings.counters.is_some() => refused("counters are read"),
        _ if settings.measures_energy() => refused("energy is measured"),
        Foreign::Packaged(PackagedKind::Lowered) => {
            refused("its code in the package was compiled from a portable kernel")
        }
        Foreign::Packaged(_) => Ok(()),
        Foreign::File => loaded::check_takes(&job.spec.kernel),
    }
}

impl<'j> Judge<'j> {
    /// Compiles the code, which is not loaded here, and starts a runner that loads it.
    ///
    /// # Errors
    /// Those of compiling, of starting a runner, and of loading.
    pub(crate) fn new(
        job: &'j Job,
        (device, heartbeat): (&dyn CommonRuntime, Option<Arc<Heartbeat>>),
        setup: &'j RunnerSetup,
    ) -> Result<Self> {
        let data = job.data()?;
        let code = (job, &job.spec.kernel, job.spec.config);
        let sets = vec![Arc::clone(&data); 2];
        let loaded = Loaded::new(code, device, setup, sets, Role::Candidate)?;
        Ok(Self {
            job,
            setup,
            info: device.info().clone(),
            data,
            windows: Windows::new(loaded, job, device.info(), heartbeat),
        })
    }

    /// Checks the candidate, times it, and checks it again. The second result is why the times are not believed.
    ///
    /// # Errors
    /// Those of calls and of the loop.
    pub(crate) async fn measure(
        &mut self,
        settings: &Settings,
        observer: &mut Option<Observer<'_>>,
    ) -> Result<(Measurement, Option<Outcome>)> {
        let mut timing = settings.timing();
        // If the first call is timed, it is the first one.
        let is_cold = timing.warmup.is_none();
        let caches =
            (timing.flush_cache != FlushCache::Never).then(|| HostCaches::of(&self.info)).transpose()?;
        self.windows.begin_with(is_cold, caches);
        let first = if is_cold { None } else { Some(self.windows.first_calls()?) };
        timing.max_window = self.windows.max_window();
        let mut measurement = time_calls(&mut self.windows, &timing, self.job.spec.cost, observer).await?;
        measurement.validation = first.map_or_else(|| self.windows.first_calls(), Ok)?;
        let mut outcome = None;
        if !measurement.validation.is_failed() {
            let median_ns = measurement.statistics.median_ns;
            self.windows.later_calls(self.job)?;
            // A busy machine may be in the way for seconds. The inputs of an earlier round have been seen.
            for round in 0..ROUNDS {
                outcome = self.inconsistency(median_ns, round * MOST_CALLS)?;
                if outcome.is_none() {
                    break;
                }
            }
            if outcome.is_some() {
                self.windows.note_finding(Check::SingleCall);
            }
        }
        if measurement.validation.is_passed()
            && let Some(mismatch) = self.windows.history.wrong.take()
        {
            measurement.validation = Validation::Failed(mismatch);
        }
        measurement.calls = self.windows.history.calls;
        Ok((measurement, outcome))
    }

    /// What has found that it is wrong or inconsistent, if it is.
    pub(crate) const fn found(&self) -> Option<Finding> {
        self.windows.history.found
    }

    /// What was taken from the package, if the code is one.
    pub(crate) fn package(&self) -> Option<PackageChoice> {
        self.windows.loaded.package.clone()
    }

    /// The runner.
    pub(crate) const fn process(&self) -> i32 {
        self.windows.loaded.runner.process()
    }

    /// How the runner has ended, if it has.
    pub(crate) const fn end(&self) -> Option<ExitKind> {
        self.windows.loaded.runner.end()
    }

    /// Whether single calls on inputs that were never seen, from those with this index on, take much longer than those of batches, with
    /// what they cost anyway.
    fn inconsistency(&mut self, batch_ns: f64, first: usize) -> Result<Option<Outcome>> {
        let handshake = self.windows.loaded.runner.handshake();
        let is_parallel = self.windows.loaded.runner.threads() > 1;
        // The least of each: on a busy machine, anything may take much longer.
        let (mut shortest_ns, mut repeated_ns) = (f64::INFINITY, f64::INFINITY);
        let begin = Instant::now();
        for index in first..first + MOST_CALLS {
            if index - first >= SINGLE_CALLS && begin.elapsed() > PATIENCE {
                break;
            }
            let (data, is_known) = self.single_data(index)?;
            repeated_ns = repeated_ns.min(own_ns(&self.windows.repeated_call()?, &handshake, is_parallel));
            let call = self.windows.single_call(data)?;
            let single_ns = own_ns(&call.time, &handshake, is_parallel);
            shortest_ns = shortest_ns.min(single_ns);
            let (waking_ns, cold_ns) =
                if is_parallel { (WAKING_NS, COLD_THREADS_NS) } else { (0.0, COLD_NS) };
            let most_ns = SLACK * batch_ns + COPIES * nanoseconds(call.copy) + waking_ns;
            let is_fast = single_ns <= SLACK * batch_ns.max(repeated_ns.min(most_ns)) + cold_ns;
            if is_fast || is_known {
                let expected = if is_known {
                    None
                } else {
                    self.job.fresh_data(&self.setup.runtime, self.setup, index)?
                };
                self.windows.check_single_call(&call, expected)?;
            }
            if is_fast {
                return Ok(None);
            }
        }
        Ok(Some(Outcome::Inconsistent { batch_ns, single_ns: shortest_ns }))
    }

    /// The inputs of a single call, and whether it is known what is expected of them. A reference may take long, so of all but the first
    /// it is found out only for the call that shows that the candidate is as fast as it should be.
    fn single_data(&self, index: usize) -> Result<(Arc<JobData>, bool)> {
        if index == 0
            && let Some(fresh) = self.job.fresh_data(&self.setup.runtime, self.setup, index)?
        {
            return Ok((fresh, true));
        }
        Ok(match self.job.fresh_inputs(index)? {
            Some(fresh) => (Arc::new(fresh), false),
            None => (Arc::clone(&self.data), true),
        })
    }
}

/// What a single call takes beyond the handshake. On a busy machine, a process waits for a processor, which is not its time; one that has
/// threads uses the time of several processors.
fn own_ns(call: &WindowTime, handshake: &WindowTime, is_parallel: bool) -> f64 {
    let processor = call.processor.saturating_sub(handshake.processor);
    let elapsed = call.elapsed.saturating_sub(handshake.elapsed);
    nanoseconds(if is_parallel { processor.min(elapsed) } else { processor })
}

const fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}
