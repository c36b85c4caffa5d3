//! Result rows, one per kernel and device, as a table, JSON or CSV. `docs/output.md` documents every field.

mod csv;
pub(crate) mod describe;
mod json;
pub(crate) mod number_format;
mod resource_usage;
mod sink;
mod table;

use std::path::PathBuf;

use runtime_core::{DeviceInfo, Error, ErrorKind, Measurement, Options, Result, Validation};

use crate::settings::Settings;
use crate::spec::Spec;

pub(crate) use resource_usage::ResourceUsage;
pub(crate) use sink::{Format, Reports, Sink};
pub(crate) use table::Columns;

/// The result of a kernel on a device.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) spec: PathBuf,
    pub(crate) kernel: KernelIdentity,
    /// The device string.
    pub(crate) device: String,
    pub(crate) info: Option<DeviceInfo>,
    pub(crate) settings: Settings,
    /// Symbols of the arguments.
    pub(crate) names: Vec<String>,
    /// Resource usage of the code, if it was measured.
    pub(crate) usage: Option<ResourceUsage>,
    pub(crate) outcome: Outcome,
}

/// The kernel that was measured.
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

/// The outcome of a row.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It ran; the measurement says whether the outputs are right.
    Measured(Box<Measurement>),
    /// The device cannot run it or is unavailable.
    NotRun(Error),
    /// It should have run but failed.
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

    /// Why it was not measured, is wrong or was not checked.
    pub(crate) fn reason(&self) -> Option<String> {
        match self {
            Self::NotRun(error) | Self::Failed(error) => Some(error_text(error)),
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

/// The error text, with a prefix that identifies a lack of memory.
pub(crate) fn error_text(error: &Error) -> String {
    match error.kind() {
        ErrorKind::OutOfMemory if !error.message().starts_with("out of memory") => {
            format!("out of memory: {error}")
        }
        _ => error.to_string(),
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
