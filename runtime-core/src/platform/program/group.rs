//! Starts programs, and ends them with every process that they have started.

#![allow(unsafe_code, reason = "prepares a child process, and signals process groups")]

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

/// A program in a process group of its own. The group is killed when this is dropped, and also when this process ends without
/// dropping it.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    pub(super) child: Child,
    /// Leads the group; `None` once the group was killed.
    guard: Option<Guard>,
}

impl ProcessGroup {
    /// Starts a program.
    ///
    /// # Errors
    /// As for [`spawn_program`].
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        // First, so that this process cannot end in between and leave the program.
        let guard = Guard::start()?;
        let child = spawn_in(command, guard.group())?;
        Ok(Self { child, guard: Some(guard) })
    }

    /// The exit status; `None` while the child runs. What an ended child has left of its group is killed.
    ///
    /// # Errors
    /// `Io` if another part of the program has taken the exit status.
    pub(super) fn status(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait();
        if !matches!(status, Ok(None)) {
            self.kill();
        }
        status.map_err(|error| {
            let message = format!("has ended, and its exit status is lost (SIGCHLD may be ignored): {error}");
            Error::new(ErrorKind::Io, message).with_source(error)
        })
    }

    /// Ends the group: SIGTERM, and SIGKILL for what is left after a moment.
    pub(super) fn end(&mut self) {
        if let Some(guard) = &self.guard {
            guard.signal(libc::SIGTERM);
            let started = Instant::now();
            while matches!(self.child.try_wait(), Ok(None)) && started.elapsed() < GRACE {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        self.kill();
    }

    /// Kills the group, and collects the exit status.
    fn kill(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.signal(libc::SIGKILL);
            // It may have moved to another group. Fails if it has ended.
            let _ = self.child.kill();
            // Fails if the status went elsewhere.
            let _ = self.child.wait();
        }
    }

    /// Does to the guard what the end of this process does.
    #[cfg(test)]
    pub(super) fn close_guard(&self) {
        self.guard.as_ref().map(|guard| guard.input.shutdown(Shutdown::Both));
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A shell that leads the process group of a program. It kills the group when this process ends in any way. The system does that
/// for a child that asks for it, but then with the *thread* that has started it, and not for the children of that child. As long as
/// the shell was not waited for, the number of the group is no other's.
#[derive(Debug)]
struct Guard {
    shell: Child,
    /// A socket, because it can be shut down while children that this process has forked still hold a copy.
    input: UnixStream,
}

impl Guard {
    fn start() -> Result<Self> {
        let fails = |error| not_started(OsStr::new("/bin/sh"), error);
        let (input, shells) = UnixStream::pair().map_err(fails)?;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", GUARD]).env_clear().current_dir("/").stdin(OwnedFd::from(shells));
        let shell = spawn_program(shell.stdout(Stdio::null()).stderr(Stdio::null()));
        let shell =
            shell.map_err(|error| error.with_note("no program is started without one that ends it"))?;
        Ok(Self { shell, input })
    }

    fn group(&self) -> libc::pid_t {
        self.shell.id().cast_signed()
    }

    /// Signals the group.
    fn signal(&self, signal: libc::c_int) {
        // SAFETY: makes a system call without memory. The group's number is that of our child, which was not waited for.
        unsafe { libc::kill(-self.group(), signal) };
    }
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
