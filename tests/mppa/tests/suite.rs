//! The conformance suite on the stand-in: PoCL with an MPPA's limits, groups of at most 16 items among them.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use runtime_conformance::Selection;

fn main() -> ExitCode {
    match runtime_conformance::child() {
        Some(code) => code,
        None => mppa::on_stand_in("RUNTIME_TEST_MPPA_SUITE", suite),
    }
}

fn suite(arguments: &Arguments) -> ExitCode {
    let library = match mppa::backend() {
        Ok(library) => library.to_string_lossy().into_owned(),
        Err(reason) => return opencl::cannot_run(&reason),
    };
    let selection = Selection { required: vec!["mppa".to_owned()], ..Selection::new(vec![library]) };
    runtime_conformance::run(&selection, arguments)
}
