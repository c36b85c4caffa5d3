//! The table of expressions and the kernels with their data, on every device that takes WGSL.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::{batch, device, programs};

fn main() -> ExitCode {
    let (machines, mut trials) = device::all();
    for machine in &machines {
        for (topic, programs) in programs::all() {
            trials.extend(batch::trials(machine, topic, programs));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
