//! The command line.

mod eval;
mod timing;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use runtime_conformance::{FaultArguments, SuiteArguments};
use runtime_core::{DType, Error, OptionValue, Options, Result};
use runtime_harness::Overrides;
use runtime_harness::spec::Number;

use crate::cache::CacheArguments;
use crate::compare::CompareArguments;
use crate::compile::CompileArguments;
use crate::counters::CountersArguments;
use crate::examples;
use crate::fuse::FuseArguments;
use crate::lower::LowerArguments;
use crate::package::PackageArguments;
use crate::peak::PeakArguments;
use crate::report_command::ReportArguments;
use crate::shell::{CompletionsArguments, ManArguments};
use crate::tune::TuneArguments;
use crate::worker::{ServeArguments, WorkerArguments};
pub(crate) use eval::EvalArguments;
pub(crate) use timing::SettingsArguments;

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
    /// Print the manual page, or write those of all commands to a folder
    #[command(after_help = examples::MAN)]
    Man(ManArguments),
    /// Evaluate candidates in a process that may crash
    #[command(hide = true)]
    Worker(WorkerArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DevicesArguments {
    /// Print everything that is known, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Open each device, and add its current clocks, temperature, power and energy
    #[arg(long, requires = "json")]
    pub(crate) telemetry: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Write a report for the authors of a backend, such as `cuda`, with user names, host name and home folders redacted
    #[arg(value_name = "BACKEND", value_parser = parse_backend)]
    pub(crate) backend: Option<String>,
    /// The new text file for it; `-` is standard output [default: runtime-BACKEND-report.txt]
    #[arg(value_name = "FILE|-", requires = "backend")]
    pub(crate) file: Option<PathBuf>,
}

/// The name of a backend, which is a part of a file's name.
fn parse_backend(text: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    match text.chars().all(is_valid) && !text.starts_with('-') {
        true => Ok(text.to_owned()),
        false => Err("a backend's name has only a-z, 0-9, _ and -".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The spec file
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    /// The device [default: the first available one that accepts the kernel's code]
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) open: OpenArguments,
    #[command(flatten)]
    pub(crate) overrides: OverrideArguments,
    /// Save an argument that the kernel writes to an `.npy` file; may be repeated
    #[arg(long = "save", value_name = "NAME=FILE.npy", value_parser = parse_save)]
    pub(crate) saves: Vec<(String, PathBuf)>,
    /// Do not compare with the reference
    #[arg(long)]
    pub(crate) no_validate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OpenArguments {
    /// An option to open the devices with; may be repeated
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = parse_option)]
    options: Vec<(String, OptionValue)>,
}

impl OpenArguments {
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new();
        for (key, value) in &self.options {
            options.push(key, value.clone());
        }
        options
    }
}

/// Overrides of values in the specs. Each override must apply to every spec.
#[derive(Debug, Args)]
pub(crate) struct OverrideArguments {
    /// Override a scalar argument or a constant; may be repeated
    #[arg(long = "set", value_name = "NAME=NUMBER", value_parser = parse_override)]
    values: Vec<(String, Number)>,
    /// Override the element type, e.g. `f16`
    #[arg(long, value_name = "DTYPE")]
    element: Option<DType>,
}

impl OverrideArguments {
    /// The overrides, checked for duplicates.
    ///
    /// # Errors
    /// `InvalidArgument` if a name has two values.
    pub(crate) fn overrides(&self) -> Result<Overrides> {
        for (at, (name, value)) in self.values.iter().enumerate() {
            if let Some((_, other)) = self.values[..at].iter().find(|(other, _)| other == name) {
                let message = format!("--set {name}={other} and --set {name}={value}: give only one value");
                return Err(Error::invalid(message));
            }
        }
        Ok(Overrides { values: self.values.clone(), element: self.element, ..Overrides::default() })
    }
}

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

pub(crate) fn parse_real(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value >= 0.0 && f64::is_finite(value) => Ok(value),
        _ => Err("expected a finite number of at least 0".to_owned()),
    }
}

fn parse_save(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() && path != "-" => {
            Ok((name.to_owned(), path.into()))
        }
        _ => Err("expected NAME=FILE.npy".to_owned()),
    }
}

/// Parses `KEY=VALUE`. A value that is not a boolean, an integer or a number is text.
pub(crate) fn parse_option(text: &str) -> Result<(String, OptionValue), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected KEY=VALUE")?;
    let value = match (value.parse(), value.parse(), value.parse()) {
        (Ok(flag), _, _) => OptionValue::Flag(flag),
        (_, Ok(integer), _) => OptionValue::Integer(integer),
        (_, _, Ok(number)) => OptionValue::Number(number),
        _ => OptionValue::Text(value.to_owned()),
    };
    Ok((key.to_owned(), value))
}

/// Parses `NAME=NUMBER`, where `true` and `false` count as numbers.
fn parse_override(text: &str) -> Result<(String, Number), String> {
    let (name, value) = parse_option(text).map_err(|_| "expected NAME=NUMBER")?;
    match value {
        OptionValue::Flag(flag) => Ok((name, Number::Bool(flag))),
        OptionValue::Integer(integer) => Ok((name, Number::Integer(i128::from(integer)))),
        OptionValue::Number(number) => Ok((name, Number::Float(number))),
        _ => Err("expected NAME=NUMBER".to_owned()),
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

    #[test]
    fn option_values_are_typed() {
        for (text, value) in [
            ("a=true", OptionValue::Flag(true)),
            ("a=-3", OptionValue::Integer(-3)),
            ("a=1e3", OptionValue::Number(1000.0)),
            ("a=b=c", OptionValue::Text("b=c".to_owned())),
            ("a=", OptionValue::Text(String::new())),
        ] {
            assert_eq!(parse_option(text), Ok(("a".to_owned(), value)), "{text}");
        }
        assert!(parse_option("flag").is_err());
        assert!(parse_option("=1").is_err());
    }
}
