//! Follows `docs/tutorial.md` verbatim, in an empty directory beside a link to this repository.
//!
//! Only three things differ: cargo is offline, so it takes the versions of this repository's `Cargo.lock`; it builds
//! in the target directory of this repository, where other packages are built already; and it builds them as this workspace does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use test_process::{copy_built, finish, required};

/// A build on a slow machine that does other things, too.
const DEADLINE: Duration = Duration::from_secs(1800);
/// This workspace's profile for naga: with any other, cargo would compile naga again.
const PROFILE: &str = "[profile.dev.package.naga]\nopt-level = 2\n";
/// What each device computes, and so the end of its line.
const RESULT: &str = ": [1.0, 4.0, 9.0]";

/// The blocks of a language, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    page.split(&opening).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Where cargo builds the package. It lies in another place each time, so nothing could be built again from what is there.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial")
}

/// Runs a script of the tutorial and returns its standard output.
fn shell(folder: &Path, script: &str) -> String {
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", script]).current_dir(folder).env("CARGO_NET_OFFLINE", "true");
    bash.env("CARGO_TARGET_DIR", target()).env("CARGO_PROFILE_DEV_DEBUG", "false");
    bash.env_remove("RUNTIME_BACKENDS").env_remove("RUNTIME_BACKEND_PATH");
    finish(&mut bash, DEADLINE).unwrap().success().unwrap()
}

#[test]
fn the_tutorial_runs_a_kernel_on_every_device() {
    let page = fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let (scripts, programs) = (blocks(&page, "sh"), blocks(&page, "rust"));
    let ([create, run], [program]) = (&scripts[..], &programs[..]) else {
        panic!("two scripts and a program are expected: {scripts:?} {programs:?}");
    };
    assert!(program.lines().count() <= 30, "more than 30 lines:\n{program}");

    // Not below the repository, whose workspace would take in the package.
    let folder = tempfile::tempdir().unwrap();
    let _ = fs::remove_dir_all(target());
    symlink(root(), folder.path().join("runtime")).unwrap();
    fs::create_dir(folder.path().join(".cargo")).unwrap();
    fs::write(folder.path().join(".cargo/config.toml"), PROFILE).unwrap();
    copy_built(&target()).unwrap();
    shell(folder.path(), create);
    let project = folder.path().join("squares");
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    fs::write(project.join("src/main.rs"), program).unwrap();
    let output = shell(&project, run);
    check_lines(&output);
    fs::remove_dir_all(target()).unwrap();
}

/// Each device has computed the squares; the host is there, and the drivers that this machine must have.
fn check_lines(output: &str) {
    let computed = |target: &str| {
        output.lines().any(|line| line.starts_with(&format!("{target}:0 ")) && line.ends_with(RESULT))
    };
    for target in ["host", "opencl", "vulkan"] {
        assert!(computed(target) || (target != "host" && !required(target)), "no {target}:0:\n{output}");
    }
    let wrong: Vec<_> =
        output.lines().filter(|line| line.contains(": [") && !line.ends_with(RESULT)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
