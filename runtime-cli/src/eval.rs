//! `runtime eval`: every spec on every device, checked and timed.

use std::process::ExitCode;
use std::sync::Arc;

use runtime_core::{
    CommonRuntime, DeviceInfo, DeviceKind, Error, ErrorKind, Evaluation, Measurement, Options, Result,
    Runtime,
};
use tokio::task::JoinSet;

use crate::arguments::EvalArguments;
use crate::output::{self, Destination};
use crate::prepare::{Job, Prepared};
use crate::progress::Progress;
use crate::registry;
use crate::report::{self, KernelIdentity, Outcome, Report, Row};
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
    let executor = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(devices.len())
        .build()
        .map_err(|error| Error::new(ErrorKind::OutOfResources, format!("cannot start threads: {error}")))?;
    let mut rows = Vec::new();
    // Spec by spec, so that only one spec's data are in memory, and no reference runs beside a measurement.
    for spec in specs {
        let settings = arguments.settings.settings().or(spec.settings);
        let mut job = Job::new(spec);
        if settings.validates() && devices.iter().any(|device| device.takes(&job.spec)) {
            progress.say(format!("reference of {}", job.spec.name));
            job.find_expected(&runtime);
        }
        let work = Arc::new(Work { job, settings, progress: progress.clone() });
        rows.extend(executor.block_on(rows_of(&work, &devices)));
    }
    progress.finish();
    Ok(Report { rows, options })
}

/// What the tasks of all devices share.
struct Work {
    job: Job,
    settings: Settings,
    progress: Progress,
}

/// A device to evaluate on; or why it cannot be opened.
#[derive(Clone)]
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

    fn is_host(&self) -> bool {
        self.info.as_ref().is_some_and(|info| info.kind == DeviceKind::Host)
    }
}

/// The devices that were asked for, or all that are available; a part of a device only when asked for.
fn choose(runtime: &Runtime, names: &[String], options: &Options) -> Result<Vec<Candidate>> {
    let known = runtime.devices();
    let whole = known.iter().filter(|info| info.unusable.is_none() && info.id.sub.is_none());
    let available = whole.map(|info| info.id.to_string());
    let names: Vec<String> = if names.is_empty() { available.collect() } else { names.to_vec() };
    if names.is_empty() {
        return Err(Error::new(ErrorKind::Unavailable, "no device is available; `runtime doctor` says why"));
    }
    names.into_iter().map(|name| candidate(runtime, &known, name, options)).collect()
}

fn candidate(runtime: &Runtime, known: &[DeviceInfo], name: String, options: &Options) -> Result<Candidate> {
    let opened = runtime.open_with(&name, options);
    match &opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
            Err(error.clone().in_operation(&format!("--device {name}")))
        }
        Err(_) => {
            let info = known.iter().find(|info| info.id.to_string() == name).cloned();
            Ok(Candidate { name, info, opened })
        }
        Ok(device) => {
            Ok(Candidate { name: device.device_id().to_string(), info: Some(device.info().clone()), opened })
        }
    }
}

/// One task per device; the hosts alone, after the others, since all of them would disturb each other there.
async fn rows_of(work: &Arc<Work>, devices: &[Candidate]) -> Vec<Row> {
    let (hosts, others): (Vec<_>, Vec<_>) =
        devices.iter().cloned().enumerate().partition(|(_, device)| device.is_host());
    let mut tasks = JoinSet::new();
    for (position, device) in others {
        let work = work.clone();
        tasks.spawn(async move { (position, row_of(&work, device).await) });
    }
    let mut rows = tasks.join_all().await;
    for (position, device) in hosts {
        rows.push((position, row_of(work, device).await));
    }
    rows.sort_by_key(|(position, _)| *position);
    rows.into_iter().map(|(_, row)| row).collect()
}

async fn row_of(work: &Work, device: Candidate) -> Row {
    let Work { job, settings, progress } = work;
    progress.say(format!("{} on {}", job.spec.name, device.name));
    let measured = match &device.opened {
        Ok(opened) => measure_one(&**opened, job, settings).await,
        Err(error) => Err(error.clone()),
    };
    progress.advance();
    Row {
        spec: job.spec.path.clone(),
        kernel: KernelIdentity::of(&job.spec),
        device: device.name,
        info: device.info,
        settings: *settings,
        names: job.spec.args.iter().map(|arg| arg.name.clone()).collect(),
        outcome: Outcome::from(measured),
    }
}

async fn measure_one(device: &dyn CommonRuntime, job: &Job, settings: &Settings) -> Result<Measurement> {
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
    device.evaluate(&mut evaluation).await
}
