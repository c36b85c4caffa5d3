//! Runs tools of a toolchain.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use runtime_core::backend::{OUTPUT_BYTES, Output, Sandbox, SandboxPolicy, find_in_path, run_program};
use runtime_core::{Error, ErrorKind, Result};

/// For one run of a tool.
const DEADLINE: Duration = Duration::from_secs(120);

/// Whether a program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    find_in_path(program).is_some()
}

/// Runs a command of a board file in `folder`; `{elf}` in it is the path of the image. It is killed at a deadline. An empty one
/// does nothing.
///
/// # Errors
/// As for [`run`]; `Failed`, with what it wrote.
pub(crate) fn run_command(words: &[String], image: &Path, folder: &Path, deadline: Duration) -> Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let image = image.display().to_string();
    let mut command = Command::new(program);
    command.args(arguments.iter().map(|argument| argument.replace("{elf}", &image)));
    let output = run_within(&mut command, folder, deadline)?;
    let (status, log) = (output.status, output.text());
    if status.success() {
        return Ok(());
    }
    let reason = match log.is_empty() {
        true => format!("it ended with {status} and no message"),
        false => log,
    };
    Err(Error::new(ErrorKind::Failed, format!("{}: {reason}", words.join(" "))))
}

/// Runs a tool in `folder`, and returns whether it succeeded, with what it wrote. It is killed at a deadline.
///
/// # Errors
/// `Unavailable` if it cannot be started; `Timeout`; `Io`.
pub(super) fn run(command: &mut Command, folder: &Path) -> Result<(bool, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    Ok(told(&run_within(command, folder, DEADLINE)?, &program, folder))
}

/// Whether a tool has succeeded, and what it wrote.
fn told(output: &Output, program: &str, folder: &Path) -> (bool, String) {
    let (status, text) = (output.status, output.text());
    if !status.success() && text.is_empty() {
        // On a full disk, there is no room for the message either.
        let reason = format!("{program} ended with {status} and no message; is {} full?", folder.display());
        return (false, reason);
    }
    (status.success(), text)
}

/// As [`run`], of a compiler, which may read `readable` besides `folder`. It runs in the sandbox if this process compiles code that it
/// does not trust.
///
/// # Errors
/// As for [`run`].
pub(super) fn compile(command: &mut Command, folder: &Path, readable: &[PathBuf]) -> Result<(bool, String)> {
    let program = command.get_program().to_string_lossy().into_owned();
    let words: Vec<String> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let sandbox = Sandbox::new().compiler([&*program]).write(folder).read_existing(readable.iter().cloned());
    let sandbox = sandbox.flags(words.iter().map(String::as_str), folder);
    command.current_dir(folder).env("LC_ALL", "C").env("TMPDIR", folder);
    let output = sandbox.run(SandboxPolicy::of_process()?, command, (DEADLINE, OUTPUT_BYTES))?;
    Ok(told(&output, &program, folder))
}

fn run_within(command: &mut Command, folder: &Path, deadline: Duration) -> Result<Output> {
    run_program(command.current_dir(folder).env("LC_ALL", "C"), deadline, OUTPUT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_always_has_a_message() {
        let folder = tempfile::tempdir().unwrap();
        let run = |script: &str| run(Command::new("sh").args(["-c", script]), folder.path()).unwrap();
        assert_eq!(run("echo words; exit 1"), (false, "words".to_owned()));
        assert_eq!(run("exit 0"), (true, String::new()));
        let (succeeded, message) = run("exit 3");
        assert!(!succeeded && message.contains("exit status: 3") && message.contains("full?"), "{message}");
        let words = ["sh", "-c", "exit 3"].map(str::to_owned);
        let error = run_command(&words, Path::new("x"), folder.path(), DEADLINE).unwrap_err();
        assert!(error.message().ends_with("it ended with exit status: 3 and no message"), "{error}");
    }
}
