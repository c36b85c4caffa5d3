//! A set-uid or set-gid program ignores its environment, and files that the user may not read are reported. Needs root, to
//! run programs as other users.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "integration/fixture.rs"]
#[allow(dead_code, reason = "the other tests use all of it")]
mod fixture;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use fixture::Fixture;

/// The user that starts the programs: `nobody`.
const USER: u32 = 65534;
/// The user or group of set-uid and set-gid programs: `daemon`.
const OWNER: u32 = 1;

/// Folders that the environment names, and the backend in each.
const PLACES: [(&str, &str); 2] = [("added", "added"), ("home/.local/lib/runtime", "users")];

type Case = fn(&Program) -> Result<(), Failed>;

const CASES: [(&str, Case); 5] = [
    ("an_ordinary_program_believes_its_environment", |program| program.believes(0o755)),
    ("a_set_uid_program_ignores_its_environment", |program| program.ignores(0o4755)),
    ("a_set_gid_program_ignores_its_environment", |program| program.ignores(0o2755)),
    ("a_library_that_the_user_may_not_read", |program| {
        program.chmod("added/libruntime_added.so", 0o600);
        let path = program.path("added/libruntime_added.so");
        program.refuses(&path, "Permission denied")
    }),
    ("a_directory_that_the_user_may_not_read", |program| {
        program.chmod("added", 0o700);
        program.refuses(&program.path("added"), "Permission denied")
    }),
];

fn main() -> ExitCode {
    let trials = CASES.map(|(name, case)| Trial::ignorable_test(name, move || outcome(case)));
    // Sequentially: a program that a child of another thread still has open for writing cannot be run.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

fn outcome(case: Case) -> Result<Completion, Failed> {
    match Program::new() {
        Ok(program) => case(&program).map(|()| Completion::Completed),
        Err(reason) if test_process::required("set-uid") => Err(reason.into()),
        Err(reason) => Ok(Completion::ignored_with(reason)),
    }
}

/// A copy of `loader-report` owned by `daemon`, with a backend in each location that the environment can name.
struct Program(Fixture);

impl Program {
    /// Why this machine cannot run it as two users.
    fn new() -> Result<Self, String> {
        let program = Self(Fixture::new());
        program.chmod("", 0o755);
        for (folder, name) in PLACES {
            fs::create_dir_all(program.path(folder)).unwrap();
            let built = program.0.backend(name, &[&format!("NAME=\"{name}\"")]);
            fs::rename(built, program.path(folder).join(format!("libruntime_{name}.so"))).unwrap();
        }
        fs::create_dir(program.path("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_loader-report"), program.path("bin/program")).unwrap();
        chown(program.path("bin/program"), Some(OWNER), Some(OWNER))
            .map_err(|error| format!("only root can create set-uid programs: {error}"))?;
        program.chmod("bin/program", 0o6755);
        let expected = format!("{USER} {OWNER} {USER} {OWNER}");
        match program.lines(&["user"]) {
            Ok(lines) if lines == [expected] => Ok(program),
            Ok(lines) => Err(format!("set-uid bits have no effect here: {lines:?}")),
            Err(reason) => Err(reason),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs it as `nobody`, with an environment that names all the backends.
    fn lines(&self, arguments: &[&str]) -> Result<Vec<String>, String> {
        let mut command = Command::new(self.path("bin/program"));
        command.args(arguments).env_clear().current_dir("/").uid(USER).gid(USER);
        command.env("HOME", self.path("home")).env("RUNTIME_BACKEND_PATH", self.path("added"));
        let output = command.output().map_err(|error| format!("a program of another user: {error}"))?;
        let text = String::from_utf8(output.stdout).unwrap();
        match output.status.success() {
            true => Ok(text.lines().map(str::to_owned).collect()),
            false => Err(format!("{}{text}{}", output.status, String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Checks that the environment, and the home directory that it names, are searched.
    fn believes(&self, mode: u32) -> Result<(), Failed> {
        self.chmod("bin/program", mode);
        let lines = self.lines(&[])?;
        let loaded = |name: &str| lines.iter().any(|line| line.starts_with("loaded") && line.contains(name));
        match loaded("libruntime_added.so") && loaded("libruntime_users.so") {
            true => Ok(()),
            false => Err(format!("{lines:#?}").into()),
        }
    }

    /// Checks that nothing is loaded from locations that the user controls, and that the report gives the reason.
    fn ignores(&self, mode: u32) -> Result<(), Failed> {
        self.believes(0o755)?;
        self.chmod("bin/program", mode);
        let lines = self.lines(&[])?;
        let folder = self.path("").display().to_string();
        let said = lines.iter().any(|line| {
            line.starts_with("failed") && line.contains("ignored: the program runs with elevated privileges")
        });
        match said && !lines.iter().any(|line| line.contains(&folder)) {
            true => Ok(()),
            false => Err(format!("{lines:#?}").into()),
        }
    }

    /// Checks that `path` has a line with the reason, and that the rest is loaded nevertheless.
    fn refuses(&self, path: &std::path::Path, reason: &str) -> Result<(), Failed> {
        self.chmod("bin/program", 0o755);
        let lines = self.lines(&[])?;
        let (path, users) = (path.display().to_string(), "libruntime_users.so");
        let refused =
            |line: &String| line.starts_with("failed") && line.contains(&path) && line.contains(reason);
        let loaded = |line: &String| line.starts_with("loaded") && line.contains(users);
        match lines.iter().any(refused) && lines.iter().any(loaded) {
            true => Ok(()),
            false => Err(format!("{lines:#?}").into()),
        }
    }
}
