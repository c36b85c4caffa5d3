//! Children that are killed when this process is.

#![allow(unsafe_code, reason = "prepares a child process between fork and exec")]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has Linux kill the child when the thread that starts it exits, at the latest with this process. Grandchildren survive.
pub(crate) fn die_with_thread(command: &mut Command) {
    // SAFETY: `request` makes a system call only.
    unsafe { command.pre_exec(request) };
}

/// In the child: it dies with its parent.
fn request() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: a system call without pointers.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
