//! Runs a program in its own process group: output to a file, a readiness text, a deadline, and the end of the whole group.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use runtime_core::backend::is_privileged;
use runtime_core::{Error, ErrorKind, Result};

/// How long a process group may take to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// Sleep between polls of the process.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// A program that prints more is ended.
const MAX_OUTPUT_BYTES: u64 = 256 << 20;
/// The part of an output that is reported: its end.
const REPORTED_BYTES: u64 = 64 << 10;

/// A running program. Dropping it ends its process group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The command, for messages.
    command: String,
    output: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a command, without a shell, in `folder`; its output goes to `output` there.
    ///
    /// # Errors
    /// `Unavailable` if the program cannot be run; `Io`.
    pub(crate) fn start(words: &[String], folder: &Path, variables: &[(&str, String)]) -> Result<Self> {
        if is_privileged() {
            let message = "a process with elevated privileges runs no other programs; run it as a user";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let output = folder.join("output.txt");
        let file = File::create(&output).map_err(|error| io_error(&output, error))?;
        let errors = file.try_clone().map_err(|error| io_error(&output, error))?;
        let (program, arguments) =
            words.split_first().ok_or_else(|| Error::invalid("the command is empty"))?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
        let child = command.spawn().map_err(|error| {
            let message = format!("cannot run \"{program}\": {error}; install it, or correct the command");
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        })?;
        Ok(Self { child, command: words.join(" "), output, ended: None })
    }

    /// Waits until the output contains `text`.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, `Failed` if the program ends before; with the output. The process group has ended then.
    pub(crate) fn wait_ready(&mut self, text: &str, deadline: Duration) -> Result<()> {
        let started = Instant::now();
        let mut search = Search { text: text.as_bytes(), searched: 0, tail: Vec::new() };
        loop {
            let ended = self.poll()?;
            if search.finds(&self.output).unwrap_or_default() {
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
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for the end of the program. Processes that it left behind are ended.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, `OutOfResources` for too much output; the process group has ended then.
    pub(crate) fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.poll()? {
                return Ok(status);
            }
            if started.elapsed() >= deadline {
                self.end();
                let what = format!("was still running after {deadline:?} and was ended");
                return Err(self.failure(ErrorKind::Timeout, &what));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// The exit status, if the program has ended.
    fn poll(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            if self.has_exited() {
                self.reap();
            } else if self.output.metadata().is_ok_and(|file| file.len() > MAX_OUTPUT_BYTES) {
                self.end();
                let what = format!("printed more than {MAX_OUTPUT_BYTES} bytes and was ended");
                return Err(self.failure(ErrorKind::OutOfResources, &what));
            }
        }
        Ok(self.ended)
    }

    /// Ends the process group: SIGTERM, and SIGKILL for what is left after a moment.
    fn end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.signal(libc::SIGTERM);
        let started = Instant::now();
        while !self.has_exited() && started.elapsed() < GRACE {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.reap();
    }

    /// Kills what is left of the process group, and collects the exit status. In this order, because the group's number may
    /// belong to others once the program has been waited for.
    fn reap(&mut self) {
        self.signal(libc::SIGKILL);
        self.ended = self.child.wait().ok();
    }

    /// Whether the program has ended, without collecting its exit status.
    #[allow(unsafe_code, reason = "polls a process without reaping it, which `std` cannot")]
    fn has_exited(&self) -> bool {
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is writable, and the number is that of our child, which was not waited for.
        let result = unsafe { libc::waitid(libc::P_PID, self.child.id(), info.as_mut_ptr(), flags) };
        // SAFETY: a structure of integers, which was zeroed.
        let info = unsafe { info.assume_init() };
        // An error means that there is no child to wait for.
        result != 0 || info.si_signo != 0
    }

    #[allow(unsafe_code, reason = "signals a process group, for which `std` has no function")]
    fn signal(&self, signal: libc::c_int) {
        let Ok(group) = libc::pid_t::try_from(self.child.id()) else { return };
        // SAFETY: makes a system call without memory. The group is that of our child, which was not waited for.
        unsafe { libc::kill(-group, signal) };
    }

    /// The end of what the program printed.
    pub(crate) fn output(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(&self.output)?;
            let bytes = file.metadata()?.len();
            file.seek(SeekFrom::Start(bytes.saturating_sub(REPORTED_BYTES)))?;
            let mut text = Vec::new();
            file.take(REPORTED_BYTES).read_to_end(&mut text)?;
            Ok(String::from_utf8_lossy(&text).trim().to_owned())
        };
        read().unwrap_or_default()
    }

    /// An error about this program, with its output.
    pub(crate) fn failure(&self, kind: ErrorKind, what: &str) -> Error {
        let output = self.output();
        let said = if output.is_empty() {
            "it printed nothing".to_owned()
        } else {
            format!("it printed:\n{output}")
        };
        Error::new(kind, format!("\"{}\" {what}; {said}", self.command))
    }
}

/// A search for a text in a growing file, which reads each byte once.
struct Search<'a> {
    text: &'a [u8],
    searched: u64,
    /// The end of what was searched, where the text may have begun.
    tail: Vec<u8>,
}

impl Search<'_> {
    /// Whether the text is in the file by now.
    fn finds(&mut self, path: &Path) -> io::Result<bool> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.searched))?;
        self.searched += file.read_to_end(&mut self.tail)? as u64;
        let found =
            self.text.is_empty() || self.tail.windows(self.text.len()).any(|window| window == self.text);
        let kept = self.text.len().saturating_sub(1).min(self.tail.len());
        self.tail.drain(..self.tail.len() - kept);
        Ok(found)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

