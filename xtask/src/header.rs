//! `cargo xtask header`: the C header, which a test of `runtime-core` compares with the Rust declarations.

use crate::process::{Outcome, run};
use crate::workspace::Workspace;

/// Writes the header again.
pub(crate) fn bless() -> Outcome {
    run(Workspace::read()?
        .cargo(&["test", "--quiet", "--package", "runtime-core", "--test", "abi"])
        .env("RUNTIME_BLESS", "1"))
}

/// Fails if the header is stale.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    run(workspace
        .cargo(&["test", "--quiet", "--package", "runtime-core", "--test", "abi"])
        .env_remove("RUNTIME_BLESS"))
}
