//! Tests that run with one driver after the other, each in a child process that sees only this driver.

mod code;
mod private_memory;
mod wgsl_semantics;

use std::process::ExitCode;

use opencl::Driver;

fn main() -> ExitCode {
    opencl::run_per_driver(&Driver::ALL, |driver, arguments| {
        let mut trials = code::trials(driver);
        if driver != Driver::Oclgrind {
            trials.extend(private_memory::trials(driver));
        }
        if driver == Driver::Intel {
            trials.extend(wgsl_semantics::trials());
        }
        libtest_mimic::run(arguments, trials).exit_code()
    })
}
