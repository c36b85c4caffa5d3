//! `cargo xtask header`: regenerates `runtime-core/include/runtime.h`. The test `tests/abi/tests/generate_header.rs` does the work: it
//! writes the header if `RUNTIME_UPDATE_GOLDEN` is set, and otherwise fails if the header is stale.

use std::process::Command;

use crate::process::{Outcome, run};
use crate::workspace::Workspace;

/// Regenerates the header.
pub(crate) fn update() -> Outcome {
    run(header_test(&Workspace::read()?).env("RUNTIME_UPDATE_GOLDEN", "1"))
}

/// Fails if the header is stale.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    run(header_test(workspace).env_remove("RUNTIME_UPDATE_GOLDEN"))
}

/// Runs it in the whole workspace, so that features match all other builds.
fn header_test(workspace: &Workspace) -> Command {
    workspace.cargo(&["test", "--quiet", "--workspace", "--test", "generate_header"])
}
