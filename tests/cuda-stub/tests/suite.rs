//! The conformance suite against the CUDA backend, on a driver without a GPU.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::ExitCode;

use runtime_conformance::{Arguments, Selection};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if runtime_cuda_stub_tests::is_here() {
        let backend = runtime_cuda_stub_tests::backend().unwrap();
        // What is required of the machine is required of other tests: here is this backend, and nothing else.
        let selection = Selection {
            required: vec!["cuda".to_owned()],
            ..Selection::new(vec![backend.to_str().unwrap().to_owned()])
        };
        return runtime_conformance::run(&selection, &arguments);
    }
    let folder = tempfile::tempdir().unwrap();
    runtime_cuda_stub_tests::build(folder.path(), &[]).unwrap();
    let status = runtime_cuda_stub_tests::again(folder.path(), "devices=2").unwrap().status().unwrap();
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
