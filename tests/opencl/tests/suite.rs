//! The conformance suite on Intel's driver, and on the example of a vendor's backend. The suite's own package runs it on the
//! drivers of the machine, PoCL among them.

use std::process::ExitCode;

use opencl::Driver;
use runtime_conformance::Selection;

fn main() -> ExitCode {
    opencl::run_per_driver(&[Driver::Pocl, Driver::Intel], |driver, arguments| {
        let (target, library) = match driver {
            // PoCL with the restrictions of an old driver.
            Driver::Pocl => ("vendor", opencl::vendor_backend()),
            _ => ("opencl", opencl::backend()),
        };
        let library = match library {
            Ok(library) => library,
            Err(reason) => return opencl::cannot_run(&reason),
        };
        let backends = vec![library.to_string_lossy().into_owned()];
        // Other tests check the requirements of the machine; this one needs only the backend.
        let selection = Selection { required: vec![target.to_owned()], ..Selection::new(backends) };
        runtime_conformance::run(&selection, arguments)
    })
}
