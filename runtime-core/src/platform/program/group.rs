//! Starts programs, and ends them with every process that they have started.

#![allow(unsafe_code, reason = "prepares a child, polls it without reaping it, and signals process groups")]

use std::ffi::OsStr;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::super::is_privileged;
use crate::{Error, ErrorKind, Result};

/// How long a process group may take to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// Between two looks at a group that was told to end.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The descriptors that are looked at where the system cannot close a range of them (Linux before 5.11).
const DESCRIPTORS: libc::c_int = 4096;
/// What a guard runs: it waits for the end of its input, which comes when this process ends, and kills its own process group.
const GUARD: &str = "trap '' HUP INT TERM; read -r line; kill -9 0";

/// Starts a program in a process group of its own. It inherits no descriptors but the standard ones.
///
/// # Errors
/// `Unavailable` if it cannot be run, or this process has raised privileges; `OutOfResources`, with the remedy. The source is the
/// [`io::Error`].
pub fn spawn_program(command: &mut Command) -> Result<Child> {
    spawn_in(command, 0)
}

/// Checks that this process may start programs: variables and options would select one that runs with another user's privileges.
///
/// # Errors
/// `Unavailable` if this process has raised privileges.
pub fn check_privileges() -> Result<()> {
    if is_privileged() {
        let message = "a process with elevated privileges runs no other programs; run it as a user";
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    Ok(())
}

/// Starts a program in the process group `group`; 0 stands for a new one.
#[allow(clippy::disallowed_methods, reason = "the only place at which programs are started")]
fn spawn_in(command: &mut Command, group: libc::pid_t) -> Result<Child> {
    check_privileges()?;
    // SAFETY: the function makes system calls only.
    unsafe { command.process_group(group).pre_exec(close_descriptors) };
    command.spawn().map_err(|error| not_started(command.get_program(), error))
}

fn not_started(program: &OsStr, error: io::Error) -> Error {
    let (kind, remedy) = match exhausted(&error) {
        Some(remedy) => (ErrorKind::OutOfResources, remedy),
        None => (ErrorKind::Unavailable, "install it, or correct the command"),
    };
    Error::new(kind, format!("cannot run \"{}\": {error}; {remedy}", program.display())).with_source(error)
}

/// The remedy for an error about exhausted files, processes or memory.
#[must_use]
pub fn exhausted(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE => Some("close files, or raise the limit (`ulimit -n`)"),
        libc::ENFILE => Some("the system-wide limit of open files is reached: raise fs.file-max"),
        libc::EAGAIN => Some("the limit of processes is reached: raise it (`ulimit -u`)"),
        libc::ENOMEM => Some("free memory"),
        _ => None,
    }
}

/// In the child: all descriptors but the standard ones are closed when it runs its program. Libraries of drivers open some
/// without saying so themselves.
fn close_descriptors() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: a system call without pointers.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0 {
        return Ok(());
    }
    for descriptor in 3..DESCRIPTORS {
        // SAFETY: a system call without pointers, which fails for a number that is no descriptor.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// A program that leads a process group. The group is killed when this is dropped, and also when this process ends without
/// dropping it.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    pub(super) child: Child,
    guard: Option<Guard>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Ended(ExitStatus),
    /// Another part of this process has taken the exit status. The number of the child may be in use again: do not signal it.
    Gone,
}

impl ProcessGroup {
    /// Starts a program.
    ///
    /// # Errors
    /// As for [`spawn_program`].
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut group = Self { child: spawn_program(command)?, guard: None, state: State::Running };
        group.guard = Guard::of(&group.child)?;
        Ok(group)
    }

    /// The exit status; `None` while the child runs. What an ended child has left of its group is killed.
    ///
    /// # Errors
    /// `Io` if another part of the program has taken the exit status.
    pub(super) fn status(&mut self) -> Result<Option<ExitStatus>> {
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
    pub(super) fn end(&mut self) {
        if self.state == State::Running && self.has_exited().is_ok() {
            self.signal(libc::SIGTERM);
            let started = Instant::now();
            while matches!(self.has_exited(), Ok(false)) && started.elapsed() < GRACE {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        self.kill();
    }

    /// Kills the group, and collects the exit status. In this order, because the group's number may belong to others once the
    /// child has been waited for.
    fn kill(&mut self) {
        if self.state == State::Running && self.has_exited().is_ok() {
            self.signal(libc::SIGKILL);
            self.state = self.child.wait().map_or(State::Gone, State::Ended);
        }
        // If the status went elsewhere, the guard kills the group: it is part of it, so it meets no others.
        self.guard = None;
    }

    /// Whether the child has ended, without collecting its exit status.
    fn has_exited(&mut self) -> Result<bool> {
        match self.state {
            State::Running => {}
            State::Ended(_) => return Ok(true),
            State::Gone => return Err(status_taken()),
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
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ECHILD) {
            self.state = State::Gone;
            return Err(status_taken());
        }
        Err(Error::new(ErrorKind::Io, format!("cannot be waited for: {error}")).with_source(error))
    }

    /// Does to the guard what the end of this process does.
    #[cfg(test)]
    pub(super) fn close_guard(&self) {
        self.guard.as_ref().map(|guard| guard.input.shutdown(Shutdown::Both));
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: makes a system call without memory. The group is that of our child, which was not waited for.
        unsafe { libc::kill(-self.child.id().cast_signed(), signal) };
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

/// A shell in the process group of a program. It kills the group when this is dropped, and when this process ends in any way:
/// the system kills a child with its parent only if it is asked to by that child, and then with the *thread* that started it.
#[derive(Debug)]
struct Guard {
    shell: Child,
    /// A socket, because it can be shut down while children that this process has forked still hold a copy.
    input: UnixStream,
}

impl Guard {
    /// Guards the group of a child that was not waited for; `None` if it is gone.
    fn of(leader: &Child) -> Result<Option<Self>> {
        let fails = |error| not_started(OsStr::new("/bin/sh"), error);
        let (input, shells) = UnixStream::pair().map_err(fails)?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", GUARD]).env_clear().current_dir("/").stdin(OwnedFd::from(shells));
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        match spawn_in(&mut shell, leader.id().cast_signed()) {
            Ok(shell) => Ok(Some(Self { shell, input })),
            Err(error) if os_error(&error) == Some(libc::EPERM) => Ok(None),
            Err(error) => Err(error.with_note("no program is started without one that ends it")),
        }
    }
}

/// The number of the system's error behind `error`.
fn os_error(error: &Error) -> Option<i32> {
    std::error::Error::source(error)?.downcast_ref::<io::Error>()?.raw_os_error()
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Without the end of its input it would wait for ever.
        if self.input.shutdown(Shutdown::Both).is_err() {
            // It has ended if it cannot be killed.
            let _ = self.shell.kill();
        }
        // It ends by its own signal, so the result carries no information.
        let _ = self.shell.wait();
    }
}
