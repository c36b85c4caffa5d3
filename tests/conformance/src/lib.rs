//! The conformance suite: one plain function per case, run against every device that a backend offers.
//!
//! [`run`] is all that a program needs: the runner of this crate calls it, and so does `runtime conformance`. Backends
//! come in as libraries through [`runtime_core::Runtime`]; the suite knows none of them by name. Cases are grouped by
//! topic and chosen by what a device is and can do; what a device does not qualify for is reported as ignored, with
//! the reason, never left out in silence.
//!
//! Every wait has a deadline, and a case that does not end is a failure of that case, not of the run.

mod case;
#[allow(unsafe_code, reason = "forks, and sets handlers of exit and signals")]
mod child;
mod context;
mod data;
mod exceptions;
mod faults;
mod kernels;
mod lab;
mod perform;
mod plan;
mod report;
mod selection;
mod topics;
mod trials;
mod wait;

use std::io::Write;
use std::process::ExitCode;

pub use child::child;
pub use exceptions::{Exception, Expectation};
pub use faults::{FaultArguments, FaultOptions, run_faults, serve_faults};
pub use libtest_mimic::Arguments;
pub use selection::Selection;
pub use serde_json::Value;

use report::{Records, Report};
use runtime_core::{Runtime, RuntimeBuilder};

/// Runs the suite against `selection`, with the test runner's own `arguments`: filter, list, threads, format; then
/// prints a summary of each device: what failed and how, what was not tested and why, and how many cases each capability
/// that it lacks would open.
///
/// The code is a failure when a case fails, when an expected failure passes, when a selected or required backend is
/// not there, and when there was no device at all.
#[must_use]
pub fn run(selection: &Selection, arguments: &Arguments) -> ExitCode {
    if let Some(code) = child() {
        return code;
    }
    let (report, code) = run_plan(selection, arguments);
    if let Some(report) = report.filter(|_| !arguments.quiet) {
        // A reader that has gone away is no failure of the backend.
        let _ = write!(std::io::stdout().lock(), "{}", report.text());
    }
    code
}

/// Runs the suite as [`run`] does, without a word on standard output; gives the report as one JSON document.
#[must_use]
pub fn run_json(selection: &Selection, arguments: Arguments) -> (Value, ExitCode) {
    if let Some(code) = child() {
        return (Value::Null, code);
    }
    let logfile = arguments.logfile.clone().or_else(|| Some("/dev/null".to_owned()));
    let (report, code) = run_plan(selection, &Arguments { logfile, list: false, ..arguments });
    (report.map_or(Value::Null, |report| report.json()), code)
}

/// What every `Runtime` of the suite begins with: devices that take only portable code are tested with that.
fn builder() -> RuntimeBuilder {
    Runtime::builder().lower_with(runtime_kernel::wgsl())
}

fn run_plan(selection: &Selection, arguments: &Arguments) -> (Option<Report>, ExitCode) {
    let plan = plan::plan(selection);
    let records = Records::default();
    let conclusion = libtest_mimic::run(arguments, trials::trials(&plan, selection.exceptions, &records));
    if arguments.list {
        return (None, conclusion.exit_code());
    }
    let report = Some(Report::new(&plan, &records));
    let tested = plan.devices.len();
    let missed = plan.absent.iter().filter(|absent| tested == 0 || !absent.excused);
    let missed: Vec<_> = missed.map(ToString::to_string).collect();
    // A filter may hide that something is missing, but not make it right.
    if !conclusion.has_failed() && (tested == 0 || !missed.is_empty()) {
        let what = if tested == 0 {
            "nothing was tested; `runtime doctor` says what was looked at"
        } else {
            "not tested"
        };
        // Standard error may be closed; the code says it too.
        let _ = writeln!(std::io::stderr(), "{}", [&[what.to_owned()][..], &missed].concat().join("\n  "));
        return (report, ExitCode::FAILURE);
    }
    (report, conclusion.exit_code())
}
