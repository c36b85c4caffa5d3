//! The programs that this project starts: compilers, emulators, tools of vendors. All of them start here.
//!
//! A process with raised privileges starts none. Each has a process group of its own, which ends with it, at its deadline, and with
//! this process; it inherits nothing but its standard streams; of what it prints the beginning and the end are kept.

mod group;
mod printed;
mod sandbox;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{trust, trusted_variable};
use crate::{Error, ErrorKind, Result};
use group::ProcessGroup;
pub use group::{check_privileges, exhausted, spawn_program};
use printed::Printed;
pub use sandbox::{
    MissingPart, SANDBOX_VARIABLE, Sandbox, SandboxLimits, SandboxPart, SandboxPolicy, huge_page_file,
    missing_sandbox_parts, named_paths, on_confined_thread, start_no_processes,
};

/// What is usually kept of each output of a program: the whole of it, unless something is wrong with the program.
pub const OUTPUT_BYTES: usize = 1 << 20;
/// The longest sleep between polls of a process; the first is shorter.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(2);
const MIN_POLL_INTERVAL: Duration = Duration::from_micros(100);
/// For the last output of a program that has ended to arrive. A process that has left its group may hold the pipes for ever.
const ARRIVAL_TIME: Duration = Duration::from_millis(500);

/// The path of a program: itself if it contains a slash, otherwise the first executable file of that name in one of the folders.
/// Relative folders are ignored, and so is what everybody could change.
#[must_use]
pub fn find_program(program: &str, folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
            && trust::check_installed(path).is_ok()
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    let folders = folders.into_iter().filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(is_program)
}

/// The path of a program, as by [`find_program`] in the folders of `PATH`.
#[must_use]
pub fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = trusted_variable("PATH").unwrap_or_default();
    find_program(program, std::env::split_paths(&path))
}

/// How a program ended, and what it printed.
#[derive(Debug)]
pub struct Output {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Whether neither has a note in place of bytes that are left out.
    pub is_whole: bool,
}

impl Output {
    /// Both outputs, one after the other.
    #[must_use]
    pub fn text(&self) -> String {
        joined([&self.stdout, &self.stderr])
    }
}

fn joined(outputs: [&[u8]; 2]) -> String {
    let texts = outputs.map(|bytes| String::from_utf8_lossy(bytes).trim_end().to_owned());
    texts.join("\n").trim().to_owned()
}

/// Runs a command without input to its end, and keeps at most `bytes` of each of its outputs.
///
/// # Errors
/// As for [`Process::start`] and [`Process::wait`].
pub fn run_program(command: &mut Command, deadline: Duration, bytes: usize) -> Result<Output> {
    let mut process = Process::start(command, Stdio::null(), bytes)?;
    let status = process.wait(deadline)?;
    let [(stdout, is_whole), (stderr, are_whole)] =
        process.outputs.each_ref().map(|output| output.lock().text());
    Ok(Output { status, stdout, stderr, is_whole: is_whole && are_whole })
}

/// A running program. Dropping it ends its process group.
#[derive(Debug)]
pub struct Process {
    group: ProcessGroup,
    /// The command, for messages.
    command: String,
    outputs: [Arc<Mutex<Printed>>; 2],
    /// Disconnected when both outputs have ended.
    open: Receiver<()>,
    /// Whether all of the output has arrived, or was waited for.
    is_settled: bool,
}

impl Process {
    /// Starts a command, and keeps at most `bytes` of each of its outputs.
    ///
    /// # Errors
    /// As for [`spawn_program`].
    pub fn start(command: &mut Command, input: Stdio, bytes: usize) -> Result<Self> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let text = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let started = ProcessGroup::start(command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()));
        // The command would hold the program's end of a connection open.
        command.stdin(Stdio::null());
        let mut group = started?;
        let (sender, open) = channel();
        let (output, errors) = (group.child.stdout.take(), group.child.stderr.take());
        let none = || std::io::Error::other("it has no output");
        let read = output.ok_or_else(none).and_then(|pipe| Printed::read(pipe, bytes, sender.clone()));
        let read = read.and_then(|output| {
            Ok([output, errors.ok_or_else(none).and_then(|pipe| Printed::read(pipe, bytes, sender))?])
        });
        let outputs = read.map_err(|error| {
            let message = format!("\"{text}\": no thread for its output: {error}");
            Error::new(ErrorKind::OutOfResources, message).with_source(error)
        })?;
        Ok(Self { group, command: text, outputs, open, is_settled: false })
    }

    /// Waits until it has printed `text`.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, `Failed` if the program ends before, otherwise as for [`Process::wait`]; with the output.
    /// The process group has ended then.
    pub fn wait_ready(&mut self, text: &str, deadline: Duration) -> Result<()> {
        let (started, mut interval) = (Instant::now(), MIN_POLL_INTERVAL);
        loop {
            let ended = self.status()?;
            if self.outputs.iter().any(|output| output.lock().finds(text)) {
                return Ok(());
            }
            if let Some(status) = ended {
                let what = format!("ended ({status}) before it printed \"{text}\"");
                return Err(self.failure(ErrorKind::Failed, &what));
            }
            if started.elapsed() >= deadline {
                self.end();
                let what = format!("did not print \"{text}\" within {deadline:?} and was ended");
                return Err(self.failure(ErrorKind::Timeout, &what));
            }
            self.pause(&mut interval);
        }
    }

    /// Waits for the end of the program. Processes that it left behind are ended.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, `Io` if another part of this program has taken the exit status; with the output. The process
    /// group has ended then.
    pub fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let (started, mut interval) = (Instant::now(), MIN_POLL_INTERVAL);
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            if started.elapsed() >= deadline {
                self.end();
                let what = format!("was still running after {deadline:?} and was ended");
                return Err(self.failure(ErrorKind::Timeout, &what));
            }
            self.pause(&mut interval);
        }
    }

    /// Sleeps between polls: until its outputs are closed, as by its end, and then shortly.
    fn pause(&self, interval: &mut Duration) {
        if self.open.recv_timeout(MAX_POLL_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
            std::thread::sleep(*interval);
            *interval = (*interval * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// Ends the program and its process group: SIGTERM, and SIGKILL for what is left after a moment.
    pub fn end(&mut self) {
        self.group.end();
        self.settle();
    }

    /// The exit status; `None` while the program runs. Processes that an ended program left behind are ended.
    ///
    /// # Errors
    /// As for [`Process::wait`], without the deadline.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.group.status();
        if !matches!(status, Ok(None)) {
            self.settle();
        }
        status.map_err(|error| self.failure(error.kind(), error.message()))
    }

    /// Waits for the rest of the output of a program that has ended.
    fn settle(&mut self) {
        if !self.is_settled {
            // Nothing is sent: it is over when the pipes are closed.
            let _ = self.open.recv_timeout(ARRIVAL_TIME);
            self.is_settled = true;
        }
    }

    /// What the program has printed.
    #[must_use]
    pub fn output(&self) -> String {
        let [output, errors] = self.outputs.each_ref().map(|output| output.lock().text().0);
        joined([&output, &errors])
    }

    /// An error about this program, with its output.
    #[must_use]
    pub fn failure(&self, kind: ErrorKind, what: &str) -> Error {
        let output = self.output();
        let said = if output.is_empty() {
            "it printed nothing".to_owned()
        } else {
            format!("it printed:\n{output}")
        };
        Error::new(kind, format!("\"{}\" {what}; {said}", self.command))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests;
