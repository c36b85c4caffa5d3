//! Random expressions and random kernels on every device, against the interpreters of this crate.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::{device, properties};

fn main() -> ExitCode {
    let (machines, mut trials) = device::all();
    trials.extend(machines.iter().flat_map(|machine| properties::trials(machine, properties::MANY)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
