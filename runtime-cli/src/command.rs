//! The command line.

use clap::{Parser, Subcommand};
use runtime_core::Options;

use crate::arguments::DoctorArguments;
use crate::cache::CacheArguments;
use crate::compare::CompareArguments;
use crate::compile::CompileArguments;
use crate::completions::CompletionsArguments;
use crate::conformance::ConformanceArguments;
use crate::counters::CountersArguments;
use crate::devices::DevicesArguments;
use crate::eval::EvalArguments;
use crate::examples;
use crate::fuse::FuseArguments;
use crate::lower::LowerArguments;
use crate::package::PackageArguments;
use crate::peak::PeakArguments;
use crate::report_command::ReportArguments;
use crate::run::RunArguments;
use crate::serve::ServeArguments;
use crate::tune::TuneArguments;
use crate::worker::WorkerArguments;

/// Find compute devices, run kernels on them, time them and check their results.
#[derive(Debug, Parser)]
#[command(name = "runtime", version, arg_required_else_help = true, propagate_version = true)]
pub(crate) struct Command {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// List the devices of this machine, and why any of them cannot be used
    #[command(after_help = examples::DEVICES)]
    Devices(DevicesArguments),
    /// List what a device can count beside the times, and why any of it cannot be read
    #[command(after_help = examples::COUNTERS)]
    Counters(CountersArguments),
    /// Show which backends were loaded from where, what is missing and how to get it
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArguments),
    /// Check and time kernels: one row per kernel and device
    #[command(after_help = examples::EVAL)]
    Eval(Box<EvalArguments>),
    /// Find the fastest values of what the table `tune` of a spec varies
    #[command(after_help = examples::TUNE)]
    Tune(Box<TuneArguments>),
    /// Run a kernel once on one device, check its outputs and save them
    #[command(after_help = examples::RUN)]
    Run(RunArguments),
    /// Run kernels of several specs on each other's results, one by one and fused; check and time both
    #[command(after_help = examples::FUSE)]
    Fuse(Box<FuseArguments>),
    /// Measure what devices can do at most; `runtime eval` then shows each kernel's share of it
    #[command(after_help = examples::PEAK)]
    Peak(PeakArguments),
    /// Write a report of `runtime eval --json` in other formats
    #[command(after_help = examples::REPORT)]
    Report(ReportArguments),
    /// Compare reports of `runtime eval --json`, and fail if a kernel has become slower
    #[command(after_help = examples::COMPARE)]
    Compare(CompareArguments),
    /// Print the code that a portable kernel is lowered to, or its interface
    #[command(after_help = examples::LOWER)]
    Lower(LowerArguments),
    /// Compile kernels ahead of time, for several targets, into a package
    #[command(after_help = examples::COMPILE)]
    Compile(CompileArguments),
    /// List, verify, load or extract a package of compiled kernels
    #[command(after_help = examples::PACKAGE)]
    Package(PackageArguments),
    /// Run the conformance suite against backends
    #[command(after_help = examples::CONFORMANCE)]
    Conformance(ConformanceArguments),
    /// Evaluate candidates for another program, in worker processes
    #[command(after_help = examples::SERVE)]
    Serve(ServeArguments),
    /// List, verify or remove the native code that is kept on disk
    #[command(after_help = examples::CACHE)]
    Cache(CacheArguments),
    /// Print completions of the command line for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionsArguments),
    /// Evaluate candidates in a process that may crash
    #[command(hide = true)]
    Worker(WorkerArguments),
}

impl Action {
    /// The devices that this process opens, and the options for them, where the devices are named.
    pub(crate) fn own_devices(&self) -> Option<(&[String], Options)> {
        match self {
            Self::Eval(eval) if !eval.isolate => Some((&eval.devices, eval.open.options())),
            Self::Run(run) => Some((run.device.as_slice(), run.open.options())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Command::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        for command in Command::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> = text.lines().skip(1).map(str::trim).collect();
            assert!((1..=3).contains(&examples.len()), "{}: {text}", command.get_name());
            for example in examples {
                let words = shlex::split(example.split(['|', '>']).next().unwrap_or_default()).unwrap();
                assert!(example.starts_with(&format!("runtime {}", command.get_name())), "{example}");
                assert!(Command::try_parse_from(words).is_ok(), "{example}");
            }
        }
    }
}
