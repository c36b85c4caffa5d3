//! `runtime eval`: checks and times every spec on every device.

mod baseline;
mod files;
mod in_process;
mod isolated;
mod resumed;
mod run;
mod shares;

use std::process::ExitCode;

use runtime_core::{Error, ErrorKind, Result, Runtime};
use runtime_harness::Spec;

use crate::arguments::EvalArguments;
use baseline::Baseline;
use files::Files;
use resumed::Resumed;
use run::Run;
use shares::Shares;

pub(crate) fn evaluate(arguments: &EvalArguments) -> Result<ExitCode> {
    arguments.check()?;
    let overrides = arguments.overrides.overrides()?;
    let specs = arguments.specs.iter().map(|path| Spec::load(path, &overrides));
    let specs: Vec<Spec> = specs.collect::<Result<_>>()?;
    let files = Files::open(arguments, &specs)?;
    let resumed = Resumed::read(arguments.resume.as_deref(), &arguments.open.options())?;
    match arguments.isolate {
        true => isolated::evaluate(arguments, &specs, files, &resumed),
        false => in_process::evaluate(arguments, specs, files, &resumed),
    }
}

/// All available devices without their sub-devices.
pub(crate) fn available_devices(runtime: &Runtime) -> Result<Vec<String>> {
    let known = runtime.devices();
    let whole = known.iter().filter(|info| info.unavailable_reason.is_none() && info.id.sub.is_none());
    let names: Vec<String> = whole.map(|info| info.id.to_string()).collect();
    match names.is_empty() {
        true => Err(Error::new(ErrorKind::Unavailable, "no device is available; `runtime doctor` says why")),
        false => Ok(names),
    }
}
