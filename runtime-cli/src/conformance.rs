//! `runtime conformance`: the suite against installed or third-party backends.

use std::process::ExitCode;

use crate::arguments::ConformanceArguments;
use crate::output;

pub(crate) fn run(arguments: &ConformanceArguments) -> ExitCode {
    output::warn(&format!(
        "error: this build has no conformance suite: {:?} {:?}",
        arguments.backends, arguments.runner
    ));
    ExitCode::from(2)
}
