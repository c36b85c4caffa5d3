//! The conformance suite: one plain function per case, run against every device of a backend.
//!
//! [`run`] is the entry point; the `conformance` program and `runtime conformance` call it. Backends are loaded as
//! libraries through [`runtime_core::Runtime`]; no code here depends on a particular backend. Cases are grouped by
//! topic and chosen by the kind and capabilities of a device. A case that a device does not qualify for is reported as
//! ignored, with the reason; it is never skipped silently.
//!
//! Every wait has a deadline: a case that hangs fails, and the run continues.

mod arguments;
#[allow(unsafe_code, reason = "reads the function tables of backends")]
mod backend_table;
#[allow(unsafe_code, reason = "wraps the function table of a backend")]
mod call_counter;
mod case;
#[allow(unsafe_code, reason = "forks, and installs exit and signal handlers")]
mod child_process;
mod context;
mod exceptions;
mod expect;
mod faults;
mod fixture;
mod foreign;
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
use std::sync::OnceLock;

pub use arguments::SuiteArguments;
pub use child_process::child;
pub use exceptions::{Exception, Expectation};
pub use faults::{FaultArguments, FaultOptions, run_faults, serve_faults};
pub use libtest_mimic::Arguments;
pub use selection::Selection;
pub use serde_json::Value;

use output::{OutputPipe, StopFlag};
use report::{Records, Report};
use runtime_core::backend::TemporaryFolder;
use runtime_core::cache::{CacheOptions, CodeCache};
use runtime_core::{Runtime, RuntimeBuilder};

/// Runs the suite against `selection`, with the test runner's own `arguments` (filter, list, threads, format), then
/// prints a summary of each device: the failures, what was not tested and why, and how many cases each missing
/// capability would enable.
///
/// The exit code is 1 when a case fails, an expected failure passes, a selected or required backend is missing, there
/// is no device, a device launched no kernel although cases need one, or standard output is closed; it is 2 when the
/// log file or the folder of kernels cannot be used.
#[must_use]
pub fn run(selection: &Selection, arguments: &Arguments) -> ExitCode {
    if let Some(code) = child() {
        return code;
    }
    let (report, code) = run_plan(selection, arguments);
    if let Some(report) = report.filter(|_| !arguments.quiet) {
        // A closed standard output is not a failure of the backend.
        let _ = write!(std::io::stdout().lock(), "{}", report.text());
    }
    code
}

/// Runs the suite like [`run`], but prints nothing and returns the report as one JSON document.
#[must_use]
pub fn run_json(selection: &Selection, arguments: Arguments) -> (Value, ExitCode) {
    if let Some(code) = child() {
        return (Value::Null, code);
    }
    let logfile = arguments.logfile.clone().or_else(|| Some("/dev/null".to_owned()));
    let (report, code) = run_plan(selection, &Arguments { logfile, list: false, ..arguments });
    (report.map_or(Value::Null, |report| report.json()), code)
}

/// The number of cases, for messages about a suite that is not run.
#[must_use]
pub fn case_count() -> usize {
    topics::TOPICS.iter().map(|(_, cases)| cases.len()).sum()
}

/// The builder of every `Runtime` of the suite; it has the WGSL lowering, for devices that load only portable code, and a
/// code cache that begins empty: the backend under test may have changed since its code was last compiled.
#[allow(unsafe_code, reason = "names the folder of a code cache")]
fn builder() -> RuntimeBuilder {
    static CACHE: OnceLock<Option<TemporaryFolder>> = OnceLock::new();
    let folder = CACHE.get_or_init(|| TemporaryFolder::new("runtime-conformance-cache-").ok());
    let cache = folder.as_ref().map_or_else(CodeCache::off, |folder| {
        // SAFETY: only this program writes to the folder.
        let options = unsafe { CacheOptions::default().with_folder(folder.path()) };
        CodeCache::with_options(options)
    });
    Runtime::builder().with_lowering(runtime_kernel::wgsl()).code_cache(cache)
}

/// The exit code of a run without a report.
const UNUSABLE: u8 = 2;

fn run_plan(selection: &Selection, arguments: &Arguments) -> (Option<Report>, ExitCode) {
    let stop = StopFlag::default();
    let plan = plan::plan(selection).map_err(|error| error.to_string());
    let output =
        OutputPipe::redirect(arguments, &stop).map_err(|error| format!("cannot write the output: {error}"));
    let (plan, (output, arguments)) = match plan.and_then(|plan| Ok((plan, output?))) {
        Ok(both) => both,
        Err(reason) => {
            print_error(&format!("error: {reason}"));
            return (None, ExitCode::from(UNUSABLE));
        }
    };
    let records = Records::default();
    let conclusion =
        libtest_mimic::run(&arguments, trials::trials(&plan, selection.exceptions, &records, &stop));
    if let Some(Err(reason)) = output.map(OutputPipe::end) {
        print_error(&reason);
        return (None, ExitCode::FAILURE);
    }
    let failed = conclusion.has_failed();
    if arguments.list {
        return (None, code(failed));
    }
    let report = Report::new(&plan, &records);
    let missed = missed(selection, &plan, &report);
    // Checked even when a filter hides the missing cases.
    if !failed && !missed.is_empty() {
        print_error(&missed.join("\n  "));
    }
    (Some(report), code(failed || !missed.is_empty()))
}

/// What should have been tested and was not, below a heading; empty if nothing was missed.
fn missed(selection: &Selection, plan: &plan::Plan, report: &Report) -> Vec<String> {
    let tested = plan.devices.len();
    let absent = plan.absent.iter().filter(|absent| tested == 0 || !absent.excused);
    let mut missed: Vec<_> = absent.map(ToString::to_string).chain(plan.unused_kernels()).collect();
    if !selection.allow_no_launches {
        missed.extend(report.without_launches(selection));
    }
    if tested == 0 {
        missed.insert(
            0,
            "nothing was tested; run `runtime doctor` to see which backends were found".to_owned(),
        );
    } else if !missed.is_empty() {
        missed.insert(0, "not tested".to_owned());
    }
    missed
}

fn code(failed: bool) -> ExitCode {
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints to standard error; ignores errors, because the exit code reports the failure too.
fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
