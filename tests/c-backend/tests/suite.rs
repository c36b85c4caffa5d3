//! The whole conformance suite against the backend in C, as it stands and as a later minor version would export it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::ExitCode;

use runtime_conformance::{Arguments, Selection};

fn main() -> ExitCode {
    if let Some(code) = runtime_conformance::child() {
        return code;
    }
    let arguments = Arguments::from_args();
    let folder = tempfile::tempdir().unwrap();
    let libraries = [
        runtime_c_backend_tests::build_as_it_is(folder.path()).unwrap(),
        runtime_c_backend_tests::build_newer(folder.path()).unwrap(),
    ];
    let backends = libraries.map(|library| library.to_str().unwrap().to_owned());
    // What is required of the machine is required of other tests: here are these two, and nothing else.
    let selection = Selection { required: Vec::new(), ..Selection::new(backends.to_vec()) };
    runtime_conformance::run(&selection, &arguments)
}
