//! Runs other programs.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a task failed: one line for the user.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// The result of a task.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Prints `command` and runs it with its output on the terminal.
pub(crate) fn run(command: &mut Command) -> Outcome {
    eprintln!("+ {}", line(command));
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if status.success() { Ok(()) } else { Err(Failure(format!("`{}` ended with {status}", line(command)))) }
}

/// Runs `command` without printing anything; a failure ends with what it wrote to standard error.
pub(crate) fn quiet(command: &mut Command) -> Outcome {
    let output = command.output().map_err(|error| not_started(command, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(Failure(format!("`{}` ended with {}: {}", line(command), output.status, reason.trim())))
}

/// Runs `command` as [`run`] does and returns its exit code; `None` if a signal ended it.
pub(crate) fn run_for_code(command: &mut Command) -> Outcome<Option<i32>> {
    eprintln!("+ {}", line(command));
    Ok(command.status().map_err(|error| not_started(command, &error))?.code())
}

/// Runs `command` and returns its standard output; its standard error goes to the terminal.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        return Err(Failure(format!("`{}` ended with {}", line(command), output.status)));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure(format!("`{}` wrote output that is not UTF-8", line(command))))
}

/// Whether `PATH` has a program of this name.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn line(command: &Command) -> String {
    // Cargo passes its full path, which is noise here.
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure(format!("`{}` cannot be run: {error}", line(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_named_with_its_arguments() {
        let failure = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(failure.to_string().contains("sh -c exit 3"), "{failure}");
        assert!(failure.to_string().contains('3'), "{failure}");
    }

    #[test]
    fn a_quiet_failure_has_the_reason() {
        let failure = quiet(Command::new("sh").args(["-c", "echo no space >&2; exit 1"])).unwrap_err();
        assert!(failure.to_string().ends_with(": no space"), "{failure}");
        assert!(quiet(&mut Command::new("true")).is_ok());
    }

    #[test]
    fn a_missing_program_is_a_failure_and_not_a_panic() {
        assert!(run(&mut Command::new("no-such-program-anywhere")).is_err());
        assert!(!is_installed("no-such-program-anywhere"));
        assert!(is_installed("sh"));
    }
}