pub(crate) fn io_error(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {error}", path.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(50);

    fn shell(folder: &Path, script: &str) -> Process {
        let words = ["/bin/sh", "-c", script].map(str::to_owned);
        Process::start(&words, folder, &[("FROM_US", "yes".to_owned())]).unwrap()
    }

    /// Whether a process that wrote its number to a file is there, and no zombie.
    fn is_running(file: &Path) -> bool {
        let id = std::fs::read_to_string(file).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    fn ends(file: &Path) -> bool {
        let started = Instant::now();
        while is_running(file) && started.elapsed() < LONG {
            std::thread::sleep(POLL_INTERVAL);
        }
        !is_running(file)
    }

    #[test]
    fn exit_code_and_output_are_captured() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "echo out $FROM_US; echo err >&2; exit 7");
        assert_eq!(process.wait(LONG).unwrap().code(), Some(7));
        assert_eq!(process.output(), "out yes\nerr");
    }

    #[test]
    fn a_slow_program_ends_at_the_deadline_with_what_it_printed() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "echo begun; sleep 1000");
        process.wait_ready("begun", LONG).unwrap();
        let error = process.wait(SHORT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.message().contains("begun"), "{error}");
    }

    #[test]
    fn a_program_that_ignores_sigterm_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let mut process =
            shell(folder.path(), "trap '' TERM; echo $$ > id; echo ready; while :; do sleep 1; done");
        process.wait_ready("ready", LONG).unwrap();
        assert_eq!(process.wait(SHORT).unwrap_err().kind(), ErrorKind::Timeout);
        assert!(ends(&folder.path().join("id")));
    }

    #[test]
    fn children_end_with_the_program_and_when_it_is_dropped() {
        for script in ["sleep 1000 & echo $! > id; echo ready", "sleep 1000 & echo $! > id; echo ready; wait"]
        {
            let folder = tempfile::tempdir().unwrap();
            let mut process = shell(folder.path(), script);
            process.wait_ready("ready", LONG).unwrap();
            drop(process);
            assert!(ends(&folder.path().join("id")), "{script}");
        }
    }

    #[test]
    fn a_program_that_does_not_get_ready_says_what_it_printed() {
        let folder = tempfile::tempdir().unwrap();
        let mut silent = shell(folder.path(), "sleep 1000");
        let error = silent.wait_ready("ready", SHORT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.message().contains("printed nothing"), "{error}");
        let mut failing = shell(folder.path(), "echo no licence; exit 3");
        let error = failing.wait_ready("ready", LONG).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(
            error.message().contains("no licence") && error.message().contains("exit status: 3"),
            "{error}"
        );
    }

    #[test]
    fn each_byte_is_searched_once_and_a_text_may_come_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        let mut search = Search { text: b"ready", searched: 0, tail: Vec::new() };
        for (output, found, tail) in [
            ("a long line, re", false, ", re"),
            ("a long line, read", false, "read"),
            ("a long line, ready!", true, "ady!"),
        ] {
            std::fs::write(&path, output).unwrap();
            assert_eq!(search.finds(&path).unwrap(), found, "{output}");
            assert_eq!((search.searched, &search.tail[..]), (output.len() as u64, tail.as_bytes()));
        }
    }

    #[test]
    fn a_text_before_much_more_output_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut noisy =
            shell(folder.path(), "echo ready; head -c 200000 /dev/zero; echo > printed; sleep 1000");
        let started = Instant::now();
        while !folder.path().join("printed").exists() && started.elapsed() < LONG {
            std::thread::sleep(POLL_INTERVAL);
        }
        noisy.wait_ready("ready", LONG / 30).unwrap();
    }

    #[test]
    fn a_missing_program_is_unavailable() {
        let folder = tempfile::tempdir().unwrap();
        let error = Process::start(&["/no/such/tool".to_owned()], folder.path(), &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("/no/such/tool"), "{error}");
    }
}
