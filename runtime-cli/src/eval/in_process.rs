//! Evaluation in this process.

use std::cell::RefCell;
use std::process::ExitCode;

use runtime_core::{Result, Runtime};
use runtime_harness::commit::Commits;
use runtime_harness::release::{self, release};
use runtime_harness::{DeviceUnderTest, Evaluated, Job, Phase, Row, Settings, Spec, evaluate_with};

use super::open_devices::choose;
use super::{EvalArguments, Files, Resumed, Run};
use crate::output;
use crate::registry;

pub(super) fn evaluate(
    arguments: &EvalArguments,
    specs: Vec<Spec>,
    files: Files,
    resumed: &Resumed,
) -> Result<ExitCode> {
    let runtime = registry::runtime();
    let options = arguments.open.options();
    let mut devices = choose(&runtime, &arguments.devices, &options)?;
    for device in &mut devices {
        device.share = arguments.pool.share.is_shared();
    }
    check_counters(arguments, &specs, &devices)?;
    let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    let run = Run::begin(files, &specs, &names);
    let commits = RefCell::default();
    Evaluator { arguments, runtime: &runtime, run: &run, resumed, commits }.evaluate_all(specs, devices)?;
    run.end()
}

/// What all evaluations have in common.
pub(super) struct Evaluator<'a> {
    pub(super) arguments: &'a EvalArguments,
    runtime: &'a Runtime,
    pub(super) run: &'a Run,
    pub(super) resumed: &'a Resumed,
    commits: RefCell<Commits>,
}

impl Evaluator<'_> {
    fn evaluate_all(&self, specs: Vec<Spec>, mut devices: Vec<DeviceUnderTest>) -> Result<()> {
        let is_complete = match self.arguments.interleave {
            true => self.evaluate_interleaved(specs, &mut devices)?,
            false => self.evaluate_in_order(specs, &mut devices)?,
        };
        if !is_complete {
            return Ok(());
        }
        self.run.finish_progress();
        for device in devices {
            if let Ok(opened) = device.opened
                && let Err(error) = release(opened, "the device", &device.name, release::DEADLINE)
            {
                output::print_stderr(&format!("error: {error}"));
            }
        }
        Ok(())
    }

    /// Evaluates one spec after the other. Returns `false` once no report can be written any more.
    fn evaluate_in_order(&self, specs: Vec<Spec>, devices: &mut [DeviceUnderTest]) -> Result<bool> {
        // One spec at a time, so that only one spec's data is in memory. One device at a time: several may be the same
        // chip (a GPU through CUDA, OpenCL and Vulkan), and all share the host.
        for spec in specs {
            if !self.evaluate(spec, devices)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Evaluates a spec on every device. Returns `false` once no report can be written any more.
    fn evaluate(&self, spec: Spec, devices: &mut [DeviceUnderTest]) -> Result<bool> {
        let settings = self.arguments.settings.settings().or(&spec.settings);
        let known = devices.iter().map(|device| self.resumed.row(&spec, &settings, &device.name));
        let known: Vec<Option<&Row>> = known.collect();
        let job = known.contains(&None).then(|| self.prepare(spec, &settings, devices));
        for (device, known) in devices.iter_mut().zip(known) {
            let is_wanted = match (known, &job) {
                (None, Some(job)) => self.run.add(&self.measure(job, device, &settings))?,
                (Some(row), _) => self.run.add(row)?,
                (None, None) => true,
            };
            if !is_wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the job of a spec, with its expected outputs if they are compared.
    pub(super) fn prepare(&self, spec: Spec, settings: &Settings, devices: &[DeviceUnderTest]) -> Job {
        #[allow(unsafe_code, reason = "runs the code that a spec names")]
        // SAFETY: the user of the command vouches for the code that a spec names (docs/spec.md).
        let mut job = unsafe { Job::new(spec) };
        if settings.validates() && devices.iter().any(|device| device.accepts(job.spec())) {
            self.run.announce(&format!("reference of {}", job.spec().name));
            job.find_expected(self.runtime);
        }
        job
    }

    fn measure(&self, job: &Job, device: &mut DeviceUnderTest, settings: &Settings) -> Row {
        self.run.announce(&format!("{} on {}", job.spec().name, device.name));
        let mut progress = |phase, operation: &str| self.note_wait(phase, operation);
        self.row(job, evaluate_with(job, device, settings, &mut progress))
    }

    /// The row of a result; prints an error of the driver that is not part of it.
    pub(super) fn row(&self, job: &Job, evaluated: Evaluated) -> Row {
        if let Err(error) = evaluated.released {
            output::print_stderr(&format!("error: {error}"));
        }
        Row { commit: self.commits.borrow_mut().of(&job.spec().path), ..evaluated.row }
    }

    /// Says which process the evaluation waits for.
    pub(super) fn note_wait(&self, phase: Phase, operation: &str) {
        if phase == Phase::Wait {
            self.run.note(&format!("waiting {operation}"));
        }
    }
}

/// Checks the names of the counters on every device, before anything is measured.
fn check_counters(arguments: &EvalArguments, specs: &[Spec], devices: &[DeviceUnderTest]) -> Result<()> {
    for spec in specs {
        let settings = arguments.settings.settings().or(&spec.settings);
        for device in devices {
            if let Ok(opened) = &device.opened {
                runtime_harness::counters::check_names(&**opened, &settings)?;
            }
        }
    }
    Ok(())
}
