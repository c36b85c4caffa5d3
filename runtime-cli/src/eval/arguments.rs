//! The command line of `runtime eval`.

use std::path::PathBuf;

use clap::Args;
use runtime_core::{Error, Result};

use crate::arguments::{OpenArguments, OverrideArguments, PoolArguments, SettingsArguments};
use crate::compare::ThresholdArgument;
use crate::report::ReportFiles;

#[derive(Debug, Args)]
pub(crate) struct EvalArguments {
    /// Spec files
    #[arg(value_name = "SPEC", required = true)]
    pub(crate) specs: Vec<PathBuf>,
    /// A device, e.g. `host:0`; may be repeated [default: every available device]
    #[arg(long = "device", value_name = "DEVICE")]
    pub(crate) devices: Vec<String>,
    #[command(flatten)]
    pub(crate) open: OpenArguments,
    #[command(flatten)]
    pub(crate) overrides: OverrideArguments,
    /// Write the full report as JSON; with `-`, to standard output, without the table
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
    /// As --json, and keep the rows that the file has already, of a run that was interrupted
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) files: ReportFiles,
    /// Compare with an earlier report, and fail if a kernel has become slower
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threshold: ThresholdArgument,
    #[command(flatten)]
    pub(crate) settings: SettingsArguments,
    /// Let all kernels take turns, one sample each, so that drift affects all of them alike
    #[arg(long, help_heading = "Timing", conflicts_with = "isolate")]
    pub(crate) interleave: bool,
    /// Evaluate kernels in worker processes, so that a crash or a hang costs one row
    #[arg(long, help_heading = "Isolation")]
    pub(crate) isolate: bool,
    #[command(flatten)]
    pub(crate) pool: PoolArguments,
}

impl EvalArguments {
    /// Checks the combination of options.
    ///
    /// # Errors
    /// `InvalidArgument` for an option of workers without workers, or of a comparison without a baseline.
    pub(crate) fn check(&self) -> Result<()> {
        if self.threshold.is_given() && self.baseline.is_none() {
            return Err(Error::invalid("--threshold needs --baseline"));
        }
        self.pool.check(&self.devices)?;
        match self.pool.given().filter(|_| !self.isolate) {
            Some(option) => Err(Error::invalid(format!("{option} needs --isolate"))),
            None => Ok(()),
        }
    }
}
