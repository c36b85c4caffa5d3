//! Checks that need more than the tests themselves: Miri, valgrind, the thread sanitizer, fuzzing, refused calls. All builds that differ
//! from the ordinary one are below `target/harden`.

mod faults;
mod fuzz;
mod mutants;
mod valgrind;

use std::path::PathBuf;
use std::process::Command;

pub(crate) use faults::faults;
pub(crate) use fuzz::fuzz;
pub(crate) use mutants::mutants;
pub(crate) use valgrind::valgrind;

use crate::process::{Failure, Outcome, is_installed, output, run};
use crate::workspace::Workspace;

/// The toolchain of Miri, the sanitizers and the fuzzer.
const NIGHTLY: &str = "nightly";
/// The first race ends a program; an allocation that cannot be is an error of the program's, as elsewhere.
const TSAN_OPTIONS: &str = "halt_on_error=1 exitcode=66 allocator_may_return_null=1";

/// What runs under the thread sanitizer.
const SANITIZED: [&str; 7] = [
    "runtime-core",
    "runtime-null",
    "runtime-host",
    "runtime-kernel",
    "runtime-cli",
    "runtime-loader-tests",
    "runtime-conformance",
];

/// Runs core and the null backend, compiled into one program, under Miri: undefined behaviour, races, leaks.
pub(crate) fn miri() -> Outcome {
    let nightly = Nightly::with(&["miri", "rust-src"])?;
    let workspace = Workspace::read()?;
    // Arithmetic without unsafe code, with loops that take Miri hours, is left out.
    let files = ["--lib", "--", "--skip", "evaluate::"];
    nightly.miri(&workspace, "-Zmiri-disable-isolation", &["runtime-core"], &files)?;
    // Isolated, so that the clock is Miri's own: time passes by what is done, not by how slowly.
    let isolated = "-Zmiri-isolation-error=hide";
    nightly.miri(&workspace, isolated, &["runtime-null"], &["--lib"])?;
    let tests = ["--test=under_miri", "--test=drop_orders", "--test=dlpack", "--test=lowering"];
    nightly.miri(&workspace, isolated, &["runtime-core"], &tests)
}

/// Runs core, the null and host backends, the command, the loader, and the conformance suite under the thread sanitizer.
pub(crate) fn tsan() -> Outcome {
    let nightly = Nightly::with(&["rust-src"])?;
    let workspace = Workspace::read()?;
    let triple = nightly.host()?;
    let folder = workspace.harden("tsan");
    let build = |task: &str| {
        let mut cargo = nightly.cargo(&workspace);
        cargo.args([task, "-Zbuild-std", "--target", &triple, "--target-dir"]).arg(&folder);
        // Backends call the sanitizer's functions in the program that loads them.
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
    // The sweep of faults watches the clock, and has a task of its own.
    tests.args(["--lib", "--bins", "--tests", "--no-fail-fast", "--", "--skip", "first_and_last_calls"]);
    run(quick(&mut tests).env("TSAN_OPTIONS", TSAN_OPTIONS).env("RUNTIME_REQUIRE", "host,null"))
}

/// The nightly toolchain.
struct Nightly;

impl Nightly {
    /// Finds the toolchain with `components`; installs what is missing where that is allowed.
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

    /// A program of the toolchain, whatever toolchain runs this one.
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

    /// The triple of this machine.
    fn host(&self) -> Outcome<String> {
        let version = output(self.program("rustc").arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        host.map(str::to_owned).ok_or_else(|| Failure::new("`rustc -vV` names no host"))
    }

    fn miri(&self, workspace: &Workspace, flags: &str, packages: &[&str], tests: &[&str]) -> Outcome {
        let mut cargo = self.cargo(workspace);
        cargo.args(["miri", "test", "--target-dir"]).arg(workspace.harden("miri"));
        packages.iter().for_each(|package| {
            cargo.args(["--package", package]);
        });
        // parking_lot casts integers to pointers, which Miri accepts and warns of.
        run(quick(&mut cargo).args(tests).env("MIRIFLAGS", format!("{flags} -Zmiri-permissive-provenance")))
    }
}

impl Workspace {
    /// Where a task builds, apart from all others.
    fn harden(&self, task: &str) -> PathBuf {
        self.root.join("target/harden").join(task)
    }
}

/// Leaves out the names in the backtraces of expected panics: to find them takes longer here than the tests wait.
fn quick(command: &mut Command) -> &mut Command {
    command.env("RUST_BACKTRACE", "0")
}

/// Fails with what to do if `program` is missing.
fn require(program: &str, remedy: &str) -> Outcome {
    if is_installed(program) { Ok(()) } else { Err(Failure::new(format!("{program} is missing: {remedy}"))) }
}

/// Runs an installing command in CI; elsewhere it is the user's to run.
fn install(command: &mut Command) -> Outcome {
    if std::env::var_os("CI").is_some() {
        return run(command);
    }
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    Err(Failure::new(format!("something is missing; run `{}` and try again", words.join(" "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_the_remedy() {
        let failure = require("no-such-program", "install it").unwrap_err();
        assert_eq!(failure.to_string(), "no-such-program is missing: install it");
        assert!(require("sh", "").is_ok());
    }
}
