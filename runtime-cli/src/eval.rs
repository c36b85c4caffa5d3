//! `runtime eval`: checks and times every spec on every device.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::{
    CommonRuntime, DeviceInfo, Error, ErrorKind, Evaluation, Measurement, Options, Result, Runtime,
};

use crate::arguments::EvalArguments;
use crate::bound_kernel::BoundKernel;
use crate::crash_context::CrashContext;
use crate::interrupt;
use crate::output::{self, Destination};
use crate::output_paths;
use crate::progress::Progress;
use crate::registry;
use crate::release::{self, release};
use crate::report::{Columns, Format, KernelIdentity, Outcome, Reports, ResourceUsage, Row, Sink};
use crate::settings::Settings;
use crate::spec::Spec;
use crate::workload::Workload;

/// How long an interrupt waits for a row that is being written: the reader of a pipe may have stopped reading.
const ROW_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn evaluate(arguments: &EvalArguments) -> Result<ExitCode> {
    let overrides = arguments.overrides.overrides()?;
    let specs = arguments.specs.iter().map(|path| Spec::load(path, &overrides));
    let specs: Vec<Spec> = specs.collect::<Result<_>>()?;
    let files = Files::open(arguments, &specs)?;
    let runtime = registry::runtime();
    let options = arguments.open.options();
    let devices = choose(&runtime, &arguments.devices, &options)?;
    let expected_rows = specs.len() * devices.len();
    let reports = Arc::new(Mutex::new(Reports::new(files.sinks(&specs, &devices, &options), expected_rows)));
    let interrupted = Arc::clone(&reports);
    interrupt::on_interrupt(move |signal| {
        if let Some(mut reports) = interrupted.try_lock_for(ROW_TIMEOUT) {
            reports.interrupt(signal);
            // The lock is never released, so no further row is added.
            std::mem::forget(reports);
        }
    });
    measure(arguments, specs, devices, &runtime, &reports)?;
    let mut reports = reports.lock();
    reports.close()?;
    Ok(match (reports.has_failed(), reports.is_right()) {
        (true, _) => ExitCode::from(2),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// The files that reports are written to.
struct Files {
    json: Option<Destination>,
    csv: Option<Destination>,
}

impl Files {
    fn open(arguments: &EvalArguments, specs: &[Spec]) -> Result<Self> {
        let outputs = [("--json", &arguments.json), ("--csv", &arguments.csv)];
        let outputs: Vec<(&str, &Path)> =
            outputs.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?))).collect();
        output_paths::check(&outputs, specs)?;
        let open = |path: &Option<_>| path.as_deref().map(Destination::open).transpose();
        Ok(Self { json: open(&arguments.json)?, csv: open(&arguments.csv)? })
    }

    /// The requested files, and a table unless one of them is standard output.
    fn sinks(self, specs: &[Spec], devices: &[Candidate], options: &Options) -> Vec<Sink> {
        let is_standard = |file: &Option<Destination>| file.as_ref().is_some_and(Destination::is_standard);
        let table = !is_standard(&self.json) && !is_standard(&self.csv);
        let table = table.then(|| {
            let kernels = specs.iter().map(|spec| spec.name.as_str());
            let columns = Columns::new(kernels, devices.iter().map(|device| device.name.as_str()));
            Sink::new(Format::Table(columns), Destination::Standard)
        });
        let json = self.json.map(|file| Sink::new(Format::Json(options.clone()), file));
        let csv = self.csv.map(|file| Sink::new(Format::Csv, file));
        table.into_iter().chain(json).chain(csv).collect()
    }
}

fn measure(
    arguments: &EvalArguments,
    specs: Vec<Spec>,
    mut devices: Vec<Candidate>,
    runtime: &Runtime,
    reports: &Mutex<Reports>,
) -> Result<()> {
    let progress = Progress::new(specs.len() * devices.len());
    let executor = tokio::runtime::Builder::new_current_thread().build().map_err(|error| {
        Error::new(ErrorKind::OutOfResources, format!("cannot start an executor: {error}"))
    })?;
    // One spec at a time, so that only one spec's data is in memory. One device at a time: several may be the same chip
    // (a GPU through CUDA, OpenCL and Vulkan), and all share the host.
    for spec in specs {
        let settings = arguments.settings.settings().or(spec.settings);
        let mut workload = Workload::new(spec);
        if settings.validates() && devices.iter().any(|device| device.accepts(&workload.spec)) {
            progress.set_message(format!("reference of {}", workload.spec.name));
            workload.find_expected(runtime);
        }
        let task = MeasureTask { workload, settings, progress: &progress };
        for device in &mut devices {
            let row = executor.block_on(measure_row(&task, device));
            if !progress.suspend(|| reports.lock().add(&row))? {
                return Ok(());
            }
        }
    }
    progress.finish();
    for device in devices {
        if let Ok(opened) = device.opened
            && let Err(error) = release(opened, "the device", &device.name, release::DEADLINE)
        {
            output::print_stderr(&format!("error: {error}"));
        }
    }
    Ok(())
}

