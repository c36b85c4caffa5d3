//! Directories of a user who has never heard of this repository, and the commands that the user runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;
use test_process::finish;

use crate::LIST;

/// As long as a release build takes on a slow machine that does other things, too.
const DEADLINE: Duration = Duration::from_secs(1800);

/// A home directory and a working directory, both empty.
pub(crate) struct Machine(tempfile::TempDir);

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for folder in ["home", "work"] {
            fs::create_dir(machine.path(folder)).unwrap();
        }
        machine
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `program` in the working directory, with no environment but `PATH` and `HOME`.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.path("work")).env_clear().env("HOME", self.path("home"));
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
    }

    /// The standard output of a task of this repository, run in the user's home.
    pub(crate) fn xtask(&self, arguments: &[&str]) -> Result<String, Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        // Where cargo and rustup look if nothing is set; the home directory is another one here.
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(variable).is_none() {
                command.env(variable, home.join(folder));
            }
        }
        command.args(arguments);
        // Where files go does not depend on how they are compiled, and the tests have been built.
        if !test_process::is_complete() {
            command.arg("--debug");
        }
        run(command.env("HOME", self.path("home")).current_dir(root()))
    }

    /// Runs the command `program`, which must list the host and run a kernel on it.
    pub(crate) fn check_command(&self, program: &Path) -> Result<(), Failed> {
        let devices = run(self.command(program).arg("devices"))?;
        check(
            devices.lines().any(|line| line.starts_with("host:0") && line.contains("available")),
            &devices,
        )?;
        check(!devices.contains("null"), &devices)?;
        let kernel = root().join("kernels/vector_add.toml");
        run(self.command(program).arg("run").arg(kernel).args(["--device", "host"])).map(|_| ())
    }

    /// Runs a program that depends on `runtime-core` only; it must find backends in `directory` and nowhere else.
    pub(crate) fn check_program_finds(&self, directory: &Path) -> Result<(), Failed> {
        let program = self.path("work/program");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let found = run(self.command(&program).arg(LIST))?;
        let host = format!("host {}/libruntime_host", directory.display());
        check(found.lines().any(|line| line.starts_with(&host)), &found)?;
        check(found.lines().all(|line| line.contains(&*directory.to_string_lossy())), &found)
    }
}

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The standard output of a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Result<String, Failed> {
    let line = format!("{command:?}");
    Ok(finish(command, DEADLINE)?.success().map_err(|failure| format!("{line}: {failure}"))?)
}

/// Fails with `text` unless `condition` holds.
pub(crate) fn check(condition: bool, text: &str) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(text.to_owned().into()) }
}

/// Checks a list of files, relative to the prefix: one or more backends of real devices, and `others`.
pub(crate) fn check_files(files: &[String], others: &[&str]) -> Result<(), Failed> {
    let (backends, rest): (Vec<_>, Vec<_>) =
        files.iter().map(String::as_str).partition(|file| file.starts_with("lib/runtime/libruntime_"));
    check(rest == others, &format!("{rest:?} instead of {others:?}"))?;
    let backend = |name: &str| backends.iter().any(|file| file.contains(&format!("libruntime_{name}.")));
    check(backend("host") && !backend("null"), &format!("{backends:?}"))
}

/// Whether a program is in `PATH`.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Why the tests that build cannot run, or need not; `RUNTIME_REQUIRE=package` says that they must.
pub(crate) fn missing() -> Option<String> {
    if test_process::required("package") {
        return None;
    }
    let program =
        ["cargo-deb", "dpkg-deb", "pkg-config"].into_iter().find(|program| !is_installed(program))?;
    Some(format!("{program} is missing; the README's table of requirements has the remedy"))
}
