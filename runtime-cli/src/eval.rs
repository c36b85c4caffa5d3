//! `runtime eval`: checks and times every spec on every device.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::{Error, ErrorKind, Options, Result, Runtime};
use runtime_harness::release::{self, release};
use runtime_harness::{DeviceUnderTest, Evaluated, Job, Spec};

use crate::arguments::EvalArguments;
use crate::interrupt;
use crate::output::{self, Destination};
use crate::output_paths;
use crate::progress::Progress;
use crate::registry;
use crate::report::{Columns, Format, Reports, Sink};

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
    fn sinks(self, specs: &[Spec], devices: &[DeviceUnderTest], options: &Options) -> Vec<Sink> {
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
    mut devices: Vec<DeviceUnderTest>,
    runtime: &Runtime,
    reports: &Mutex<Reports>,
) -> Result<()> {
    let progress = Progress::new(specs.len() * devices.len());
    // One spec at a time, so that only one spec's data is in memory. One device at a time: several may be the same chip
    // (a GPU through CUDA, OpenCL and Vulkan), and all share the host.
    for spec in specs {
        let settings = arguments.settings.settings().or(spec.settings);
        let mut job = Job::new(spec);
        if settings.validates() && devices.iter().any(|device| device.accepts(&job.spec)) {
            progress.set_message(format!("reference of {}", job.spec.name));
            job.find_expected(runtime);
        }
        for device in &mut devices {
            progress.set_message(format!("{} on {}", job.spec.name, device.name));
            let Evaluated { row, released } = runtime_harness::evaluate(&job, device, &settings);
            released.unwrap_or_else(|error| output::print_stderr(&format!("error: {error}")));
            progress.advance();
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

/// The devices named, or all available ones without their sub-devices.
fn choose(runtime: &Runtime, names: &[String], options: &Options) -> Result<Vec<DeviceUnderTest>> {
    if !names.is_empty() {
        // Do not list other backends: naming a device must not start the other drivers of the machine.
        return names.iter().map(|name| open(runtime, name, options)).collect();
    }
    let known = runtime.devices();
    let whole = known.iter().filter(|info| info.unavailable_reason.is_none() && info.id.sub.is_none());
    let names: Vec<String> = whole.map(|info| info.id.to_string()).collect();
    if names.is_empty() {
        return Err(Error::new(ErrorKind::Unavailable, "no device is available; `runtime doctor` says why"));
    }
    names.iter().map(|name| open(runtime, name, options)).collect()
}

fn open(runtime: &Runtime, name: &str, options: &Options) -> Result<DeviceUnderTest> {
    let device = DeviceUnderTest::open(runtime, name, options);
    match &device.opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
            Err(error.clone().in_operation(&format!("--device {name}")))
        }
        _ => Ok(device),
    }
}
