//! `cargo xtask header`: the C header, which a test compares with the Rust declarations.

use std::process::Command;

use crate::process::{Outcome, run};
use crate::workspace::Workspace;

/// Writes the header again.
pub(crate) fn bless() -> Outcome {
    run(test(&Workspace::read()?).env("RUNTIME_BLESS", "1"))
}

/// Fails if the header is stale.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    run(test(workspace).env_remove("RUNTIME_BLESS"))
}

fn test(workspace: &Workspace) -> Command {
    workspace.cargo(&["test", "--quiet", "--package", "runtime-abi-tests", "--test", "header"])
}
