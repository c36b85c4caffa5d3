//! The Vulkan backend on lavapipe, on faulty drivers, and under load. The loader reads its environment once per process, so that
//! most of these tests run in child processes of this program.

mod compilation;
mod drivers;
mod exit;
mod kernels;
mod races;
mod refused_submissions;
mod shaders;
mod stress;
mod two_devices;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    if let Some(part) = vulkan_tests::child_part() {
        return match &*part {
            "compilation" => compilation::child(),
            "drivers" => drivers::child(),
            "exit" => exit::child(),
            "races" => races::child(),
            "refused_submissions" => refused_submissions::child(),
            "stress" => stress::child(),
            "two_devices" => two_devices::child(),
            other => panic!("no part starts children as {other:?}"),
        };
    }
    let trials = [
        compilation::trials(),
        drivers::trials(),
        exit::trials(),
        kernels::trials(),
        races::trials(),
        refused_submissions::trials(),
        shaders::trials(),
        stress::trials(),
        two_devices::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit_code()
}
