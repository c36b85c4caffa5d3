//! `runtime eval`: every spec on every device, checked and timed.

use std::process::ExitCode;
use std::sync::Arc;

use runtime_core::{
    CommonRuntime, DeviceInfo, Error, ErrorKind, Evaluation, Measurement, Options, Result, Runtime,
};

use crate::arguments::EvalArguments;
use crate::output::{self, Destination};
use crate::prepare::{Job, Prepared};
use crate::progress::Progress;
use crate::registry;
use crate::report::{self, Code, KernelIdentity, Outcome, Report, Row};
use crate::settings::Settings;
use crate::spec::Spec;

pub(crate) fn evaluate(arguments: &EvalArguments) -> Result<ExitCode> {
    let changes = arguments.changes.changes();
    let specs = arguments.specs.iter().map(|path| Spec::load(path, &changes));
    let specs: Vec<Spec> = specs.collect::<Result<_>>()?;
    let json = arguments.json.as_deref().map(Destination::open).transpose()?;
    let csv = arguments.csv.as_deref().map(Destination::open).transpose()?;
    let standard =
        [&json, &csv].into_iter().flatten().filter(|destination| destination.is_standard()).count();
    if standard > 1 {
        return Err(Error::invalid("--json - and --csv -: only one of them can go to standard output"));
    }
    let report = measure(arguments, specs)?;
    for (destination, text) in [(json, report::json(&report)), (csv, report::csv(&report)?)] {
        if let Some(destination) = destination {
            destination.write(&text)?;
        }
    }
    if standard == 0 {
        output::print(&report::table(&report))?;
    }
    Ok(if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(arguments: &EvalArguments, specs: Vec<Spec>) -> Result<Report> {
    let runtime = registry::runtime();
    let options = arguments.open.options();
    let devices = choose(&runtime, &arguments.devices, &options)?;
    let progress = Progress::new(specs.len() * devices.len());
    let executor = tokio::runtime::Builder::new_current_thread().build().map_err(|error| {
        Error::new(ErrorKind::OutOfResources, format!("cannot start an executor: {error}"))
    })?;
    let mut rows = Vec::new();
    // Spec by spec, so that only one spec's data are in memory. Device by device: several may be one chip (a GPU by CUDA, by
    // OpenCL and by Vulkan), and all share the host.
    for spec in specs {
        let settings = arguments.settings.settings().or(spec.settings);
        let mut job = Job::new(spec);
        if settings.validates() && devices.iter().any(|device| device.takes(&job.spec)) {
            progress.say(format!("reference of {}", job.spec.name));
            job.find_expected(&runtime);
        }
        let work = Work { job, settings, progress: &progress };
        for device in &devices {
            rows.push(executor.block_on(row_of(&work, device)));
        }
    }
    progress.finish();
    Ok(Report { rows, options })
}

/// What is measured on every device.
struct Work<'p> {
    job: Job,
    settings: Settings,
    progress: &'p Progress,
}

/// A device to evaluate on; or why it cannot be opened.
struct Candidate {
    name: String,
    info: Option<DeviceInfo>,
    opened: Result<Arc<dyn CommonRuntime>>,
}

impl Candidate {
    fn takes(&self, spec: &Spec) -> bool {
        let format = spec.kernel.format.as_str();
        let takes = |info: &DeviceInfo| info.formats.iter().any(|accepted| accepted == format);
        self.opened.is_ok() && self.info.as_ref().is_some_and(takes)
    }
}

/// The devices that were asked for, or all that are available; a part of a device only when asked for.
fn choose(runtime: &Runtime, names: &[String], options: &Options) -> Result<Vec<Candidate>> {
    if !names.is_empty() {
        // Other backends are not asked: whoever names a device waits for no other driver of the machine.
        return names.iter().map(|name| candidate(runtime, name.clone(), options)).collect();
    }
    let known = runtime.devices();
    let whole = known.iter().filter(|info| info.unusable.is_none() && info.id.sub.is_none());
    let names: Vec<String> = whole.map(|info| info.id.to_string()).collect();
    if names.is_empty() {
        return Err(Error::new(ErrorKind::Unavailable, "no device is available; `runtime doctor` says why"));
    }
    names.into_iter().map(|name| candidate(runtime, name, options)).collect()
}

fn candidate(runtime: &Runtime, name: String, options: &Options) -> Result<Candidate> {
    let opened = runtime.open_with(&name, options);
    match &opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
            Err(error.clone().in_operation(&format!("--device {name}")))
        }
        Err(_) => {
            let info = runtime.devices().into_iter().find(|info| info.id.to_string() == name);
            Ok(Candidate { name, info, opened })
        }
        Ok(device) => {
            Ok(Candidate { name: device.device_id().to_string(), info: Some(device.info().clone()), opened })
        }
    }
}

async fn row_of(work: &Work<'_>, device: &Candidate) -> Row {
    let Work { job, settings, progress } = work;
    progress.say(format!("{} on {}", job.spec.name, device.name));
    let measured = match &device.opened {
        Ok(opened) => measure_one(&**opened, job, settings).await,
        Err(error) => Err(error.clone()),
    };
    progress.advance();
    let (code, measured) = match measured {
        Ok((code, measurement)) => (Some(code), Ok(measurement)),
        Err(error) => (None, Err(error)),
    };
    Row {
        spec: job.spec.path.clone(),
        kernel: KernelIdentity::of(&job.spec),
        device: device.name.clone(),
        info: device.info.clone(),
        settings: *settings,
        names: job.spec.args.iter().map(|arg| arg.name.clone()).collect(),
        code,
        outcome: Outcome::from(measured),
    }
}

async fn measure_one(
    device: &dyn CommonRuntime,
    job: &Job,
    settings: &Settings,
) -> Result<(Code, Measurement)> {
    let spec = &job.spec;
    let prepared = Prepared::new(device, job, &spec.kernel)?;
    let mut evaluation = Evaluation::new(&prepared.kernel, spec.geometry, prepared.evaluation_args(spec));
    evaluation.timing = settings.timing();
    evaluation.cost = spec.cost;
    evaluation.validate = settings.validates();
    evaluation.tolerance = job.tolerance();
    if evaluation.validate {
        evaluation.reference = job.expected.clone()?;
    }
    let code = Code::of(&prepared.kernel, &spec.geometry);
    device.evaluate(&mut evaluation).await.map(|measurement| (code, measurement))
}
