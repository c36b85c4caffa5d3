//! Checks that need more tools or time than the tests: Miri, valgrind, the thread sanitizer, fuzzing, fault injection, mutation
//! testing. Their builds are below `target/harden`.

mod faults;
mod fuzz;
mod mutants;
mod valgrind;

use std::path::PathBuf;
use std::process::Command;

pub(crate) use faults::faults;
pub(crate) use fuzz::{check_targets as check_fuzz_targets, fuzz};
pub(crate) use mutants::mutants;
pub(crate) use valgrind::valgrind;

use crate::process::{Failure, Outcome, is_installed, output, run};
use crate::workspace::Workspace;

/// The toolchain for Miri, the sanitizers and the fuzzer.
const NIGHTLY: &str = "nightly";
/// Stops at the first race, and returns null for impossible allocations, as without the sanitizer.
const TSAN_OPTIONS: &str = "halt_on_error=1 exitcode=66 allocator_may_return_null=1";

/// The packages tested under the thread sanitizer.
const SANITIZED: [&str; 8] = [
    "runtime-core",
    "runtime-null",
    "runtime-host",
    "runtime-kernel",
    "runtime-harness",
    "runtime-cli",
    "runtime-loader-tests",
    "runtime-conformance",
];

/// Runs the tests of core and of the null backend under Miri.
pub(crate) fn miri() -> Outcome {
    let nightly = Nightly::with(&["miri", "rust-src"])?;
    let workspace = Workspace::read()?;
    // Excludes safe arithmetic whose loops take Miri hours.
    let files = ["--lib", "--", "--skip", "evaluate::"];
    nightly.miri(&workspace, "-Zmiri-disable-isolation", &["runtime-core"], &files)?;
    // Isolated: with Miri's virtual clock, timeouts count executed instructions and not Miri's slowness.
    let isolated = "-Zmiri-isolation-error=hide";
    nightly.miri(&workspace, isolated, &["runtime-null"], &["--lib"])?;
    let tests = [
        "--test=integration",
        "--",
        "--skip=fusion::",
        "under_miri::",
        "drop_orders::",
        "dlpack::",
        "lowering::",
    ];
    nightly.miri(&workspace, isolated, &["runtime-core"], &tests)
}

/// Runs the tests of the sanitized packages under the thread sanitizer.
pub(crate) fn tsan() -> Outcome {
    let nightly = Nightly::with(&["rust-src"])?;
    let workspace = Workspace::read()?;
    let triple = nightly.host()?;
    let folder = workspace.harden_dir("tsan");
    let build = |task: &str| {
        let mut cargo = nightly.cargo(&workspace);
        cargo.args([task, "-Zbuild-std", "--target", &triple, "--target-dir"]).arg(&folder);
        // `-rdynamic`: backends resolve the sanitizer's functions in the program that loads them.
        cargo.env("RUSTFLAGS", "-Zsanitizer=thread -Clink-arg=-rdynamic");
        cargo
    };
    let mut backends = build("build");
    for backend in workspace.backends() {
        backends.args(["--package", &backend.package]);
    }
    run(&mut backends)?;
    let mut tests = build("test");
    SANITIZED.iter().for_each(|package| {
        tests.args(["--package", package]);
    });
    // Fault injection is timing-sensitive and has its own task.
    tests.args(["--lib", "--bins", "--tests", "--no-fail-fast", "--", "--skip", "first_and_last_calls"]);
    run(without_backtraces(&mut tests).env("TSAN_OPTIONS", TSAN_OPTIONS).env("RUNTIME_REQUIRE", "host,null"))
}

/// The nightly toolchain.
struct Nightly;

impl Nightly {
    /// Finds the toolchain and its `components`; installs what is missing where that is allowed.
    fn with(components: &[&str]) -> Outcome<Self> {
        require("rustup", "see rustup.rs")?;
        let installed = Command::new("rustup")
            .args(["component", "list", "--installed", "--toolchain", NIGHTLY])
            .output()
            .map_err(|error| Failure::new(format!("rustup: {error}")))?;
        if !installed.status.success() {
            install(Command::new("rustup").args(["toolchain", "install", NIGHTLY, "--profile", "minimal"]))?;
        }
        let listed = String::from_utf8_lossy(&installed.stdout);
        let missing = |component: &&&str| !listed.lines().any(|line| line.starts_with(**component));
        let missing: Vec<_> = components.iter().filter(missing).collect();
        if !missing.is_empty() {
            let mut rustup = Command::new("rustup");
            install(rustup.args(["component", "add", "--toolchain", NIGHTLY]).args(missing))?;
        }
        Ok(Self)
    }

    /// A program of the toolchain, independent of the toolchain that runs xtask.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("rustup");
        command.args(["run", NIGHTLY, name]).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        command
    }

    fn cargo(&self, workspace: &Workspace) -> Command {
        let mut command = self.program("cargo");
        command.current_dir(&workspace.root);
        command
    }

    /// The target triple of this machine.
    fn host(&self) -> Outcome<String> {
        let version = output(self.program("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(str::to_owned).ok_or_else(|| Failure::new("`rustc -vV` names no host"))
    }

    fn miri(&self, workspace: &Workspace, flags: &str, packages: &[&str], tests: &[&str]) -> Outcome {
        let mut cargo = self.cargo(workspace);
        cargo.args(["miri", "test", "--target-dir"]).arg(workspace.harden_dir("miri"));
        packages.iter().for_each(|package| {
            cargo.args(["--package", package]);
        });
        // parking_lot casts integers to pointers, which Miri accepts with a warning.
        run(without_backtraces(&mut cargo)
            .args(tests)
            .env("MIRIFLAGS", format!("{flags} -Zmiri-permissive-provenance")))
    }
}

impl Workspace {
    /// The build directory of a task.
    fn harden_dir(&self, task: &str) -> PathBuf {
        self.root.join("target/harden").join(task)
    }
}

/// Disables backtraces of expected panics: resolving symbols under these tools exceeds the tests' timeouts.
fn without_backtraces(command: &mut Command) -> &mut Command {
    command.env("RUST_BACKTRACE", "0")
}

/// Fails with `remedy` if `program` is missing.
fn require(program: &str, remedy: &str) -> Outcome {
    if is_installed(program) { Ok(()) } else { Err(Failure::new(format!("{program} is missing: {remedy}"))) }
}

/// Runs an install command in CI; elsewhere asks the user to run it.
fn install(command: &mut Command) -> Outcome {
    if std::env::var_os("CI").is_some() {
        return run(command);
    }
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    Err(Failure::new(format!("a required tool is missing; run `{}` and try again", words.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_with_the_remedy() {
        let failure = require("no-such-program", "install it").unwrap_err();
        assert_eq!(failure.to_string(), "no-such-program is missing: install it");
        assert!(require("sh", "").is_ok());
    }
}
