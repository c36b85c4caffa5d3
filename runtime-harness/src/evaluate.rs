//! Checks and times a job on a device, in this process.

use runtime_core::{CommonRuntime, DeviceKind, Error, ErrorKind, Evaluation, Measurement, Result};

use crate::crash_context::CrashContext;
use crate::device::DeviceUnderTest;
use crate::job::{BoundKernel, Job};
use crate::noise::{Evidence, Recorder, advice};
use crate::release::{self, release};
use crate::row::{Noise, Phase, ResourceUsage, Row};
use crate::settings::Settings;

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluated {
    /// The row.
    pub row: Row,
    /// An error if the driver did not release the kernel. The device is then no longer used.
    pub released: Result<()>,
}

/// Checks and times a job on a device.
///
/// Outputs are compared if [`Job::find_expected`] found what is expected. The kernel runs in this process, which it may
/// take down.
pub fn evaluate(job: &Job, device: &mut DeviceUnderTest, settings: &Settings) -> Evaluated {
    evaluate_with(job, device, settings, &mut |_, _| {})
}

/// As [`evaluate`], and calls `progress` at the beginning of each phase, with what is about to run.
pub fn evaluate_with(
    job: &Job,
    device: &mut DeviceUnderTest,
    settings: &Settings,
    progress: &mut dyn FnMut(Phase, &str),
) -> Evaluated {
    let mut phase = Phase::Prepare;
    let mut enter = |next: Phase, operation: &str| {
        phase = next;
        progress(next, operation);
    };
    let (measured, released) = match &device.opened {
        Ok(opened) => measure(&device.name, &**opened, job, settings, &mut enter),
        Err(error) => (Err(error.clone()), Ok(())),
    };
    if let Err(error) = &released {
        device.opened = Err(error.clone());
    }
    let row = match measured {
        Ok((usage, measurement, noise)) => {
            let row = Row::measured(&job.spec, settings, &device.name, (usage, &measurement));
            let on_host = device.info.as_ref().is_some_and(|info| info.kind == DeviceKind::Host);
            Row { advice: advise(&row, noise.as_ref(), on_host), noise, ..row }
        }
        Err(error) => Row::failed(&job.spec, settings, &device.name, &error, phase),
    };
    Evaluated { row: row.on(device.describe()), released }
}

/// Advice about a measured row.
fn advise(row: &Row, noise: Option<&Noise>, on_host: bool) -> Vec<String> {
    let (Some(measurement), Some(noise)) = (&row.measurement, noise) else { return Vec::new() };
    advice(&Evidence { settings: &row.settings, measurement, noise, on_host })
}

type Measured = Result<(ResourceUsage, Measurement, Option<Noise>)>;

/// Measures a kernel. The second result is an error if the driver did not release it.
fn measure(
    name: &str,
    device: &dyn CommonRuntime,
    job: &Job,
    settings: &Settings,
    enter: &mut dyn FnMut(Phase, &str),
) -> (Measured, Result<()>) {
    let operation = format!("while \"{}\" was loaded on {name}", job.spec.name);
    enter(Phase::Compile, &operation);
    let context = CrashContext::enter(operation);
    let bound = match BoundKernel::new(device, job, &job.spec.kernel) {
        Ok(bound) => bound,
        Err(error) => return (Err(error), Ok(())),
    };
    drop(context);
    let operation = format!("while \"{}\" ran on {name}", job.spec.name);
    enter(Phase::Run, &operation);
    let context = CrashContext::enter(operation);
    let measured = time(device, &bound, job, settings);
    let released = release(bound, &format!("\"{}\"", job.spec.name), name, release::DEADLINE);
    drop(context);
    (measured, released)
}

fn time(device: &dyn CommonRuntime, bound: &BoundKernel, job: &Job, settings: &Settings) -> Measured {
    let spec = &job.spec;
    let config = bound.config(spec)?;
    let mut recorder = Recorder::new(device);
    let mut evaluation = Evaluation::new(&bound.kernel, config, bound.evaluation_args(spec));
    evaluation.timing = settings.timing();
    evaluation.cost = spec.cost;
    evaluation.validate = settings.validates();
    evaluation.tolerance = job.tolerance();
    if evaluation.validate {
        evaluation.reference = job.expected.clone()?;
    }
    let usage = ResourceUsage::of(&bound.kernel, &config, spec.local_bytes());
    let executor = tokio::runtime::Builder::new_current_thread().build().map_err(|error| {
        Error::new(ErrorKind::OutOfResources, format!("cannot start an executor: {error}"))
    })?;
    evaluation.observer = Some(Box::new(|moment| recorder.observe(moment)));
    let measured = executor.block_on(device.evaluate(&mut evaluation));
    drop(evaluation);
    measured.map(|measurement| {
        let noise = recorder.noise(&measurement);
        (usage, measurement, noise)
    })
}
