//! What is measured beside the times, in runs of their own: counters and energy per call.

mod energy;

use runtime_core::{
    CommonRuntime, CounterInfo, CounterReading, CounterSet, ErrorKind, LaunchConfig, Measurement, Queue,
    Result,
};

use crate::job::{BoundKernel, Job};
use crate::row::{CounterValue, Energy};
use crate::settings::Settings;

/// Calls per pass: enough to make the rest of the pass negligible, few enough for passes of slow simulators.
const MAX_CALLS: u64 = 100;

/// The results of the runs after the timing.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) counters: Vec<CounterValue>,
    pub(crate) energy: Option<Energy>,
}

impl Beside {
    /// Runs the kernel again for each of them that `settings` ask for. What cannot be measured has a reason.
    pub(crate) fn measure(
        device: &dyn CommonRuntime,
        bound: &BoundKernel,
        job: &Job,
        settings: &Settings,
        timed: &Measurement,
    ) -> Self {
        let calls = Calls { device, bound, job };
        let names = settings.counters.as_deref().unwrap_or_default();
        Self {
            counters: read_counters(&calls, names, timed.number.clamp(1, MAX_CALLS)),
            energy: settings.measures_energy().then(|| energy::measure(&calls, timed.statistics.median_ns)),
        }
    }
}

/// Runs the kernel of a job.
struct Calls<'a> {
    device: &'a dyn CommonRuntime,
    bound: &'a BoundKernel,
    job: &'a Job,
}

impl Calls<'_> {
    fn open_queue(&self) -> Result<(Queue, LaunchConfig)> {
        Ok((self.device.queue()?, self.bound.config(&self.job.spec)?))
    }

    /// Calls the kernel `number` times and waits.
    fn run(&self, (queue, config): &(Queue, LaunchConfig), number: u64) -> Result<()> {
        let args = self.bound.args(&self.job.spec);
        for _ in 0..number {
            queue.launch(&self.bound.kernel, *config, &args)?;
        }
        queue.wait_idle()
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

fn read_counters(calls: &Calls<'_>, names: &[String], number: u64) -> Vec<CounterValue> {
    if names.is_empty() {
        return Vec::new();
    }
    let units = calls.device.counters().unwrap_or_default();
    let read = calls.device.counter_set(names).and_then(|mut set| {
        let readings = count(calls, &mut set, number)?;
        let values = names.iter().zip(readings).enumerate();
        Ok(values
            .map(|(index, (name, reading))| value(&set, (index, name), reading, number, &units))
            .collect())
    });
    read.unwrap_or_else(|error| {
        let reason = error.to_string();
        names.iter().map(|name| missing(name, &reason)).collect()
    })
}

fn count(calls: &Calls<'_>, set: &mut CounterSet, number: u64) -> Result<Vec<Option<CounterReading>>> {
    let queue = calls.open_queue()?;
    // The first launch of a queue may allocate or start threads.
    calls.run(&queue, 1)?;
    set.measure(|| calls.run(&queue, number))
}

#[expect(clippy::cast_precision_loss, reason = "there are few calls")]
fn value(
    set: &CounterSet,
    (index, name): (usize, &String),
    reading: Option<CounterReading>,
    calls: u64,
    infos: &[CounterInfo],
) -> CounterValue {
    let unit = infos.iter().find(|info| info.name == *name).and_then(|info| info.unit.clone());
    let described = CounterValue { unit, calls, passes: set.passes(), ..missing(name, "") };
    let Some(reading) = reading else {
        let reason = set.unavailable_reason(index).unwrap_or("it counted nothing during the calls");
        return CounterValue { reason: Some(reason.to_owned()), ..described };
    };
    let divisor = if reading.is_ratio { 1.0 } else { calls as f64 };
    CounterValue {
        value: Some(reading.value / divisor),
        is_ratio: reading.is_ratio,
        counted_share: (reading.counted < 1.0).then_some(reading.counted),
        reason: None,
        ..described
    }
}

fn missing(name: &str, reason: &str) -> CounterValue {
    CounterValue {
        name: name.to_owned(),
        value: None,
        unit: None,
        is_ratio: false,
        counted_share: None,
        calls: 0,
        passes: 0,
        reason: Some(reason.to_owned()),
    }
}
