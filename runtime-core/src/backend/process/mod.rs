//! Programs that a backend runs: compilers, emulators, tools of vendors. Each has a process group of its own, which ends with it.

#![allow(unsafe_code, reason = "polls a process without reaping it, and signals process groups")]

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::platform::is_privileged;
use crate::{Error, ErrorKind, Result};

/// How long a process group may take to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// The longest sleep between polls of a process; the first is shorter.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(2);
const MIN_POLL_INTERVAL: Duration = Duration::from_micros(200);
/// A program that prints more is ended.
const MAX_OUTPUT_BYTES: u64 = 256 << 20;
/// The part of an output that is reported: its end.
const REPORTED_BYTES: u64 = 64 << 10;

/// The path of a program: itself if it contains a slash, otherwise the first executable file of that name in one of the folders.
/// Relative folders are ignored.
#[must_use]
pub fn find_program(program: &str, folders: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
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
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_program(program, std::env::split_paths(&path))
}

/// A child that leads a process group. The group is killed when this is dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Ended(ExitStatus),
    /// It has ended, and its exit status went elsewhere. Its number may belong to others.
    Gone,
}

impl ProcessGroup {
    /// Takes a child that was started with `process_group(0)`.
    #[must_use]
    pub const fn new(child: Child) -> Self {
        Self { child, state: State::Running }
    }

