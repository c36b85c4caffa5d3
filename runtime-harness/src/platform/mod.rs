//! Processes of this system: adopting, finding and ending them, and the descriptors of the protocol.

#![allow(unsafe_code, reason = "calls functions of the system")]

mod linux;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::time::Duration;

pub(crate) use linux::{
    ProcessHandle, adopt_orphans, child_of, die_with_parent, has_data, limit_data, listening_process,
    processor_time, thread_states,
};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitKind {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

/// Removes a child that has ended, if there is one: its ID, and how it ended.
pub(crate) fn reap() -> Option<(i32, ExitKind)> {
    let mut status = 0;
    // SAFETY: the status is a local variable.
    let process = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    let kind = match libc::WIFSIGNALED(status) {
        true => ExitKind::Signal(libc::WTERMSIG(status)),
        false => ExitKind::Code(libc::WEXITSTATUS(status)),
    };
    (process > 0).then_some((process, kind))
}

/// The children of this process that are not reaped yet.
pub(crate) fn children() -> Vec<i32> {
    if has_children() { linux::children() } else { Vec::new() }
}

/// Whether this process has children, running or not. Faster than listing them.
fn has_children() -> bool {
    // SAFETY: a zeroed structure is a valid one.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the structure is a local variable; the call leaves the state of all children as it is.
    unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, options) == 0 }
}

/// Removes a child, if it has ended.
pub(crate) fn reap_one(process: i32) {
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::WNOHANG) };
}

/// Sends a signal to a process, or to a process group if `process` is negative. Nobody may be left to get it.
pub(crate) fn kill(process: i32, signal: i32) {
    // SAFETY: the call has no other effect than the signal.
    unsafe { libc::kill(process, signal) };
}

/// Ends this process without running anything else.
pub(crate) fn exit_now() -> ! {
    // SAFETY: no code of this process runs afterwards.
    unsafe { libc::_exit(1) }
}

/// Ends this process as another one has ended.
pub(crate) fn end_as(kind: ExitKind) -> ! {
    match kind {
        ExitKind::Code(code) => std::process::exit(code),
        ExitKind::Signal(signal) => {
            // SAFETY: the signal ends this process, unless it is one that ends none.
            unsafe { libc::raise(signal) };
            // SAFETY: only sets what a signal does.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            // SAFETY: as above.
            unsafe { libc::raise(signal) };
            exit_now()
        }
    }
}

/// Runs `create`, during which no thread of this process makes a file that others than its user may use.
pub(crate) fn create_privately<T>(create: impl FnOnce() -> T) -> T {
    // SAFETY: only sets an attribute of this process.
    let before = unsafe { libc::umask(0o177) };
    let created = create();
    // SAFETY: as above.
    unsafe { libc::umask(before) };
    created
}

/// A stream whose other end may be closed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Watched {
    /// This process reads it. The other end counts as closed once no process can write to it.
    Input(RawFd),
    /// This process writes it. The other end counts as closed once no process can read from it.
    Output(RawFd),
}

/// Waits until `readable` has data, the other end of `watched` is closed, or the time is over; returns whether it is closed.
pub(crate) fn wait(readable: Option<RawFd>, watched: Option<Watched>, timeout: Option<Duration>) -> bool {
    let entry = |descriptor, events| libc::pollfd { fd: descriptor, events, revents: 0 };
    let (stream, events) = match watched {
        Some(Watched::Input(stream)) => (stream, linux::WRITER_IS_GONE),
        Some(Watched::Output(stream)) => (stream, 0),
        None => (-1, 0),
    };
    let mut entries = [entry(readable.unwrap_or(-1), libc::POLLIN), entry(stream, events)];
    let milliseconds = timeout.map_or(-1, |time| i32::try_from(time.as_millis() + 1).unwrap_or(i32::MAX));
    // SAFETY: the entries are local variables, and their number fits.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), 2, milliseconds) };
    let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL | events;
    ready > 0 && entries[1].revents & gone != 0
}

/// Takes standard input and output away from foreign code: returns private copies, and leaves an empty input in their
/// place and an output that goes to standard error.
///
/// # Errors
/// Any I/O error.
pub(crate) fn take_standard_streams() -> io::Result<(File, File)> {
    let (input, output) = (duplicate(libc::STDIN_FILENO)?, duplicate(libc::STDOUT_FILENO)?);
    let empty = File::open("/dev/null")?;
    replace(libc::STDIN_FILENO, empty.as_raw_fd())?;
    replace(libc::STDOUT_FILENO, libc::STDERR_FILENO)?;
    Ok((input, output))
}

fn duplicate(descriptor: RawFd) -> io::Result<File> {
    // SAFETY: the call only makes a new descriptor.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(copy) })
}

fn replace(descriptor: RawFd, with: RawFd) -> io::Result<()> {
    // SAFETY: standard streams are used through their numbers only, which stay open.
    match unsafe { libc::dup2(with, descriptor) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
