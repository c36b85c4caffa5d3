//! Random expressions and random kernels on every device, against the interpreters of this crate.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::{device, properties};

fn main() -> ExitCode {
    let (executors, mut trials) = device::all();
    for executor in &executors {
        // Compilers of OpenCL take minutes for what others do in seconds, and lavapipe's takes its time too.
        let amount = match executor.name() {
            name if name.starts_with("opencl") => properties::FEW,
            name if name.starts_with("vulkan") => properties::SOME,
            _ => properties::MANY,
        };
        trials.extend(properties::trials(executor, amount));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
