//! `cargo xtask fuzz kernels [SECONDS] [OPTION…]`: runs random kernels on the devices of this machine.

use crate::process::{Outcome, run};
use crate::workspace::{Profile, Workspace};

const PACKAGE: &str = "runtime-kernel-fuzz";

/// Builds the fuzzer and the backends, and runs the fuzzer with the arguments.
pub(crate) fn run_fuzzer(arguments: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    let mut build = workspace.cargo(&["build", "--profile", "fuzzing", "--quiet", "--package", PACKAGE]);
    for backend in workspace.device_backends() {
        build.args(["--package", &backend.package]);
    }
    run(&mut build)?;
    let mut fuzz = workspace.executable(Profile::Fuzzing, "kernel-fuzz");
    run(fuzz.current_dir(&workspace.root).arg("run").args(arguments))
}
