//! Named pipes.

#![allow(unsafe_code, reason = "the standard library does not make pipes with names")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Makes a named pipe that only this user can open.
pub(super) fn create(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` ends with a zero byte and outlives the call.
    check(unsafe { libc::mkfifo(path.as_ptr(), 0o600) })
}

/// Lets reads wait for data, of a file that was opened with `O_NONBLOCK` and no other flag.
pub(super) fn set_blocking(file: &File) -> io::Result<()> {
    // SAFETY: a system call on an open descriptor.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) })
}

fn check(status: libc::c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
