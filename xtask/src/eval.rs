//! `cargo xtask eval`: builds in release and evaluates kernels on every device of this machine.

use crate::process::{Outcome, run};
use crate::workspace::{Profile, Workspace};

/// Builds the command and the backends, and runs `runtime eval` with the arguments.
pub(crate) fn run_eval(arguments: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    let mut build = workspace.cargo(&["build", "--release", "--quiet", "--package", "runtime-cli"]);
    for backend in workspace.device_backends() {
        build.args(["--package", &backend.package]);
    }
    run(&mut build)?;
    run(workspace.executable(Profile::Release, "runtime").arg("eval").args(arguments))
}
