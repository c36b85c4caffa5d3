//! The conformance suite as a program: `conformance [--backend PATH|TARGET]… [FILTER] [test runner's options]`, and with
//! `--faults` the suite with one call after the other refused.

use std::process::{Command, ExitCode};

use clap::Parser;
use runtime_conformance::{Arguments, FaultOptions, Selection, run_faults, serve_faults};

#[derive(Debug, Parser)]
#[command(about = "Runs the conformance suite against every backend that is found, or those that are named")]
struct CommandLine {
    /// A backend library, a target or a device, instead of everything that is found; may be repeated
    #[arg(long = "backend", value_name = "PATH|TARGET")]
    backends: Vec<String>,
    /// Run each case again and again, with one call of the backend refused at a time
    #[arg(long)]
    faults: bool,
    /// With --faults: refuse so many calls of a function one by one, then some of the rest
    #[arg(long, value_name = "N", default_value_t = FaultOptions::default().first)]
    first: u64,
    /// With --faults: of the calls after those refuse so many, evenly spread, and the last
    #[arg(long, value_name = "N", default_value_t = FaultOptions::default().spread)]
    spread: u64,
    /// With --faults: the kind of error, `driver`, `device_lost`, `out_of_memory` or `unsupported`; may be repeated
    #[arg(long = "kind", value_name = "KIND", value_parser = parse_kind)]
    kinds: Vec<runtime_core::ErrorKind>,
    /// With --faults: leave out cases that take longer
    #[arg(long, value_name = "MILLISECONDS")]
    longest_ms: Option<u64>,
    /// Be a worker of --faults
    #[arg(long, hide = true)]
    fault_worker: bool,
    #[command(flatten)]
    test: Arguments,
}

fn parse_kind(text: &str) -> Result<runtime_core::ErrorKind, String> {
    let kinds = runtime_conformance::fault_kinds();
    let names: Vec<_> = kinds.iter().map(|(name, _)| *name).collect();
    let found = kinds.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
    found.ok_or_else(|| runtime_core::suggest(text, &names))
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    if line.fault_worker {
        return serve_faults();
    }
    let selection = Selection::new(line.backends);
    if !line.faults {
        return runtime_conformance::run(&selection, &line.test);
    }
    let defaults = FaultOptions::default();
    let options = FaultOptions {
        filters: line.test.filter.into_iter().collect(),
        first: line.first,
        spread: line.spread,
        kinds: if line.kinds.is_empty() { defaults.kinds } else { line.kinds },
        longest_ms: line.longest_ms,
        workers: line.test.test_threads.unwrap_or(defaults.workers),
        budget: defaults.budget,
    };
    run_faults(&selection, &options, &|| {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--fault-worker");
        Ok(command)
    })
}
