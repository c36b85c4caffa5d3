//! `runtime conformance`: runs the suite against installed or third-party backends.

use std::process::ExitCode;

use runtime_conformance::Arguments;
use runtime_core::Result;

use crate::arguments::ConformanceArguments;
use crate::interrupt::SignalGuard;
use crate::output::Destination;

pub(crate) fn run(arguments: &ConformanceArguments) -> Result<ExitCode> {
    let program = "runtime conformance [PATH|TARGET]... --".to_owned();
    let runner = Arguments::from_iter(std::iter::once(program).chain(arguments.runner.iter().cloned()));
    // Only now: the test runner exits the process over a wrong argument.
    let _signals = SignalGuard::install();
    let selection = arguments.suite.select(arguments.backends.clone());
    if let Some(code) = arguments.faults.run(&selection, &runner, &["conformance", "--fault-worker"]) {
        return Ok(code);
    }
    let Some(path) = &arguments.json else { return Ok(runtime_conformance::run(&selection, &runner)) };
    if let Some(code) = runtime_conformance::child() {
        return Ok(code);
    }
    let destination = Destination::open(path)?;
    let (report, code) = runtime_conformance::run_json(&selection, runner);
    destination.write(&format!("{report:#}\n"))?;
    Ok(code)
}
