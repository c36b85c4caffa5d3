//! The conformance suite with the null backend linked in: a single program for `cargo xtask mutants`. Otherwise the suite's
//! own package runs it against the library.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};
use runtime_conformance::{Selection, case_count, run};

/// Set this variable to run the suite here.
const WANTED: &str = "RUNTIME_NULL_SUITE";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if std::env::var_os(WANTED).is_none() {
        let reason =
            format!("{} cases run in tests/conformance; {WANTED}=1 runs them linked in", case_count());
        let trial = Trial::ignorable_test("null::suite", || Ok(Completion::ignored_with(reason)));
        return libtest_mimic::run(&arguments, vec![trial]).exit_code();
    }
    let linked = vec![runtime_null::backend()];
    run(&Selection { required: Vec::new(), linked, ..Selection::new(Vec::new()) }, &arguments)
}
