//! `runtime run`: runs a kernel once on one device, checks its outputs and saves them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use runtime_core::backend::{counted, did_you_mean};
use runtime_core::evaluate::{Evaluation, Validation};
use runtime_core::{CommonRuntime, DeviceInfo, DeviceKind, Error, ErrorKind, HostArray, Result, Runtime};
use runtime_harness::crash_context::CrashContext;
use runtime_harness::job::{BoundKernel, Job, fits};
use runtime_harness::printable::indented;
use runtime_harness::release::{self, release};
use runtime_harness::row::{error_text, status_of};
use runtime_harness::spec::Spec;

use crate::arguments::{OpenArguments, OverrideArguments};
use crate::output::{self, Destination};
use crate::output_paths;
use crate::registry;

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The spec file
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    /// The device [default: the first available one that accepts the kernel's code]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) open: OpenArguments,
    #[command(flatten)]
    pub(crate) overrides: OverrideArguments,
    /// Save an argument that the kernel writes to an `.npy` file; may be repeated
    #[arg(long = "save", value_name = "NAME=FILE.npy", value_parser = parse_save)]
    pub(crate) saves: Vec<(String, PathBuf)>,
    /// Do not compare with the reference
    #[arg(long)]
    pub(crate) no_validate: bool,
}

pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let spec = Spec::load(&arguments.spec, &arguments.overrides.overrides()?)?;
    let saves = check_saves(&spec, &arguments.saves)?;
    let runtime = registry::runtime();
    #[allow(unsafe_code, reason = "runs the code that a spec names")]
    // SAFETY: the user of the command vouches for the code that a spec names (docs/spec.md).
    let mut job = unsafe { Job::new(spec) };
    let device = open(&runtime, job.spec(), arguments)?;
    let validates = !arguments.no_validate && job.spec().settings.validates();
    if validates {
        job.find_expected(&runtime);
    }
    let (name, id) = (job.spec().name.clone(), device.device_id().to_string());
    let (row, context) =
        (format!("{name} on {id}"), CrashContext::enter(format!("while \"{name}\" ran on {id}")));
    let bound = match &job.expected {
        Err(error) if validates => Err(error.clone()),
        _ => BoundKernel::new(&*device, &job),
    };
    let outcome = match &bound {
        Ok(bound) => execute(&*device, bound, &job, validates),
        Err(error) => Err(error.clone()),
    };
    drop(context);
    let package = bound.as_ref().ok().and_then(|bound| bound.package.as_ref());
    let why = package.map(|package| format!("; {}", package.why)).unwrap_or_default();
    let code = finish(&job, &row, outcome, &why, saves);
    if let Err(error) = release((bound, device), &format!("\"{name}\""), &id, release::DEADLINE) {
        output::print_stderr(&format!("error: {error}"));
    }
    code
}

fn parse_save(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() && path != "-" => {
            Ok((name.to_owned(), path.into()))
        }
        _ => Err("expected NAME=FILE.npy".to_owned()),
    }
}

