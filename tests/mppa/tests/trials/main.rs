//! The MPPA backend on fake machines, on a fake SDK, and on PoCL, which stands in for the chip. Libraries and drivers read their
//! environment once per process, so that most of these tests run in child processes of this program.

mod ancestor;
mod hanging_library;
mod host_modules;
mod hostile;
mod kernels;
mod machines;
mod offload_device;
mod simulator_command;
mod simulators;
mod timing;

use std::process::ExitCode;

use libtest_mimic::Arguments;

/// Each knows its own child processes.
const CHILDREN: [fn() -> Option<ExitCode>; 9] = [
    runtime_conformance::child,
    ancestor::child,
    hanging_library::child,
    host_modules::child,
    hostile::child,
    machines::child,
    offload_device::child,
    simulators::child,
    timing::child,
];

fn main() -> ExitCode {
    if let Some(code) = CHILDREN.into_iter().find_map(|child| child()) {
        return code;
    }
    let trials = [
        ancestor::trials(),
        hanging_library::trials(),
        host_modules::trials(),
        hostile::trials(),
        kernels::trials(),
        machines::trials(),
        offload_device::trials(),
        simulator_command::trials(),
        simulators::trials(),
        timing::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit_code()
}
