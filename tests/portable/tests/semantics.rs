//! The tables of expressions and the annotated kernels, on every device that accepts WGSL.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::{batch, device, programs};

fn main() -> ExitCode {
    let (executors, mut trials) = device::all();
    for executor in &executors {
        for (topic, programs) in programs::all() {
            // PoCL 3.1 miscompiles barriers in a second variant.
            let pocl = executor.name().starts_with("opencl");
            if !executor.name().ends_with("/two") || topic == "ranges" || topic == "groups" && !pocl {
                trials.extend(batch::trials(executor, topic, programs));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
