//! `runtime eval`: checks and times every spec on every device.

mod arguments;
mod baseline;
mod files;
mod in_process;
mod interleaved;
mod isolated;
mod listed_devices;
mod missing_peaks;
mod open_devices;
mod resumed;
mod run;

use std::process::ExitCode;

use runtime_core::Result;
use runtime_core::backend::SandboxPolicy;
use runtime_harness::Spec;

pub(crate) use arguments::EvalArguments;
use baseline::Baseline;
use files::Files;
pub(crate) use listed_devices::named_or_available;
use missing_peaks::MissingPeaks;
pub(crate) use open_devices::open_device;
use resumed::Resumed;
pub(crate) use run::Run;

pub(crate) fn evaluate(arguments: &EvalArguments) -> Result<ExitCode> {
    arguments.check()?;
    let overrides = arguments.overrides.overrides()?;
    let specs = arguments.specs.iter().map(|path| Spec::load_sweep(path, &overrides));
    let specs: Vec<Spec> = specs.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let sandbox = match arguments.isolate {
        true => arguments.pool.sandbox(SandboxPolicy::BestEffort)?,
        false => SandboxPolicy::of_process()?,
    };
    let (files, resumed) = Files::open(arguments, &specs, arguments.pool.sandbox_state(sandbox))?;
    match arguments.isolate {
        true => isolated::evaluate(arguments, &specs, files, sandbox, &resumed),
        false => in_process::evaluate(arguments, specs, files, &resumed),
    }
}
