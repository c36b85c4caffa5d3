//! `cargo xtask eval`: builds in release and evaluates kernels on every device of this machine.

use crate::install;
use crate::process::{Outcome, run};
use crate::workspace::{Profile, Workspace};

/// Builds the command and the backends, and runs `runtime eval` with the arguments.
pub(crate) fn run_eval(arguments: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    install::build(&workspace)?;
    run(workspace.executable(Profile::Release, "runtime").arg("eval").args(arguments))
}
