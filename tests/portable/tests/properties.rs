//! Random expressions and random kernels on every device, compared with the interpreters of this crate.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::{batch, device, properties};

fn main() -> ExitCode {
    let (executors, mut trials) = device::all();
    let mut modules = Vec::new();
    // The compiler of PoCL 3.1 may crash when it optimises group loops.
    for executor in executors.iter().filter(|executor| !executor.name().ends_with("/optimised_loops_4")) {
        // OpenCL compilers take minutes for what others do in seconds; lavapipe's is slow too.
        let amount = match executor.name() {
            name if name.starts_with("opencl") => properties::FEW,
            name if name.starts_with("vulkan") => properties::SOME,
            _ => properties::MANY,
        };
        modules.extend(properties::trials(executor, amount));
    }
    trials.extend(batch::in_order(modules));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
