//! Test programs: which there are, running them side by side, and what they print.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::built::Executable;
use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// A program that runs longer has failed. The slowest takes some five minutes on two cores that run another one, too.
const TIME_LIMIT: Duration = Duration::from_secs(1800);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How many of the slowest programs are listed.
const LISTED: usize = 15;
/// The lines shown again of each failed test.
const FAILURE_LINES: usize = 24;
/// Programs that take long: they start first, so that the others fill the time beside them.
const SLOW: &[&str] = &[
    "docs tutorial",
    "documentation",
    "kernel-fuzz cases",
    "mppa trials",
    "opencl per_driver",
    "opencl trials",
    "portable trials",
    "runtime-cli integration",
    "runtime-cli trials",
    "runtime-embedded boards",
    "xtask six_steps",
];
/// Programs that run when no other does, with the reason.
const ALONE: &[(&str, &str)] =
    &[("xtask installation", "installs a Debian package, whose backends every other program would find")];

/// A test program, or cargo for the tests in documentation.
pub(super) struct Program {
    name: String,
    command: Command,
}

/// How a program ended.
pub(super) struct Finished {
    name: String,
    time: Duration,
    output: String,
    /// Why it failed, unless its output says so.
    failure: Option<String>,
}

impl Program {
    pub(super) fn set_variable(&mut self, name: &str, value: &str) {
        self.command.env(name, value);
    }

    fn is_in(&self, names: &[&str]) -> bool {
        names.contains(&&*self.name)
    }
}

impl From<Executable> for Program {
    fn from(built: Executable) -> Self {
        let package = built.folder.file_name().unwrap_or_default().to_string_lossy();
        let what = if built.kind == "test" { "" } else { "unit tests of " };
        let mut command = Command::new(built.path);
        // As cargo sets them.
        command.current_dir(&built.folder).env("CARGO_MANIFEST_DIR", &built.folder);
        Self { name: format!("{package} {what}{}", built.name), command }
    }
}

/// The tests in documentation. Cargo builds and runs them.
pub(super) fn documentation(workspace: &Workspace) -> Program {
    let command = workspace.cargo(&["test", "--quiet", "--workspace", "--doc", "--no-fail-fast"]);
    Program { name: "documentation".to_owned(), command }
}

/// Runs the programs, as many side by side as there are processors, and prints the output of each when it has ended.
pub(super) fn run_all(programs: Vec<Program>, folder: &Path) -> Outcome<Vec<Finished>> {
    fs::create_dir_all(folder)?;
    let alone: Vec<_> = ALONE.iter().map(|(name, _)| *name).collect();
    let (alone, mut shared): (Vec<_>, Vec<_>) =
        programs.into_iter().partition(|program| program.is_in(&alone));
    shared.sort_by_key(|program| !program.is_in(SLOW));
    let jobs = thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let mut finished = run_beside(shared, jobs, folder);
    finished.extend(run_beside(alone, 1, folder));
    Ok(finished)
}

fn run_beside(programs: Vec<Program>, jobs: usize, folder: &Path) -> Vec<Finished> {
    let (queue, finished) = (Mutex::new(VecDeque::from(programs)), Mutex::new(Vec::new()));
    let next = || queue.lock().ok()?.pop_front();
    thread::scope(|scope| {
        for job in 0..jobs {
            let (next, finished) = (&next, &finished);
            scope.spawn(move || {
                while let Some(program) = next() {
                    let ended = run_one(program, &folder.join(format!("{job}.txt")));
                    println!("\n     Running {} ({} s)\n{}", ended.name, ended.time.as_secs(), ended.output);
                    if let Ok(mut finished) = finished.lock() {
                        finished.push(ended);
                    }
                }
            });
        }
    });
    finished.into_inner().unwrap_or_default()
}

fn run_one(mut program: Program, output: &Path) -> Finished {
    let started = Instant::now();
    let status = wait(&mut program.command, output);
    let output = fs::read(output).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let failure = match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("ended with {status}")),
        Err(failure) => Some(failure.to_string()),
    };
    Finished { name: program.name, time: started.elapsed(), output: output.unwrap_or_default(), failure }
}