/// Saves the outputs and prints the result, and `why` the code was taken.
fn finish(
    job: &Job,
    row: &str,
    outcome: Result<(Validation, Vec<(usize, HostArray)>)>,
    why: &str,
    saves: Vec<(usize, PathBuf)>,
) -> Result<ExitCode> {
    match outcome {
        Ok((validation, outputs)) => {
            for (index, path) in saves {
                save(&outputs, index, &path)?;
            }
            output::print(&format!("{row}: {}{why}\n", describe(job.spec(), &validation)))?;
            Ok(if validation.is_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        Err(error) => {
            output::print_stderr(&format!("{row}: failed: {}", indented(&error_text(&error))));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Resolves each `--save` to an argument index and a file, and checks that the file can be written.
fn check_saves(spec: &Spec, saves: &[(String, PathBuf)]) -> Result<Vec<(usize, PathBuf)>> {
    let flags: Vec<String> = saves.iter().map(|(name, _)| format!("--save {name}")).collect();
    let outputs: Vec<_> =
        flags.iter().map(String::as_str).zip(saves.iter().map(|(_, path)| &**path)).collect();
    output_paths::check(&outputs, std::slice::from_ref(spec))?;
    let names: Vec<&str> = spec.outputs().map(|(_, arg)| arg.name.as_str()).collect();
    let check = |(name, path): &(String, PathBuf)| {
        let found = spec.outputs().find(|(_, arg)| arg.name == *name);
        let (index, _) = found.ok_or_else(|| {
            Error::invalid(format!(
                "--save {name}: the kernel writes no argument of that name; {}",
                did_you_mean(name, &names)
            ))
        })?;
        if !Destination::open(path)?.is_file() {
            return Err(Error::invalid(format!("--save {name}: {} is not a file", path.display())));
        }
        Ok((index, path.clone()))
    };
    saves.iter().map(check).collect()
}

/// The device named, or the first available one that accepts the kernel's code.
fn open(runtime: &Runtime, spec: &Spec, arguments: &RunArguments) -> Result<Arc<dyn CommonRuntime>> {
    if let Some(name) = &arguments.device {
        return arguments.open.open(runtime, name);
    }
    let accepts = |info: &&DeviceInfo| {
        let can_load = info.unavailable_reason.is_none() && info.kind != DeviceKind::Embedded;
        can_load && accepts(runtime, info, spec, &arguments.open)
    };
    let devices = runtime.devices();
    let info = devices.iter().find(accepts).ok_or_else(|| {
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "no available device accepts code of format {}; see `runtime devices`",
                spec.kernel.format
            ),
        )
    })?;
    arguments.open.open(runtime, &info.id.to_string())
}

/// Whether a device accepts the code of a spec. What it takes from a package is known once it is open.
fn accepts(runtime: &Runtime, info: &DeviceInfo, spec: &Spec, open: &OpenArguments) -> bool {
    if !spec.kernel.is_package() {
        return info.accepts(&spec.kernel.format);
    }
    let device = open.open(runtime, &info.id.to_string());
    device.is_ok_and(|device| fits(&*device, &spec.kernel))
}

fn execute(
    device: &dyn CommonRuntime,
    bound: &BoundKernel,
    job: &Job,
    validates: bool,
) -> Result<(Validation, Vec<(usize, HostArray)>)> {
    let spec = job.spec();
    let mut evaluation = Evaluation::new(&bound.kernel, bound.config(spec)?, bound.evaluation_args(spec));
    // Without a reference, that is the reason to report, also if validation is off.
    evaluation.validate = validates || spec.reference.is_none();
    evaluation.reference = if validates { job.expected.clone()? } else { Vec::new() };
    evaluation.tolerance = job.tolerance();
    let validation = device.validate(&mut evaluation)?;
    Ok((validation, bound.outputs(spec)?))
}

fn save(outputs: &[(usize, HostArray)], index: usize, path: &std::path::Path) -> Result<()> {
    match outputs.iter().find(|(place, _)| *place == index) {
        Some((_, array)) => array.save_npy(path).map_err(|error| error.in_operation("--save")),
        None => Err(Error::new(ErrorKind::Internal, "an output was not read back")),
    }
}

fn describe(spec: &Spec, validation: &Validation) -> String {
    let status = status_of(validation).name();
    match validation {
        Validation::Passed(agreement) => {
            format!(
                "{status} ({}, largest error {:.1e})",
                counted(agreement.elements, "element"),
                agreement.max_absolute_error
            )
        }
        Validation::Failed(mismatch) => {
            let name = spec.args.get(mismatch.arg).map_or("?", |arg| arg.name.as_str());
            format!("{status}, \"{name}\": {mismatch}")
        }
        Validation::Skipped { reason } => format!("{status}: {reason}"),
    }
}
