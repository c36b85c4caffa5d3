//! Command-line options of a fault sweep.

use std::process::{Command, ExitCode};

use clap::Args;
use libtest_mimic::Arguments;
use runtime_core::ErrorKind;
use runtime_core::backend::did_you_mean;

use super::job::KINDS;
use super::sweep::print;
use super::{FaultOptions, run_faults, serve_faults};
use crate::kernels;
use crate::selection::Selection;

/// The options of a fault sweep, for programs that run the suite.
#[derive(Args, Clone, Debug)]
pub struct FaultArguments {
    /// Run each case repeatedly, each time with a fault injected into one backend call
    #[arg(long)]
    faults: bool,
    /// With --faults: inject faults into the first N calls of a function in a case, one per run, then into some of
    /// the rest
    #[arg(long, value_name = "N", default_value_t = FaultOptions::default().first, requires = "faults")]
    first: u64,
    /// With --faults: inject faults into N of the remaining calls, evenly spread, and into the last
    #[arg(long, value_name = "N", default_value_t = FaultOptions::default().spread, requires = "faults")]
    spread: u64,
    /// With --faults: the kind of error to inject: `driver`, `device_lost`, `out_of_memory` or `unsupported`; may be
    /// repeated [default: driver]
    #[arg(long = "kind", value_name = "KIND", value_parser = parse_kind, requires = "faults")]
    kinds: Vec<ErrorKind>,
    /// With --faults: instead of returning errors, return wrong counts, progress, pointers, strings and sizes
    #[arg(long, requires = "faults")]
    corrupt: bool,
    /// With --faults: per function, run only the N fastest cases that call it [default: all]
    #[arg(long, value_name = "N", requires = "faults")]
    cases: Option<usize>,
    /// With --faults: skip cases that take longer than this
    #[arg(long, value_name = "MILLISECONDS", requires = "faults")]
    longest_ms: Option<u64>,
    /// Run as a worker of --faults
    #[arg(long, hide = true)]
    fault_worker: bool,
}

fn parse_kind(text: &str) -> Result<ErrorKind, String> {
    let found = KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
    found.ok_or_else(|| did_you_mean(text, &KINDS.map(|(name, _)| name)))
}

impl FaultArguments {
    /// Sweeps `selection`, or serves as a worker of a sweep, if the options say so; otherwise `None`. With the
    /// arguments `worker`, this program must get here with `--fault-worker` set. The filter and the number of threads
    /// are those of `runner`.
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
