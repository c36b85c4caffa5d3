//! The judge: checks and times a candidate that runs in a runner.

use std::sync::Arc;

use runtime_core::backend::SandboxPolicy;
use runtime_core::evaluate::{
    Clock, ClockChoice, FlushCache, HostCaches, Measurement, Observer, Validation, time_calls,
};
use runtime_core::{CommonRuntime, DeviceInfo, DeviceKind, Error, Result};

use super::loaded::{self, Loaded, Role, is_foreign};
use super::windows::Windows;
use crate::device::RunnerSetup;
use crate::heartbeat::Heartbeat;
use crate::job::{Job, PackageChoice, PackagedKind, ReferenceRunner, has_fresh_inputs, packaged_kind};
use crate::platform::ExitKind;
use crate::row::{CacheState, Check, Finding, Outcome};
use crate::settings::Settings;
use crate::single_calls::inconsistency;

/// A candidate in a runner.
#[derive(Debug)]
pub(crate) struct Judge<'j> {
    job: &'j Job,
    setup: &'j RunnerSetup,
    /// The host.
    info: DeviceInfo,
    windows: Windows,
}

/// Where the code of a job runs.
#[derive(Debug)]
pub(crate) enum Place<'s> {
    /// In a runner.
    Runner(&'s RunnerSetup),
    /// In this process, as candidates are trusted.
    Here,
    /// In this process, which looks after it: it is no native code of the host.
    Watched(&'s RunnerSetup),
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
        let taken = foreign.map(|foreign| check_takes(job, foreign, settings));
        let nowhere = |why: String| Self::Nowhere(Error::unsupported(why));
        match taken {
            _ if device.info().kind == DeviceKind::Embedded && setup.needs_fresh_inputs => nowhere(
                "--fresh-inputs, or \"fresh\" in `require`, asks for inputs that it has never seen, and a board gets those of the spec only"
                    .to_owned(),
            ),
            Some(Err(why)) if setup.needs_sandbox => {
                nowhere(format!("\"sandbox\" in `require` asks for a runner, in which its code cannot run: {why}"))
            }
            Some(Err(why)) if setup.needs_fresh_inputs => nowhere(format!(
                "--fresh-inputs, or \"fresh\" in `require`, asks for inputs that it has never seen, which native code of the host gets in \
                 a runner only: {why}"
            )),
            Some(Err(why)) => Self::Believed(why),
            _ if setup.needs_fresh_inputs && !has_fresh_inputs(&job.spec) => nowhere(
                "its inputs are always the same, as none is random or what is expected comes from files; --fresh-inputs, or \"fresh\" in \
                 `require`, asks for others"
                    .to_owned(),
            ),
            Some(Ok(())) => Self::Runner(setup),
            None => Self::Watched(setup),
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
            let reference = (&self.setup.runtime, self.setup as &dyn ReferenceRunner);
            outcome = inconsistency(&mut self.windows, self.job, reference, median_ns)?;
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

    /// What the caches held when windows began, if any did.
    pub(crate) const fn cache(&self) -> Option<CacheState> {
        self.windows.history.cache
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
}
