//! WGSL semantics on Intel's driver. The package of portable kernels tests the drivers of the machine, PoCL among them.

use std::process::ExitCode;

use opencl::Driver;
use portable::{batch, device, programs, properties};

fn main() -> ExitCode {
    opencl::run_per_driver(&[Driver::Intel], |_, arguments| {
        let (machines, mut trials) = device::all();
        let mut modules = Vec::new();
        for machine in &machines {
            for (topic, programs) in programs::all() {
                modules.extend(batch::trials(machine, topic, programs));
            }
            modules.extend(properties::trials(machine, properties::FEW));
        }
        trials.extend(batch::in_order(modules));
        libtest_mimic::run(arguments, trials).exit_code()
    })
}
