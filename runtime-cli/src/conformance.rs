//! `runtime conformance`: the suite against installed or third-party backends.

use std::process::ExitCode;

use runtime_conformance::{Arguments, Selection};

use crate::arguments::ConformanceArguments;

pub(crate) fn run(arguments: &ConformanceArguments) -> ExitCode {
    let program = "runtime conformance [PATH|TARGET]... --".to_owned();
    let runner = Arguments::from_iter(std::iter::once(program).chain(arguments.runner.iter().cloned()));
    runtime_conformance::run(&Selection::new(arguments.backends.clone()), &runner)
}
