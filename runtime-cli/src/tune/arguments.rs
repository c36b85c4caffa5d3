//! The command line of `runtime tune`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use runtime_core::{Error, Result};
use runtime_harness::tune::Strategy;

use crate::arguments::{OpenArguments, OverrideArguments, PoolArguments, SettingsArguments, parse_seconds};
use crate::compare::ThresholdArgument;
use crate::output_paths;

#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    /// The spec file, with a table `tune`
    #[arg(value_name = "SPEC")]
    pub(super) spec: PathBuf,
    /// A device, e.g. `cuda:0`; may be repeated: each is tuned for itself [default: every available device]
    #[arg(long = "device", value_name = "DEVICE")]
    pub(super) devices: Vec<String>,
    /// Spread the candidates over the devices, which must be of one model
    #[arg(long)]
    pub(super) spread: bool,
    #[command(flatten)]
    pub(super) open: OpenArguments,
    #[command(flatten)]
    pub(super) overrides: OverrideArguments,
    /// How to search
    #[arg(long, value_enum, default_value_t = StrategyName::All)]
    strategy: StrategyName,
    /// Take a random sample of so many candidates instead of all
    #[arg(long, value_name = "COUNT", value_parser = parse_samples)]
    samples: Option<usize>,
    /// Choose another random sample [default: 0]
    #[arg(long, value_name = "NUMBER", requires = "samples")]
    seed: Option<u64>,
    /// Stop after this time, with the best so far
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(super) time_limit: Option<Duration>,
    /// Write each result to a file at once; if it exists, go on where its run ended
    #[arg(long, value_name = "FILE.jsonl")]
    pub(super) log: Option<PathBuf>,
    /// Write the spec with the best values
    #[arg(long, value_name = "FILE.toml", value_parser = parse_file)]
    pub(super) best: Option<PathBuf>,
    /// Number of candidates that the table shows, apart from those that are tied for the best
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(super) top: usize,
    /// Write every candidate as JSON, the best first; with `-`, to standard output, without the table
    #[arg(long, value_name = "FILE|-")]
    pub(super) json: Option<PathBuf>,
    /// Write one line per candidate as CSV, the best first; with `-`, to standard output, without the table
    #[arg(long, value_name = "FILE|-")]
    pub(super) csv: Option<PathBuf>,
    /// Write the table as Markdown; with `-`, to standard output, instead of the plain one
    #[arg(long, value_name = "FILE|-")]
    pub(super) markdown: Option<PathBuf>,
    #[command(flatten)]
    pub(super) threshold: ThresholdArgument,
    #[command(flatten)]
    pub(super) settings: SettingsArguments,
    #[command(flatten)]
    pub(super) pool: PoolArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StrategyName {
    /// Measure every candidate
    All,
    /// Measure all for a short time, the better half for twice as long, and so on
    Halving,
}

impl TuneArguments {
    pub(super) fn strategy(&self) -> Strategy {
        let seed = self.seed.unwrap_or_default();
        match (self.strategy, self.samples) {
            (StrategyName::All, None) => Strategy::All,
            (StrategyName::All, Some(samples)) => Strategy::Random { samples, seed },
            (StrategyName::Halving, samples) => Strategy::Halving { samples, seed },
        }
    }

    /// The outputs, each with its option.
    pub(super) fn outputs(&self) -> Vec<(&'static str, &Path)> {
        output_paths::given([
            ("--log", &self.log),
            ("--best", &self.best),
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--markdown", &self.markdown),
        ])
    }

    /// Checks the options against the devices.
    ///
    /// # Errors
    /// `InvalidArgument` that names the option.
    pub(super) fn check(&self, devices: &[String]) -> Result<()> {
        if let Some(device) = devices.iter().enumerate().find(|(at, device)| devices[..*at].contains(device))
        {
            return Err(Error::invalid(format!("--device {}: is given twice", device.1)));
        }
        match devices.len() {
            1 if self.spread => Err(Error::invalid("--spread needs several devices: repeat --device")),
            2.. if self.best.is_some() && !self.spread => Err(Error::invalid(format!(
                "--best takes the best of one device; choose one of {} with --device",
                devices.join(", ")
            ))),
            _ => Ok(()),
        }
    }
}

fn parse_samples(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a number of at least 1".to_owned())
}

fn parse_file(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" | "" => Err("expected a file: the paths in it are relative to its folder".to_owned()),
        path => Ok(path.into()),
    }
}
