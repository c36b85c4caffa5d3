//! `cargo xtask lint`: spelling, where `typos` is installed. Otherwise the check says that it was left out.

use std::process::Command;

use crate::process::{Outcome, is_installed, run};
use crate::workspace::Workspace;

/// `typos.toml` has the exceptions.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    if !is_installed("typos") {
        eprintln!("xtask: spelling: not checked, because `typos` is not installed (pip install typos)");
        return Ok(());
    }
    run(Command::new("typos").current_dir(&workspace.root))
}
