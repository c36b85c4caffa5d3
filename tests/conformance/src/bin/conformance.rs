//! The conformance suite as a program: `conformance [--backend PATH|TARGET]… [FILTER] [test runner options]`; with
//! `--faults`, it injects a fault into one backend call per run.

use std::process::ExitCode;

use clap::Parser;
use runtime_conformance::{Arguments, FaultArguments, SuiteArguments};

#[derive(Debug, Parser)]
#[command(about = "Runs the conformance suite against the given backends, or every backend found")]
struct Command {
    /// A backend library, target or device to test instead of everything found; may be repeated
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
