//! The table of expressions and the kernels with their data, on every device that takes WGSL.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::{batch, device, programs};

fn main() -> ExitCode {
    let (executors, mut trials) = device::all();
    for executor in &executors {
        for (topic, programs) in programs::all() {
            // PoCL 3.1 loses its way where barriers stand in a second body.
            let pocl = executor.name().starts_with("opencl");
            if !executor.name().ends_with("/two") || topic == "ranges" || topic == "groups" && !pocl {
                trials.extend(batch::trials(executor, topic, programs));
            }
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
