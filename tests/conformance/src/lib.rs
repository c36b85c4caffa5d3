//! The conformance suite: one plain function per case, run against every device that a backend offers.
//!
//! [`run`] is all that a program needs: the runner of this crate calls it, and so does `runtime conformance`. Backends
//! come in as libraries through [`runtime_core::Runtime`]; the suite knows none of them by name. Cases are grouped by
//! topic and chosen by what a device is and can do; what a device does not qualify for is reported as ignored, with
//! the reason, never left out in silence.
//!
//! Every wait has a deadline, and a case that does not end is a failure of that case, not of the run.

mod arguments;
#[allow(unsafe_code, reason = "reads the tables of backends")]
mod backend_table;
#[allow(unsafe_code, reason = "stands between core and a backend")]
mod call_counter;
mod case;
#[allow(unsafe_code, reason = "forks, and sets handlers of exit and signals")]
mod child_process;
mod context;
mod exceptions;
mod expect;
mod faults;
mod fixture;
mod kernels;
mod output;
mod plan;
mod report;
mod runner;
mod selection;
mod test_data;
mod topics;
mod trials;
mod wait;

use std::io::Write;
use std::process::ExitCode;

pub use arguments::SuiteArguments;
pub use child_process::child;
pub use exceptions::{Exception, Expectation};
pub use faults::{FaultArguments, FaultOptions, run_faults, serve_faults};
pub use libtest_mimic::Arguments;
pub use selection::Selection;
pub use serde_json::Value;

use output::{OutputPipe, StopFlag};
use report::{Records, Report};
use runtime_core::{Runtime, RuntimeBuilder};

/// Runs the suite against `selection`, with the test runner's own `arguments`: filter, list, threads, format; then
/// prints a summary of each device: what failed and how, what was not tested and why, and how many cases each capability
/// that it lacks would open.
///
/// The code is 1 when a case fails, when an expected failure passes, when a selected or required backend is not there, when
/// there was no device at all, when cases want kernels and a device ran none, and when nobody reads the output any more; 2 when
/// the log file or the folder of kernels cannot be used.
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

/// How many cases there are: what is missing where a suite is.
#[must_use]
pub fn case_count() -> usize {
    topics::TOPICS.iter().map(|(_, cases)| cases.len()).sum()
}

/// What every `Runtime` of the suite begins with: devices that take only portable code are tested with that.
fn builder() -> RuntimeBuilder {
    Runtime::builder().lower_with(runtime_kernel::wgsl())
}

/// Where a run ends without a report.
const UNUSABLE: u8 = 2;

fn run_plan(selection: &Selection, arguments: &Arguments) -> (Option<Report>, ExitCode) {
    let stop = StopFlag::default();
    let plan = plan::plan(selection).map_err(|error| error.to_string());
    let output =
        OutputPipe::redirect(arguments, &stop).map_err(|error| format!("cannot write the output: {error}"));
    let (plan, (output, arguments)) = match plan.and_then(|plan| Ok((plan, output?))) {
        Ok(both) => both,
        Err(reason) => {
            complain(&format!("error: {reason}"));
            return (None, ExitCode::from(UNUSABLE));
        }
    };
    let records = Records::default();
    let conclusion =
        libtest_mimic::run(&arguments, trials::trials(&plan, selection.exceptions, &records, &stop));
    if let Some(Err(reason)) = output.map(OutputPipe::end) {
        complain(&reason);
        return (None, ExitCode::FAILURE);
    }
    let failed = conclusion.has_failed();
    if arguments.list {
        return (None, code(failed));
    }
    let report = Report::new(&plan, &records);
    let missed = missed(selection, &plan, &report);
    // A filter may hide that something is missing, but not make it right.
    if !failed && !missed.is_empty() {
        complain(&missed.join("\n  "));
    }
    (Some(report), code(failed || !missed.is_empty()))
}

/// What was to be tested and was not, below a line that says so; empty if there is nothing.
fn missed(selection: &Selection, plan: &plan::Plan, report: &Report) -> Vec<String> {
    let tested = plan.devices.len();
    let absent = plan.absent.iter().filter(|absent| tested == 0 || !absent.excused);
    let mut missed: Vec<_> = absent.map(ToString::to_string).chain(plan.unused_kernels()).collect();
    if !selection.allow_no_launches {
        missed.extend(report.without_launches(selection));
    }
    if tested == 0 {
        missed.insert(0, "nothing was tested; `runtime doctor` says what was looked at".to_owned());
    } else if !missed.is_empty() {
        missed.insert(0, "not tested".to_owned());
    }
    missed
}

fn code(failed: bool) -> ExitCode {
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Standard error may be closed; the code says it too.
fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
