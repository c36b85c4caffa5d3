//! `runtime conformance`: the suite against installed or third-party backends.

use std::process::ExitCode;

use runtime_core::{Error, Result};

use crate::arguments::ConformanceArguments;

pub(crate) fn run(arguments: &ConformanceArguments) -> Result<ExitCode> {
    Err(Error::unsupported(format!("conformance of {} in this build", arguments.backends.join(", "))))
}