    /// The exit status; `None` while the child runs. What an ended child has left of its group is killed.
    ///
    /// # Errors
    /// `Io` if another part of the program has taken the exit status.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        if self.has_exited()? {
            self.kill();
        }
        match self.state {
            State::Running => Ok(None),
            State::Ended(status) => Ok(Some(status)),
            State::Gone => Err(status_taken()),
        }
    }

    /// Ends the group: SIGTERM, and SIGKILL for what is left after a moment.
    pub fn end(&mut self) {
        if self.state != State::Running || self.has_exited().is_err() {
            return;
        }
        self.signal(libc::SIGTERM);
        let started = Instant::now();
        while matches!(self.has_exited(), Ok(false)) && started.elapsed() < GRACE {
            std::thread::sleep(MAX_POLL_INTERVAL);
        }
        self.kill();
    }

    /// Kills the group, and collects the exit status. In this order, because the group's number may belong to others once the
    /// child has been waited for.
    pub fn kill(&mut self) {
        if self.state == State::Running && self.has_exited().is_ok() {
            self.signal(libc::SIGKILL);
            self.state = self.child.wait().map_or(State::Gone, State::Ended);
        }
    }

    /// Whether the child has ended, without collecting its exit status.
    fn has_exited(&mut self) -> Result<bool> {
        if self.state != State::Running {
            return Ok(true);
        }
        let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is writable, and the number is that of our child, which was not waited for.
        let result = unsafe { libc::waitid(libc::P_PID, self.child.id(), info.as_mut_ptr(), flags) };
        // SAFETY: a structure of integers, which was zeroed.
        let info = unsafe { info.assume_init() };
        if result == 0 {
            return Ok(info.si_signo != 0);
        }
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ECHILD) {
            self.state = State::Gone;
            return Err(status_taken());
        }
        Err(Error::new(ErrorKind::Io, format!("cannot be waited for: {error}")).with_source(error))
    }

    fn signal(&self, signal: libc::c_int) {
        let Ok(group) = libc::pid_t::try_from(self.child.id()) else { return };
        // SAFETY: makes a system call without memory. The group is that of our child, which was not waited for.
        unsafe { libc::kill(-group, signal) };
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

fn status_taken() -> Error {
    let message = "has ended, and another part of the program took its exit status (SIGCHLD may be ignored)";
    Error::new(ErrorKind::Io, message)
}

/// A running program whose output goes to a file. Dropping it ends its process group.
#[derive(Debug)]
pub struct Process {
    group: ProcessGroup,
    /// The command, for messages.
    command: String,
    /// Not its path, where the program may put something else.
    output: File,
}

impl Process {
    /// Starts a command without input in a process group of its own. Everything that it prints goes to the file `output`.
    ///
    /// # Errors
    /// `Unavailable` if the program cannot be run, or this process has raised privileges; `Io`.
    pub fn start(command: &mut Command, output: &Path) -> Result<Self> {
        if is_privileged() {
            let message = "a process with elevated privileges runs no other programs; run it as a user";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let io = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("{}: {error}", output.display())).with_source(error)
        };
        let kept =
            File::options().read(true).write(true).create(true).truncate(true).open(output).map_err(io)?;
        let [file, errors] = [kept.try_clone().map_err(io)?, kept.try_clone().map_err(io)?];
        let program = command.get_program().to_string_lossy().into_owned();
        let arguments = command.get_args().map(|word| format!(" {}", word.to_string_lossy()));
        let text = std::iter::once(program.clone()).chain(arguments).collect();
        command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
        let child = command.spawn().map_err(|error| {
            let message = format!("cannot run \"{program}\": {error}; install it, or correct the command");
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        })?;
        Ok(Self { group: ProcessGroup::new(child), command: text, output: kept })
    }

    /// Waits until the output contains `text`.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, `Failed` if the program ends before, otherwise as for [`Process::wait`]; with the output.
    /// The process group has ended then.
    pub fn wait_ready(&mut self, text: &str, deadline: Duration) -> Result<()> {
        let mut waiting = Waiting::new();
        let mut search = Search { text: text.as_bytes(), searched: 0, tail: Vec::new() };
        loop {
            let ended = self.status()?;
            if search.finds(&self.output).unwrap_or_default() {
                return Ok(());
            }
            if let Some(status) = ended {
                let what = format!("ended ({status}) before it printed \"{text}\"");
                return Err(self.failure(ErrorKind::Failed, &what));
            }
            if waiting.is_over(deadline) {
                self.group.end();
                let what = format!("did not print \"{text}\" within {deadline:?} and was ended");
                return Err(self.failure(ErrorKind::Timeout, &what));
            }
        }
    }

    /// Waits for the end of the program. Processes that it left behind are ended.
    ///
    /// # Errors
    /// `Timeout` after `deadline`, `OutOfResources` for too much output, `Io` if another part of this program has taken the exit
    /// status; the process group has ended then.
    pub fn wait(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let mut waiting = Waiting::new();
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            if waiting.is_over(deadline) {
                self.group.end();
                let what = format!("was still running after {deadline:?} and was ended");
                return Err(self.failure(ErrorKind::Timeout, &what));
            }
        }
    }

    /// Ends the program and its process group: SIGTERM, and SIGKILL for what is left after a moment.
    pub fn end(&mut self) {
        self.group.end();
    }

    /// The number of the program and of its process group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.child.id()
    }

    /// The exit status; `None` while the program runs. Processes that an ended program left behind are ended.
    ///
    /// # Errors
    /// As for [`Process::wait`], without the deadline.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.group.status().map_err(|error| self.failure(error.kind(), error.message()))?;
        if status.is_none() && self.output.metadata().is_ok_and(|file| file.len() > MAX_OUTPUT_BYTES) {
            self.group.end();
            let what = format!("printed more than {MAX_OUTPUT_BYTES} bytes and was ended");
            return Err(self.failure(ErrorKind::OutOfResources, &what));
        }
        Ok(status)
    }

    /// The end of what the program printed, at most 64 KiB.
    #[must_use]
    pub fn output(&self) -> String {
        let bytes = self.output.metadata().map_or(0, |file| file.len());
        let text = read_at(&self.output, bytes.saturating_sub(REPORTED_BYTES), REPORTED_BYTES);
        String::from_utf8_lossy(&text.unwrap_or_default()).trim().to_owned()
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
        self.group.end();
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
    fn finds(&mut self, file: &File) -> std::io::Result<bool> {
        let bytes = read_at(file, self.searched, MAX_OUTPUT_BYTES)?;
        self.searched += bytes.len() as u64;
        self.tail.extend(bytes);
        let found =
            self.text.is_empty() || self.tail.windows(self.text.len()).any(|window| window == self.text);
        let kept = self.text.len().saturating_sub(1).min(self.tail.len());
        self.tail.drain(..self.tail.len() - kept);
        Ok(found)
    }
}

