//! Runs tools of a toolchain.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runtime_core::{Error, ErrorKind, Result};

/// For one run of a tool.
const DEADLINE: Duration = Duration::from_secs(120);

/// Whether a program is in `PATH`.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a command of a board file in `folder`; `{elf}` in it is the path of the image. An empty one does nothing.
///
/// # Errors
/// As for [`run`]; `Failed`, with what it wrote.
pub(crate) fn run_command(words: &[String], image: &Path, folder: &Path) -> Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let image = image.display().to_string();
    let mut command = Command::new(program);
    command.args(arguments.iter().map(|argument| argument.replace("{elf}", &image)));
    match run(&mut command, folder)? {
        (true, _) => Ok(()),
        (false, log) => Err(Error::new(ErrorKind::Failed, format!("{}: {}", words.join(" "), log.trim()))),
    }
}

/// Runs a tool in `folder`, and returns whether it succeeded, with everything that it wrote. It is killed at a deadline.
///
/// # Errors
/// `Unavailable` if it cannot be started; `Timeout`; `Io`.
pub(super) fn run(command: &mut Command, folder: &Path) -> Result<(bool, String)> {
    let name = command.get_program().to_string_lossy().into_owned();
    let io = |error: std::io::Error| Error::new(ErrorKind::Io, format!("{name}: {error}"));
    // A file takes any amount without a thread that reads it. Several threads may work in the folder.
    let log = folder.join(format!("{:?}.log", std::thread::current().id()));
    let output = File::create(&log).map_err(io)?;
    let errors = output.try_clone().map_err(io)?;
    command.current_dir(folder).stdin(Stdio::null()).stdout(output).stderr(errors).env("LC_ALL", "C");
    let mut child = command
        .spawn()
        .map_err(|error| Error::new(ErrorKind::Unavailable, format!("{name} cannot be started: {error}")))?;
    let deadline = Instant::now() + DEADLINE;
    let mut round = 0;
    let status = loop {
        match child.try_wait().map_err(io)? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill().and_then(|()| child.wait());
                return Err(Error::new(
                    ErrorKind::Timeout,
                    format!("{name} was still running after {DEADLINE:?}"),
                ));
            }
            None => {
                std::thread::sleep(Duration::from_micros(200 << round));
                round = (round + 1).min(4);
            }
        }
    };
    let text = std::fs::read(&log).map_err(io)?;
    std::fs::remove_file(&log).map_err(io)?;
    Ok((status.success(), String::from_utf8_lossy(&text).into_owned()))
}
