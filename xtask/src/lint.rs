//! `cargo xtask lint`: all static checks.

use std::fs;

use crate::architecture;
use crate::dependencies;
use crate::examples;
use crate::harden;
use crate::header;
use crate::layers;
use crate::markdown;
use crate::named_code;
use crate::other_targets;
use crate::process::{Failure, Outcome, is_installed, run};
use crate::programs;
use crate::spelling;
use crate::stray_files;
use crate::workspace::Workspace;

/// Maximum number of lines of a handwritten file.
const MAX_LINES: usize = 600;
/// Generated files, exempt from the limit.
const GENERATED: &[&str] = &["runtime-core/include/runtime.h"];

type Check = fn(&Workspace) -> Outcome;

const CHECKS: &[(&str, Check)] = &[
    ("rustfmt", |workspace| run(&mut workspace.cargo(&["fmt", "--all", "--check"]))),
    ("length of files", file_lengths),
    ("imports between modules", layers::check),
    ("files that nothing reads", stray_files::check),
    ("programs are started, and panics caught, in one place", programs::check),
    ("code that safe functions take", named_code::check),
    ("paths in ARCHITECTURE.md", architecture::check),
    ("documented dependencies", dependencies::check),
    ("examples in the documentation", examples::check),
    ("Markdown", markdown::check),
    ("spelling", spelling::check),
    ("clippy", |workspace| {
        run(&mut workspace.cargo(&[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ]))
    }),
    ("rustdoc", |workspace| {
        run(workspace
            .cargo(&["doc", "--quiet", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "--deny warnings"))
    }),
    ("other targets", other_targets::check),
    ("C header", header::check),
    ("cargo-deny", deny),
];

/// Compiles all crates another time, for a minute, and seldom finds anything: runs if it is named, and in `test --all`.
const FUZZ_TARGETS: (&str, Check) = ("fuzz targets", harden::check_fuzz_targets);

/// Runs the checks whose name contains one of the words; without words, all but the fuzz targets.
pub(crate) fn run_checks(words: &[String]) -> Outcome {
    let workspace = Workspace::read()?;
    let mut failed = Vec::new();
    let is_asked = |name: &str| words.iter().any(|word| name.contains(word));
    let all = || CHECKS.iter().chain([&FUZZ_TARGETS]);
    let checks: Vec<_> = match words {
        [] => CHECKS.iter().collect(),
        _ => all().filter(|(name, _)| is_asked(name)).collect(),
    };
    if checks.is_empty() {
        let names: Vec<_> = all().map(|(name, _)| *name).collect();
        return Err(Failure::new(format!("no check is named like this; there are {}", names.join(", "))));
    }
    for (name, check) in checks {
        if let Err(failure) = check(&workspace) {
            eprintln!("xtask: {name}: {failure}");
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format!("lint failed: {}", failed.join(", ")))) }
}

/// Runs cargo-deny without advisories, whose database a build machine may not be able to reach. Where it is missing it is not
/// installed: it takes longer to build than all that it can find, and only a change of the dependencies makes it find something.
fn deny(workspace: &Workspace) -> Outcome {
    if !is_installed("cargo-deny") {
        eprintln!(
            "xtask: cargo-deny: not run, because it is not installed (cargo install --locked cargo-deny)"
        );
        return Ok(());
    }
    run(&mut workspace.cargo(&["deny", "--log-level", "error", "check", "bans", "licenses", "sources"]))
}

fn file_lengths(workspace: &Workspace) -> Outcome {
    let mut long = Vec::new();
    let is_limited = |name: &&String| is_source(name) && !GENERATED.contains(&name.as_str());
    for name in workspace.tracked_files()?.iter().filter(is_limited) {
        // A listed file that does not exist was deleted without a commit yet.
        let lines = fs::read_to_string(workspace.root.join(name)).map_or(0, |text| text.lines().count());
        if lines > MAX_LINES {
            long.push(format!("{name} has {lines} lines"));
        }
    }
    if long.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("more than {MAX_LINES} lines: {}", long.join(", "))))
    }
}

fn is_source(name: &str) -> bool {
    [".rs", ".c", ".h", ".py", ".sh"].iter().any(|extension| name.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use super::is_source;

    #[test]
    fn source_files_are_recognised_by_extension() {
        assert!(is_source("runtime-core/src/lib.rs"));
        assert!(is_source("kernels/native/matmul.c"));
        assert!(!is_source("Cargo.lock"));
        assert!(!is_source("README.md"));
    }
}