/// At most `limit` bytes of a file from an offset. The position, which the program shares, stays.
fn read_at(file: &File, offset: u64, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut part = FileFrom { file, offset };
    let mut bytes = Vec::new();
    (&mut part).take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file from an offset to its end at that time: its program may write to it, or truncate it.
struct FileFrom<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(bytes, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Sleeps between polls: first shortly, for programs that end at once.
struct Waiting {
    started: Instant,
    interval: Duration,
}

impl Waiting {
    fn new() -> Self {
        Self { started: Instant::now(), interval: MIN_POLL_INTERVAL }
    }

    /// Whether the deadline has passed; sleeps if it has not.
    fn is_over(&mut self, deadline: Duration) -> bool {
        if self.started.elapsed() >= deadline {
            return true;
        }
        std::thread::sleep(self.interval);
        self.interval = (self.interval * 2).min(MAX_POLL_INTERVAL);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(50);

    fn shell(folder: &Path, script: &str) -> Process {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(folder).env("FROM_US", "yes");
        Process::start(&mut command, &folder.join("output.txt")).unwrap()
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
            std::thread::sleep(MAX_POLL_INTERVAL);
        }
        !is_running(file)
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
    fn exit_code_and_output_are_captured() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "echo out $FROM_US; echo err >&2; exit 7");
        assert_eq!(process.wait(LONG).unwrap().code(), Some(7));
        assert_eq!(process.output(), "out yes\nerr");
        let error = process.failure(ErrorKind::Failed, "failed");
        assert!(error.message().starts_with("\"/bin/sh -c echo"), "{error}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
    fn a_program_that_ignores_sigterm_is_killed_at_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let mut process =
            shell(folder.path(), "trap '' TERM; echo $$ > id; echo ready; while :; do sleep 1; done");
        process.wait_ready("ready", LONG).unwrap();
        let error = process.wait(SHORT).unwrap_err();
        assert!(error.kind() == ErrorKind::Timeout && error.message().contains("ready"), "{error}");
        assert!(ends(&folder.path().join("id")));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
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
    #[cfg_attr(miri, ignore = "needs processes")]
    fn a_program_that_does_not_get_ready_says_what_it_printed() {
        let folder = tempfile::tempdir().unwrap();
        let error = shell(folder.path(), "sleep 1000").wait_ready("ready", SHORT).unwrap_err();
        assert!(error.kind() == ErrorKind::Timeout && error.message().contains("printed nothing"), "{error}");
        let error = shell(folder.path(), "echo no licence; exit 3").wait_ready("ready", LONG).unwrap_err();
        assert!(error.kind() == ErrorKind::Failed && error.message().contains("no licence"), "{error}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
    fn a_status_that_was_taken_is_an_error_and_nothing_is_signalled() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), "sleep 1000 & echo $! > id; echo last words; exit 3");
        let child = libc::pid_t::try_from(process.group.child.id()).unwrap();
        // SAFETY: a system call without memory. The child is ours.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        for _ in 0..2 {
            let error = process.wait(SHORT).unwrap_err();
            assert!(error.kind() == ErrorKind::Io && error.message().contains("exit status"), "{error}");
            assert!(error.message().contains("last words"), "{error}");
        }
        process.group.end();
        drop(process);
        // The number of the group may belong to others, so its rest is left alone. A signal takes a moment.
        std::thread::sleep(SHORT);
        assert!(is_running(&folder.path().join("id")));
        Command::new("kill")
            .arg(std::fs::read_to_string(folder.path().join("id")).unwrap().trim())
            .status()
            .unwrap();
        assert!(ends(&folder.path().join("id")));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
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
            assert_eq!(search.finds(&File::open(&path).unwrap()).unwrap(), found, "{output}");
            assert_eq!((search.searched, &search.tail[..]), (output.len() as u64, tail.as_bytes()));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a file of the system")]
    fn a_file_is_read_to_its_end_whatever_length_it_had() {
        // Has the length 0, as a file that was emptied and written again.
        let file = File::open("/proc/self/stat").unwrap();
        let first = read_at(&file, 0, 3).unwrap();
        assert_eq!((first.len(), read_at(&file, 1, 2).unwrap()), (3, first[1..].to_vec()));
        let whole = read_at(&file, 0, MAX_OUTPUT_BYTES).unwrap();
        assert!(whole.ends_with(b"\n") && read_at(&file, 1 << 20, 10).unwrap().is_empty());
    }

    /// A program may do anything in its folder, also to the file of its output. A pipe without a writer would be waited for.
    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
    fn an_output_whose_file_was_replaced_by_a_pipe_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo first; rm output.txt; mkfifo output.txt; echo ready; exit 3";
        let mut process = shell(folder.path(), script);
        process.wait_ready("ready", LONG).unwrap();
        assert_eq!((process.wait(LONG).unwrap().code(), &*process.output()), (Some(3), "first\nready"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
    fn a_text_before_much_more_output_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let mut noisy =
            shell(folder.path(), "echo ready; head -c 200000 /dev/zero; echo > printed; sleep 1000");
        let started = Instant::now();
        while !folder.path().join("printed").exists() && started.elapsed() < LONG {
            std::thread::sleep(MAX_POLL_INTERVAL);
        }
        noisy.wait_ready("ready", LONG).unwrap();
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs processes")]
    fn programs_are_found_by_name_and_by_path() {
        let folders = || ["relative", "/no/such/folder", "/bin"].map(PathBuf::from);
        assert_eq!(find_program("sh", folders()), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program("/bin/sh", []), Some(PathBuf::from("/bin/sh")));
        assert!(find_in_path("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!((find_program("no-such-tool", folders()), find_program("/etc/passwd", [])), (None, None));
        let folder = tempfile::tempdir().unwrap();
        let error = Process::start(&mut Command::new("/no/such/tool"), &folder.path().join("x")).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Unavailable && error.message().contains("/no/such/tool"),
            "{error}"
        );
    }
}
