//! The CUDA backend on the stub of the driver: faulty drivers, errors while code is loaded, telemetry and counters. The dynamic
//! loader reads its environment once per process, so that each test runs in a child process of this program.

mod counters;
mod drivers;
mod load_errors;
mod telemetry;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    if let Some(part) = runtime_cuda_stub_tests::child_part() {
        return match &*part {
            "counters" => counters::child(),
            "drivers" => drivers::child(),
            "load_errors" => load_errors::child(),
            "telemetry" => telemetry::child(),
            other => panic!("no part starts children as {other:?}"),
        };
    }
    let trials = [counters::trials(), drivers::trials(), load_errors::trials(), telemetry::trials()];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit_code()
}
