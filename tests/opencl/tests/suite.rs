//! The conformance suite on Intel's driver, and on a vendor's backend that stands on this one. On the drivers of the machine,
//! PoCL among them, the suite's own package runs it.

use std::process::ExitCode;

use opencl::Driver;
use runtime_conformance::Selection;

fn main() -> ExitCode {
    opencl::run_per_driver(&[Driver::Pocl, Driver::Intel], |driver, arguments| {
        let (target, library) = match driver {
            // `runtime-opencl/examples/vendor.rs`: PoCL with as little as an old driver has.
            Driver::Pocl => ("vendor", opencl::built("examples/libvendor.so")),
            _ => ("opencl", opencl::backend()),
        };
        let Ok(library) = library else { return ExitCode::FAILURE };
        let backends = vec![library.to_string_lossy().into_owned()];
        // What is required of the machine is required of other tests: here is this backend, and nothing else.
        let selection = Selection { required: vec![target.to_owned()], ..Selection::new(backends) };
        runtime_conformance::run(&selection, arguments)
    })
}
