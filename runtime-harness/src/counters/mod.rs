//! Counters and energy per call, measured in runs of their own after the timing.

mod energy;
mod reading;

use runtime_core::evaluate::Measurement;
use runtime_core::{CommonRuntime, Error, ErrorKind, LaunchConfig, Queue, Result};

use crate::heartbeat::{Heartbeat, beat};
use crate::job::{BoundKernel, Job};
use crate::row::{CounterValue, Energy};
use crate::settings::Settings;
use reading::Repeats;

/// The results of the runs after the timing.
#[derive(Debug, Default)]
pub(crate) struct CountersAndEnergy {
    pub(crate) counters: Vec<CounterValue>,
    pub(crate) energy: Option<Energy>,
}

impl CountersAndEnergy {
    /// Measures what `settings` ask for. A value that cannot be measured has a reason instead.
    pub(crate) fn measure(
        (device, heartbeat): (&dyn CommonRuntime, Option<&Heartbeat>),
        bound: &BoundKernel,
        job: &Job,
        settings: &Settings,
        timed: &Measurement,
    ) -> Self {
        let calls = Calls { device, heartbeat, bound, job };
        let names = settings.counters.as_deref().unwrap_or_default();
        Self {
            counters: reading::read(&calls, names, &Repeats::of(timed, settings)),
            energy: settings.measures_energy().then(|| energy::measure(&calls, timed.statistics.median_ns)),
        }
    }
}

/// Runs the kernel of a job.
struct Calls<'a> {
    device: &'a dyn CommonRuntime,
    heartbeat: Option<&'a Heartbeat>,
    bound: &'a BoundKernel,
    job: &'a Job,
}

impl Calls<'_> {
    fn open_queue(&self) -> Result<(Queue, LaunchConfig)> {
        if self.job.spec.restores_each_call() {
            return Err(Error::unsupported(
                "each call needs initial contents (each_call in the spec), and writing them would be counted, too",
            ));
        }
        Ok((self.device.queue()?, self.bound.config(&self.job.spec)?))
    }

    /// Calls the kernel `number` times and waits.
    fn run(&self, (queue, config): &(Queue, LaunchConfig), number: u64) -> Result<()> {
        let args = self.bound.args(&self.job.spec);
        for _ in 0..number {
            queue.launch(&self.bound.kernel, *config, &args)?;
        }
        queue.wait_idle()?;
        beat(self.heartbeat);
        Ok(())
    }
}

/// Checks the names of the counters, before anything is measured.
///
/// # Errors
/// `NotFound` with suggestions for an unknown name; `InvalidArgument` for a name that occurs twice.
pub fn check_names(device: &dyn CommonRuntime, settings: &Settings) -> Result<()> {
    let names = settings.counters.as_deref().unwrap_or_default();
    if names.is_empty() {
        return Ok(());
    }
    match device.counter_set(names) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => Err(error),
        // A device without counters is still worth timing: every counter gets the reason.
        _ => Ok(()),
    }
}
