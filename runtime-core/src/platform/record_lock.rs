//! Record locks: advisory locks on single bytes of a file, which belong to a process.
//!
//! The system releases them when the process ends, however it ends, and a forked child has none of them. They
//! are also released when the process closes *any* descriptor of the file, so open it once.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Locks the byte at `offset`, which need not exist. Returns false if another process holds the lock.
///
/// # Errors
/// Any other I/O error, e.g. that the file system has no locks.
pub(crate) fn try_lock_byte(file: &File, offset: u64) -> io::Result<bool> {
    match set_lock(file, offset, libc::F_WRLCK) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Releases the lock of the byte at `offset`.
pub(crate) fn unlock_byte(file: &File, offset: u64) {
    // It can fail only if the file has become unreachable, and its locks with it.
    let _ = set_lock(file, offset, libc::F_UNLCK);
}

fn set_lock(file: &File, offset: u64, kind: impl TryInto<libc::c_short>) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    // SAFETY: the structure has only integers, for which zero is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind.try_into().map_err(|_| invalid())?;
    lock.l_whence = libc::SEEK_SET.try_into().map_err(|_| invalid())?;
    lock.l_start = offset.try_into().map_err(|_| invalid())?;
    lock.l_len = 1;
    // SAFETY: the descriptor is open and the structure lives during the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const lock) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
