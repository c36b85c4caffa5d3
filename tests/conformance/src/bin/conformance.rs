//! The conformance suite as a program: `conformance [--backend PATH|TARGET]… [FILTER] [test runner's options]`.

use std::process::ExitCode;

use clap::Parser;
use runtime_conformance::{Arguments, Selection};

#[derive(Debug, Parser)]
#[command(about = "Runs the conformance suite against every backend that is found, or those that are named")]
struct Command {
    /// A backend library, a target or a device, instead of everything that is found; may be repeated
    #[arg(long = "backend", value_name = "PATH|TARGET")]
    backends: Vec<String>,
    #[command(flatten)]
    test: Arguments,
}

fn main() -> ExitCode {
    let command = Command::parse();
    runtime_conformance::run(&Selection::new(command.backends), &command.test)
}
