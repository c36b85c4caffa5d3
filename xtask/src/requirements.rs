//! Programs that the tests need beyond the Rust toolchain.

use std::path::Path;
use std::process::Command;

use crate::process::{Failure, Outcome, is_installed, run};
use crate::workspace::Workspace;

/// A program, its Debian package, and why it is needed.
struct Requirement {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

const REQUIREMENTS: &[Requirement] = &[
    Requirement { program: "cc", package: "gcc", why: "the host backend compiles kernels written in C" },
    Requirement { program: "make", package: "make", why: "libffi is built from source" },
    Requirement { program: "strip", package: "binutils", why: "`cargo xtask install` strips what it copies" },
];

/// Installs missing programs if that is possible: on Debian, as root.
pub(crate) fn install() -> Outcome {
    let missing: Vec<_> =
        REQUIREMENTS.iter().filter(|requirement| !is_installed(requirement.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|requirement| requirement.package).collect();
    if !(is_installed("apt-get") && is_root()) {
        let list: Vec<_> = missing
            .iter()
            .map(|r| format!("  {} (Debian package {}): {}", r.program, r.package, r.why))
            .collect();
        return Err(Failure::new(format!(
            "required programs are missing; install them and try again:\n{}\non Debian: sudo apt-get install {}",
            list.join("\n"),
            packages.join(" ")
        )));
    }
    run(apt().arg("update"))?;
    run(apt().args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

/// Installs a subcommand of cargo in CI; elsewhere its absence is an error that names the command to run.
pub(crate) fn install_cargo_tool(workspace: &Workspace, tool: &str) -> Outcome {
    if is_installed(tool) {
        return Ok(());
    }
    if std::env::var_os("CI").is_none() {
        return Err(Failure::new(format!("{tool} is missing: cargo install --locked {tool}")));
    }
    // Unoptimised: it builds in a third of the time and runs for only a second.
    run(&mut workspace.cargo(&["install", "--quiet", "--locked", "--debug", tool]))
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet=2").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self").metadata().is_ok_and(|process| process.uid() == 0)
}
