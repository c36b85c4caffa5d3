//! The OpenCL backend on several drivers, on drivers that fail, and without any. The ICD loader reads its environment once per
//! process, so that these tests run in child processes: of the command, or of this program.

mod driver_discovery;
mod driver_faults;
mod fusion_races;
mod grid_races;
mod kernels;
mod load_errors;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use opencl::smoke_test;

fn main() -> ExitCode {
    if smoke_test::is_child() {
        return smoke_test::run();
    }
    if let Some(code) = driver_discovery::child().or_else(grid_races::child).or_else(load_errors::child) {
        return code;
    }
    let trials = [
        driver_discovery::trials(),
        driver_faults::trials(),
        fusion_races::trials(),
        grid_races::trials(),
        kernels::trials(),
        load_errors::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit_code()
}
