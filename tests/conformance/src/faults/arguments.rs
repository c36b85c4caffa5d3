//! The options of a sweep on a command line.

use std::process::{Command, ExitCode};

use clap::Args;
use libtest_mimic::Arguments;
use runtime_core::{ErrorKind, suggest};

use super::job::KINDS;
use super::sweep::print;
use super::{FaultOptions, run_faults, serve_faults};
use crate::kernels;
use crate::selection::Selection;

/// The options of a sweep, as the programs that run the suite take them.
#[derive(Args, Clone, Debug)]
pub struct FaultArguments {
    /// Run each case again and again, with one call of the backend refused at a time
    #[arg(long)]
    faults: bool,
    /// With --faults: refuse so many calls of a function in a case one by one, then some of the rest
    #[arg(long, value_name = "N", default_value_t = FaultOptions::default().first, requires = "faults")]
    first: u64,
    /// With --faults: of the calls after those refuse so many, evenly spread, and the last
    #[arg(long, value_name = "N", default_value_t = FaultOptions::default().spread, requires = "faults")]
    spread: u64,
    /// With --faults: refuse with this kind of error, `driver`, `device_lost`, `out_of_memory` or `unsupported`; may be
    /// repeated [default: driver]
    #[arg(long = "kind", value_name = "KIND", value_parser = parse_kind, requires = "faults")]
    kinds: Vec<ErrorKind>,
    /// With --faults: calls are not refused, but return wrong counts, progress, pointers, texts and sizes
    #[arg(long, requires = "faults")]
    corrupt: bool,
    /// With --faults: of the cases that call a function run so many, the quickest, with its calls wrong [default: all]
    #[arg(long, value_name = "N", requires = "faults")]
    cases: Option<usize>,
    /// With --faults: leave out cases that take longer
    #[arg(long, value_name = "MILLISECONDS", requires = "faults")]
    longest_ms: Option<u64>,
    /// Be a worker of --faults
    #[arg(long, hide = true)]
    fault_worker: bool,
}

fn parse_kind(text: &str) -> Result<ErrorKind, String> {
    let found = KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
    found.ok_or_else(|| suggest(text, &KINDS.map(|(name, _)| name)))
}

impl FaultArguments {
    /// Sweeps `selection`, or is a worker of a sweep, if that is asked for. `worker` are the arguments with which this
    /// program, started again, gets here with `--fault-worker` set; the filter and the threads are those of `runner`.
    #[must_use]
    pub fn run(&self, selection: &Selection, runner: &Arguments, worker: &[&str]) -> Option<ExitCode> {
        if self.fault_worker {
            return Some(serve_faults());
        }
        if !self.faults {
            return None;
        }
        let defaults = FaultOptions::default();
        let options = FaultOptions {
            filters: runner.filter.iter().cloned().collect(),
            first: self.first,
            spread: self.spread,
            corrupt: self.corrupt,
            cases: self.cases,
            kinds: if self.kinds.is_empty() { defaults.kinds } else { self.kinds.clone() },
            longest_ms: self.longest_ms,
            workers: runner.test_threads.unwrap_or(defaults.workers),
            budget: defaults.budget,
        };
        let swept = run_faults(selection, &options, &|| {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(worker);
            command.envs(selection.kernels.as_ref().map(|folder| (kernels::FOLDER_VARIABLE, folder)));
            Ok(command)
        });
        let Err(wrong) = swept else { return Some(ExitCode::SUCCESS) };
        print(&wrong);
        Some(ExitCode::FAILURE)
    }
}
