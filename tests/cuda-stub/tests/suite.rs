//! Runs the conformance suite against the CUDA backend, on the driver stub.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::ExitCode;

use runtime_conformance::{Arguments, Exception, Expectation, Selection};

/// What compiles code of its own.
const EXCEPTIONS: &[Exception] = &[
    exception("structures::random_structures_arrive_with_every_bit"),
    exception("dispatch::*"),
    exception("fusion*"),
    exception("recording::a_dispatcher_is_recorded"),
    exception("recording::a_cast_is_recorded_if_the_device_makes_it"),
    exception("tensors::casts_are_those_of_arrays"),
    exception("tensors::a_cast_is_in_order_with_its_queue"),
    exception("threads::threads_run_new_code"),
];

const fn exception(pattern: &'static str) -> Exception {
    Exception {
        backend: "cuda",
        pattern,
        expectation: Expectation::Unsupported,
        reason: "the stub compiles no code; it has the kernels of the suite only",
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if runtime_cuda_stub_tests::child_part().is_some() {
        let backend = runtime_cuda_stub_tests::plugin_path().unwrap();
        // Requirements on the machine concern other tests: only this backend is present here.
        let selection = Selection {
            required: vec!["cuda".to_owned()],
            exceptions: EXCEPTIONS,
            ..Selection::new(vec![backend.to_str().unwrap().to_owned()])
        };
        return runtime_conformance::run(&selection, &arguments);
    }
    let folder = tempfile::tempdir().unwrap();
    runtime_cuda_stub_tests::build(folder.path(), &[]).unwrap();
    let status = runtime_cuda_stub_tests::rerun_with_stub("suite", folder.path(), "devices=2")
        .unwrap()
        .status()
        .unwrap();
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
