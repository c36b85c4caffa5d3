//! `cargo xtask valgrind`: runs the tests of the loader and the host, where C code touches memory, and the backend in C.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{require, without_backtraces};
use crate::process::{Failure, Outcome, output, run};
use crate::workspace::Workspace;

const PACKAGES: [&str; 3] = ["runtime-loader-tests", "runtime-host", "runtime-portable-tests"];
/// Test programs that are not run. `allocations` counts allocations of calls, which valgrind makes slow enough to be
/// queued. `portable` tests an interpreter of kernels, and would take hours.
const EXCLUDED_PROGRAMS: [&str; 2] = ["allocations", "portable"];
/// Tests that cannot pass: under valgrind, starting a missing program fails only after the fork.
const SKIPPED_TESTS: [&str; 1] = ["a_missing_compiler_is_an_error_with_the_remedy"];
/// Parts of the program `trials` that would take hours.
const SKIPPED_TRIALS: [&str; 4] = ["semantics::", "properties::", "compile::", "rejected::"];
/// The suite against the backend in C. This test starts valgrind itself.
const C_BACKEND_TEST: [&str; 7] =
    ["test", "--package", "runtime-c-backend-tests", "--test", "integration", "--", "--ignored"];
/// A compiler wrapper that disables AVX-512, which valgrind does not support: the last `-march` takes effect.
const COMPILER: &str = "#!/bin/sh\nexec cc \"$@\" -march=x86-64-v3\n";

/// A test program and its package's directory, where it runs.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    name: String,
    executable: PathBuf,
    folder: PathBuf,
}

pub(crate) fn valgrind() -> Outcome {
    require("valgrind", "on Debian: apt-get install valgrind")?;
    let workspace = Workspace::read()?;
    run(&mut workspace.cargo(&["build", "--quiet", "--workspace"]))?;
    let compiler = compiler(&workspace.harden_dir("valgrind"))?;
    let mut failed = Vec::new();
    for program in programs(&workspace)? {
        if let Err(failure) = check(&workspace, &program, &compiler) {
            failed.push(format!("{}: {failure}", program.name));
        }
    }
    if let Err(failure) = run(&mut workspace.cargo(&C_BACKEND_TEST)) {
        failed.push(format!("the backend in C: {failure}"));
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("; "))) }
}

fn check(workspace: &Workspace, program: &Program, compiler: &Path) -> Outcome {
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=97", "--num-callers=40", "--leak-check=full"]);
    // Memory in the statics of a library that stays loaded is reachable and not a leak.
    command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    command.arg(format!("--suppressions={}", workspace.root.join("xtask/valgrind.supp").display()));
    command.arg(&program.executable).arg("--test-threads=1");
    let trials = SKIPPED_TRIALS.iter().filter(|_| program.name == "trials");
    SKIPPED_TESTS.iter().chain(trials).for_each(|name| {
        command.args(["--skip", name]);
    });
    run(without_backtraces(&mut command).current_dir(&program.folder).env("CC", compiler))
}

/// Writes the compiler wrapper for the host backend.
fn compiler(folder: &Path) -> Outcome<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join("cc");
    fs::write(&path, COMPILER)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// Builds the test programs. Their file names contain a hash, so they are taken from cargo's messages.
fn programs(workspace: &Workspace) -> Outcome<Vec<Program>> {
    let mut build = workspace.cargo(&["test", "--quiet", "--no-run", "--message-format", "json"]);
    PACKAGES.iter().for_each(|package| {
        build.args(["--package", package]);
    });
    let messages = output(&mut build)?;
    let programs = messages.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?));
    let programs: Vec<_> =
        programs.filter(|program| !EXCLUDED_PROGRAMS.contains(&program.name.as_str())).collect();
    if programs.is_empty() { Err(Failure::new("cargo reported no test program")) } else { Ok(programs) }
}

fn program(message: &Value) -> Option<Program> {
    let is_test = message["profile"]["test"].as_bool()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    is_test.then_some(Program {
        name: message["target"]["name"].as_str()?.to_owned(),
        executable: PathBuf::from(message["executable"].as_str()?),
        folder: folder.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn test_programs_are_found_in_cargos_messages() {
        let message = |test: bool| {
            json!({"manifest_path": "/w/p/Cargo.toml", "profile": {"test": test},
                   "target": {"name": "loader"}, "executable": "/t/loader-0f"})
        };
        let found = Program {
            name: "loader".to_owned(),
            executable: PathBuf::from("/t/loader-0f"),
            folder: PathBuf::from("/w/p"),
        };
        assert_eq!(program(&message(true)), Some(found));
        assert_eq!(program(&message(false)), None, "an ordinary executable");
        assert_eq!(program(&json!({"reason": "build-finished"})), None);
    }
}