fn wait(command: &mut Command, output: &Path) -> Outcome<ExitStatus> {
    let file = File::create(output)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn()?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if started.elapsed() > TIME_LIMIT {
            child.kill()?;
            child.wait()?;
            return Err(Failure::new(format!("had not ended after {} s", TIME_LIMIT.as_secs())));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The numbers of tests that passed, failed and were ignored. A program that fails without a failed test counts as one.
pub(super) fn totals(programs: &[Finished]) -> (usize, usize, usize) {
    programs.iter().fold((0, 0, 0), |sum, program| {
        let (passed, failed, ignored) = counts(&program.output);
        let failed = failed.max(usize::from(program.failure.is_some()));
        (sum.0 + passed, sum.1 + failed, sum.2 + ignored)
    })
}

/// The sums over the lines `test result: ok. 2 passed; 0 failed; 1 ignored; …`.
fn counts(output: &str) -> (usize, usize, usize) {
    let lines = output.lines().filter_map(|line| line.strip_prefix("test result: "));
    lines.fold((0, 0, 0), |sum, line| {
        let count = |word: &str| {
            let part = line.split([';', '.']).find_map(|part| part.trim().strip_suffix(word));
            part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
        };
        (sum.0 + count("passed"), sum.1 + count("failed"), sum.2 + count("ignored"))
    })
}

/// The slowest programs, and the failures: they are thousands of lines further up.
pub(super) fn report(programs: &[Finished]) -> String {
    let mut by_time: Vec<_> = programs.iter().collect();
    by_time.sort_by_key(|program| std::cmp::Reverse(program.time));
    let mut lines = vec!["slowest programs:".to_owned()];
    let slowest = by_time.iter().take(LISTED);
    lines.extend(slowest.map(|program| format!("{:5} s  {}", program.time.as_secs(), program.name)));
    for program in programs {
        if let Some(failure) = &program.failure {
            lines.push(format!("FAILED  {}: {failure}", program.name));
            lines.extend(failure_lines(&program.output).map(str::to_owned));
        }
    }
    lines.join("\n")
}

/// The lines of a test runner that name a failed test, and the first lines of its output.
fn failure_lines(output: &str) -> impl Iterator<Item = &str> {
    let mut left = 0;
    output.lines().filter(move |line| {
        if line.starts_with("---- ") {
            left = FAILURE_LINES;
        } else if line.starts_with("failures:") || line.starts_with("test result:") {
            left = 0;
        }
        let is_chosen = left > 0 || (line.starts_with("test ") && line.ends_with("FAILED"));
        left = left.saturating_sub(1);
        is_chosen
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn program(script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program { name: format!("a {script}"), command }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_failed_test_is_named_with_its_output() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b ----\nb is wrong\n\n\
                      failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed";
        let chosen: Vec<_> = failure_lines(output).collect();
        assert_eq!(chosen, ["test b ... FAILED", "---- b ----", "b is wrong", ""]);
        let long = format!("---- c ----\n{}", "words\n".repeat(100));
        assert_eq!(failure_lines(&long).count(), FAILURE_LINES);
    }

    #[test]
    fn results_are_summed_over_programs() {
        let folder = folder("totals");
        let line = "echo 'test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out'";
        let programs = vec![program(&format!("{line}; exit 101")), program("kill -9 $$"), program("true")];
        let results = run_all(programs, &folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(totals(&results), (3, 2, 2));
        let report = report(&results);
        assert!(report.contains("a kill -9 $$: ended with signal: 9"), "{report}");
        assert!(!report.contains("FAILED  a true"), "{report}");
    }

    #[test]
    fn programs_are_named_by_package_and_target() {
        let name = |kind: &str| {
            let (path, folder) = (PathBuf::from("/t/disks-0f"), PathBuf::from("/w/runtime-core"));
            let (kind, name) = (kind.to_owned(), "disks".to_owned());
            Program::from(Executable { path, folder, kind, name, is_test: true }).name
        };
        assert_eq!(name("test"), "runtime-core disks");
        assert_eq!(name("lib"), "runtime-core unit tests of disks");
    }
}
