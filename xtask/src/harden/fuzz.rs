//! `cargo xtask fuzz [SECONDS]`: every fuzz target of `tests/fuzz` for that long, from the seeds that are kept there.

use std::path::Path;

use super::{Nightly, install};
use crate::process::{Failure, Outcome, is_installed, output, run};
use crate::workspace::Workspace;

/// How long each target runs.
const SECONDS: u64 = 60;
/// The package, outside the workspace.
const FOLDER: &str = "tests/fuzz";

pub(crate) fn fuzz(seconds: Option<&str>) -> Outcome {
    let seconds = match seconds {
        None => SECONDS,
        Some(text) => text.parse().map_err(|_| {
            Failure::new(format!("`{text}` is no number of seconds: cargo xtask fuzz [SECONDS]"))
        })?,
    };
    let nightly = Nightly::with(&[])?;
    let workspace = Workspace::read()?;
    if !is_installed("cargo-fuzz") {
        install(&mut workspace.cargo(&["install", "--quiet", "--locked", "--debug", "cargo-fuzz"]))?;
    }
    let listed = output(nightly.cargo(&workspace).args(["fuzz", "list", "--fuzz-dir", FOLDER]))?;
    let mut failed = Vec::new();
    for target in listed.split_whitespace() {
        if let Err(failure) = attack(&nightly, &workspace, target, seconds) {
            failed.push(format!("{target}: {failure}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("; "))) }
}

fn attack(nightly: &Nightly, workspace: &Workspace, target: &str, seconds: u64) -> Outcome {
    let folder = workspace.harden("fuzz");
    let corpus = folder.join("corpus").join(target);
    let artifacts = folder.join("artifacts").join(target);
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let mut cargo = nightly.cargo(workspace);
    cargo.args(["fuzz", "run", "--fuzz-dir", FOLDER, "--target-dir"]).arg(&folder).arg(target);
    // What is found goes to the first directory; the seeds stay as they are.
    cargo.arg(&corpus).arg(Path::new(FOLDER).join("seeds").join(target));
    cargo.arg("--").arg(format!("-max_total_time={seconds}")).arg("-max_len=4096");
    // Objects that a table without `close` leaves behind count too.
    cargo.arg("-rss_limit_mb=4096");
    run(cargo.arg(format!("-artifact_prefix={}/", artifacts.display())))
}