/// A workload to measure on each device, with its settings.
struct MeasureTask<'p> {
    workload: Workload,
    settings: Settings,
    progress: &'p Progress,
}

/// A device to evaluate on, or the reason why it cannot be opened.
struct Candidate {
    name: String,
    info: Option<DeviceInfo>,
    opened: Result<Arc<dyn CommonRuntime>>,
}

impl Candidate {
    fn accepts(&self, spec: &Spec) -> bool {
        let takes = |info: &DeviceInfo| info.accepts(&spec.kernel.format);
        self.opened.is_ok() && self.info.as_ref().is_some_and(takes)
    }
}

/// The devices named, or all available ones without their sub-devices.
fn choose(runtime: &Runtime, names: &[String], options: &Options) -> Result<Vec<Candidate>> {
    if !names.is_empty() {
        // Do not list other backends: naming a device must not start the other drivers of the machine.
        return names.iter().map(|name| candidate(runtime, name.clone(), options)).collect();
    }
    let known = runtime.devices();
    let whole = known.iter().filter(|info| info.unavailable_reason.is_none() && info.id.sub.is_none());
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

async fn measure_row(task: &MeasureTask<'_>, device: &mut Candidate) -> Row {
    let MeasureTask { workload, settings, progress } = task;
    progress.set_message(format!("{} on {}", workload.spec.name, device.name));
    let measured = match &device.opened {
        Ok(opened) => {
            let (name, opened) = (device.name.clone(), Arc::clone(opened));
            let _context = CrashContext::enter(format!("while \"{}\" ran on {name}", workload.spec.name));
            let (measured, released) = measure_one(&name, &*opened, workload, settings).await;
            if let Err(error) = released {
                output::print_stderr(&format!("error: {error}"));
                device.opened = Err(error);
            }
            measured
        }
        Err(error) => Err(error.clone()),
    };
    progress.advance();
    let (usage, measured) = match measured {
        Ok((usage, measurement)) => (Some(usage), Ok(measurement)),
        Err(error) => (None, Err(error)),
    };
    Row {
        spec: workload.spec.path.clone(),
        kernel: KernelIdentity::of(&workload.spec),
        device: device.name.clone(),
        info: device.info.clone(),
        settings: *settings,
        names: workload.spec.args.iter().map(|arg| arg.name.clone()).collect(),
        usage,
        outcome: Outcome::from(measured),
    }
}

/// Measures a kernel. The second result is an error if the driver did not release it.
async fn measure_one(
    name: &str,
    device: &dyn CommonRuntime,
    workload: &Workload,
    settings: &Settings,
) -> (Result<(ResourceUsage, Measurement)>, Result<()>) {
    let bound = match BoundKernel::new(device, workload, &workload.spec.kernel) {
        Ok(bound) => bound,
        Err(error) => return (Err(error), Ok(())),
    };
    let measured = evaluate_one(device, &bound, workload, settings).await;
    (measured, release(bound, &format!("\"{}\"", workload.spec.name), name, release::DEADLINE))
}

async fn evaluate_one(
    device: &dyn CommonRuntime,
    bound: &BoundKernel,
    workload: &Workload,
    settings: &Settings,
) -> Result<(ResourceUsage, Measurement)> {
    let spec = &workload.spec;
    let config = bound.config(spec)?;
    let mut evaluation = Evaluation::new(&bound.kernel, config, bound.evaluation_args(spec));
    evaluation.timing = settings.timing();
    evaluation.cost = spec.cost;
    evaluation.validate = settings.validates();
    evaluation.tolerance = workload.tolerance();
    if evaluation.validate {
        evaluation.reference = workload.expected.clone()?;
    }
    let usage = ResourceUsage::of(&bound.kernel, &config, spec.local_bytes());
    device.evaluate(&mut evaluation).await.map(|measurement| (usage, measurement))
}
