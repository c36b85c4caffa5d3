//! The conformance suite: one plain function per case, run against every device that a backend offers.
//!
//! [`run`] is all that a program needs: the runner of this crate calls it, and so does `runtime conformance`. Backends
//! come in as libraries through [`runtime_core::Runtime`]; the suite knows none of them by name. Cases are grouped by
//! topic and chosen by what a device is and can do; what a device does not qualify for is reported as ignored, with
//! the reason, never left out in silence.
//!
//! Every wait has a deadline, and a case that does not end is a failure of that case, not of the run.

mod case;
mod context;
mod data;
mod exceptions;
mod kernels;
mod lab;
mod plan;
mod selection;
mod topics;
mod trials;
mod wait;

use std::io::Write;
use std::process::ExitCode;

pub use exceptions::{Exception, Expectation};
pub use libtest_mimic::Arguments;
pub use selection::Selection;

/// Runs the suite against `selection`, with the test runner's own `arguments`: filter, list, threads, format.
///
/// The code is a failure when a case fails, when an expected failure passes, when a selected or required backend is
/// not there, and when there was no device at all.
#[must_use]
pub fn run(selection: &Selection, arguments: &Arguments) -> ExitCode {
    let plan = plan::plan(selection);
    let tested = plan.devices.len();
    let absent: Vec<_> =
        plan.absent.iter().filter(|absent| tested == 0 || !absent.excused).map(ToString::to_string).collect();
    let conclusion = libtest_mimic::run(arguments, trials::trials(plan, selection.exceptions));
    // A filter may hide that something is missing, but not make it right.
    if !arguments.list && !conclusion.has_failed() && (tested == 0 || !absent.is_empty()) {
        let what = if tested == 0 {
            "nothing was tested; `runtime doctor` says what was looked at"
        } else {
            "not tested"
        };
        // Standard error may be closed; the code says it too.
        let _ = writeln!(std::io::stderr(), "{}", [&[what.to_owned()][..], &absent].concat().join("\n  "));
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}
