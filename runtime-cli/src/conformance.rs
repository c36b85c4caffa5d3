//! `runtime conformance`: runs the suite against installed or third-party backends.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use runtime_conformance::{Arguments, FaultArguments, SuiteArguments};
use runtime_core::Result;

use crate::interrupt::SignalGuard;
use crate::output::Destination;

#[derive(Debug, Args)]
pub(crate) struct ConformanceArguments {
    /// Backend libraries or installed targets [default: every backend found]
    #[arg(value_name = "PATH|TARGET")]
    pub(crate) backends: Vec<String>,
    /// Write the report as JSON; with `-`, to standard output, without any other output
    #[arg(long, value_name = "FILE|-", conflicts_with = "faults")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) suite: SuiteArguments,
    #[command(flatten)]
    pub(crate) faults: FaultArguments,
    /// A filter and options for the test runner; `-- --help` lists them
    #[arg(last = true, value_name = "TEST OPTIONS")]
    pub(crate) runner: Vec<String>,
}

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
