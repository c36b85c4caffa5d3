//! Rows: what became of each kernel on each device, for people and for programs. `docs/output.md` has every field.

mod code;
mod csv;
pub(crate) mod describe;
pub(crate) mod figure;
mod json;
mod table;

use std::path::PathBuf;

use runtime_core::{DeviceInfo, Error, ErrorKind, Measurement, Options, Result, Validation};

use crate::settings::Settings;
use crate::spec::Spec;

pub(crate) use code::Code;
pub(crate) use csv::csv;
pub(crate) use json::json;
pub(crate) use table::table;

/// All rows of a run of the command.
#[derive(Debug)]
pub(crate) struct Report {
    /// Kernel by kernel, the devices of each in order.
    pub(crate) rows: Vec<Row>,
    /// What the devices were opened with.
    pub(crate) options: Options,
}

/// A kernel on a device.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) spec: PathBuf,
    pub(crate) kernel: KernelIdentity,
    /// The device string.
    pub(crate) device: String,
    pub(crate) info: Option<DeviceInfo>,
    pub(crate) settings: Settings,
    /// Names of the arguments.
    pub(crate) names: Vec<String>,
    /// What the driver says of the code, if it was loaded and ran.
    pub(crate) code: Option<Code>,
    pub(crate) outcome: Outcome,
}

/// Which code was measured.
#[derive(Debug)]
pub(crate) struct KernelIdentity {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) entry: String,
    pub(crate) format: String,
    pub(crate) options: Options,
}

impl KernelIdentity {
    pub(crate) fn of(spec: &Spec) -> Self {
        Self {
            name: spec.name.clone(),
            path: spec.kernel.path.clone(),
            entry: spec.kernel.entry.clone(),
            format: spec.kernel.format.to_string(),
            options: spec.kernel.options.clone(),
        }
    }
}

/// What became of a row.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It ran; whether it is right stands in the measurement.
    Measured(Box<Measurement>),
    /// The device cannot run it, or is not there.
    NotRun(Error),
    /// It should have run and did not.
    Failed(Error),
}

impl From<Result<Measurement>> for Outcome {
    fn from(result: Result<Measurement>) -> Self {
        match result {
            Ok(measurement) => Self::Measured(Box::new(measurement)),
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Unsupported) => {
                Self::NotRun(error)
            }
            Err(error) => Self::Failed(error),
        }
    }
}

impl Outcome {
    /// `right`, `wrong`, `unchecked`, `not_run` or `failed`.
    pub(crate) fn status(&self) -> &'static str {
        match self {
            Self::NotRun(_) => "not_run",
            Self::Failed(_) => "failed",
            Self::Measured(measurement) => status_of(&measurement.validation),
        }
    }

    /// Why there is no figure, or why it was not checked.
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::NotRun(error) | Self::Failed(error) => Some(error.to_string()),
            Self::Measured(measurement) => match &measurement.validation {
                Validation::Skipped { reason } => Some(reason.clone()),
                Validation::Failed(mismatch) => Some(mismatch.to_string()),
                Validation::Passed(_) => None,
            },
        }
    }

    pub(crate) fn measurement(&self) -> Option<&Measurement> {
        match self {
            Self::Measured(measurement) => Some(measurement),
            _ => None,
        }
    }
}

/// `right`, `wrong` or `unchecked`.
pub(crate) const fn status_of(validation: &Validation) -> &'static str {
    match validation {
        Validation::Passed(_) => "right",
        Validation::Failed(_) => "wrong",
        Validation::Skipped { .. } => "unchecked",
    }
}

impl Report {
    /// Whether something ran, and nothing that ran is wrong or failed.
    pub(crate) fn is_right(&self) -> bool {
        let statuses = || self.rows.iter().map(|row| row.outcome.status());
        statuses().any(|status| matches!(status, "right" | "unchecked"))
            && statuses().all(|status| !matches!(status, "wrong" | "failed"))
    }
}
