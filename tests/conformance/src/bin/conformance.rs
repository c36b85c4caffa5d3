//! The conformance suite as a program: `conformance [--backend PATH|TARGET]… [FILTER] [test runner's options]`, and with
//! `--faults` the suite with one call after the other refused.

use std::process::ExitCode;

use clap::Parser;
use runtime_conformance::{Arguments, FaultArguments, SuiteArguments};

#[derive(Debug, Parser)]
#[command(about = "Runs the conformance suite against every backend that is found, or those that are named")]
struct Command {
    /// A backend library, a target or a device, instead of everything that is found; may be repeated
    #[arg(long = "backend", value_name = "PATH|TARGET")]
    backends: Vec<String>,
    #[command(flatten)]
    suite: SuiteArguments,
    #[command(flatten)]
    faults: FaultArguments,
    #[command(flatten)]
    test: Arguments,
}

fn main() -> ExitCode {
    let Command { backends, suite, faults, test } = Command::parse();
    let selection = suite.select(backends);
    let swept = faults.run(&selection, &test, &["--fault-worker"]);
    swept.unwrap_or_else(|| runtime_conformance::run(&selection, &test))
}
