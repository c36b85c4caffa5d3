//! The conformance suite on the backend in C, unmodified and as a later minor version.

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
    // Requirements on the machine concern other tests: only these two backends run here.
    let selection = Selection { required: Vec::new(), ..Selection::new(backends.to_vec()) };
    runtime_conformance::run(&selection, &arguments)
}
