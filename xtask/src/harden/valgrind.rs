//! `cargo xtask valgrind`: the loader's and the host's tests, whose memory is really touched by C, and the backend in C.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{quick, require};
use crate::process::{Failure, Outcome, output, run};
use crate::workspace::Workspace;

const PACKAGES: [&str; 3] = ["runtime-loader-tests", "runtime-host", "runtime-portable-tests"];
/// Test programs that are not run: the first counts allocations of calls that are slow enough here to be queued; the
/// others are those of portable kernels but for `bounds`, and would take hours.
const EXCLUDED_PROGRAMS: [&str; 7] =
    ["allocations", "portable", "semantics", "properties", "compile", "opencl", "rejected"];
/// Tests that cannot pass: valgrind starts a program that is not there, and only then finds out.
const SKIPPED_TESTS: [&str; 1] = ["a_compiler_that_is_not_there_is_an_error_with_the_remedy"];
/// The suite against the backend in C, in a program of its own that this test has valgrind watch.
const C_BACKEND_TEST: [&str; 7] =
    ["test", "--package", "runtime-c-backend-tests", "--test", "library", "--", "--ignored"];
/// Kernels are compiled for the machine at hand, but valgrind knows no AVX-512: the last `-march` wins.
const COMPILER: &str = "#!/bin/sh\nexec cc \"$@\" -march=x86-64-v3\n";

/// A test program, and the folder of its package, where it runs.
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
    let compiler = compiler(&workspace.harden("valgrind"))?;
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
    // What a library that stays loaded keeps in its statics is reachable, and no leak.
    command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    command.arg(format!("--suppressions={}", workspace.root.join("xtask/valgrind.supp").display()));
    command.arg(&program.executable).arg("--test-threads=1");
    SKIPPED_TESTS.iter().for_each(|name| {
        command.args(["--skip", name]);
    });
    run(quick(&mut command).current_dir(&program.folder).env("CC", compiler))
}

/// Writes the C compiler that the host backend is told to use.
fn compiler(folder: &Path) -> Outcome<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join("cc");
    fs::write(&path, COMPILER)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// Builds the test programs; cargo puts a hash into the names of their files, and tells them.
fn programs(workspace: &Workspace) -> Outcome<Vec<Program>> {
    let mut build = workspace.cargo(&["test", "--quiet", "--no-run", "--message-format", "json"]);
    PACKAGES.iter().for_each(|package| {
        build.args(["--package", package]);
    });
    let messages = output(&mut build)?;
    let programs = messages.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?));
    let programs: Vec<_> =
        programs.filter(|program| !EXCLUDED_PROGRAMS.contains(&program.name.as_str())).collect();
    if programs.is_empty() { Err(Failure::new("cargo tells of no test program")) } else { Ok(programs) }
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
    fn a_test_program_is_known_by_cargos_message() {
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
