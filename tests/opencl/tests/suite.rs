//! The conformance suite on Intel's driver. On the drivers of the machine, PoCL among them, the suite's own package runs it.

use std::process::ExitCode;

use opencl::Driver;
use runtime_conformance::Selection;

fn main() -> ExitCode {
    opencl::each(&[Driver::Intel], |_, arguments| {
        let Ok(backend) = opencl::backend() else { return ExitCode::FAILURE };
        let backends = vec![backend.to_string_lossy().into_owned()];
        // What is required of the machine is required of other tests: here is this backend, and nothing else.
        let selection = Selection { required: vec!["opencl".to_owned()], ..Selection::new(backends) };
        runtime_conformance::run(&selection, arguments)
    })
}
