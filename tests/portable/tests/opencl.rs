//! The table, the kernels and random ones on every OpenCL device, through the OpenCL C that is written for them.
//!
//! Without an OpenCL device they are ignored; `RUNTIME_REQUIRE` with `pocl` in its list makes that a failure.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use portable::{batch, opencl, programs, properties, required};

fn main() -> ExitCode {
    let mut trials = Vec::new();
    match opencl::all() {
        Ok(machines) => {
            for machine in &machines {
                for (topic, programs) in programs::all() {
                    trials.extend(batch::trials(machine, topic, programs));
                }
                trials.extend(properties::trials(machine, properties::FEW));
            }
        }
        Err(reason) => trials.push(Trial::ignorable_test("opencl::open", move || {
            if required("pocl") { Err(Failed::from(reason)) } else { Ok(Completion::ignored_with(reason)) }
        })),
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
