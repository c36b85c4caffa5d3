//! What only Linux has: adopting orphans, dying with the parent, listing children, a limit for all private memory.

use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The event of a socket whose other end only reads any more. `sshd` gives its commands such a socket as their input.
pub(super) const WRITER_IS_GONE: i16 = libc::POLLRDHUP;

/// Makes this process adopt descendants whose parents have died.
pub(crate) fn adopt_orphans() {
    // SAFETY: only sets an attribute of this process.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Makes the system kill this process when the thread that started it ends.
pub(crate) fn die_with_parent() {
    // SAFETY: only sets an attribute of this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// The children of this process, also those that have ended and were not reaped: a child that ends while the processes are
/// listed may have started one that is not on the list.
///
/// All processes are read: `/proc/self/task/*/children` is not part of every kernel.
pub(crate) fn children() -> Vec<i32> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in front is in parentheses and may contain any character.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        (fields.nth(1)? == own).then_some(id)
    };
    entries.filter_map(child).collect()
}

/// Limits the private memory of this process. Address space that is only reserved, as by GPU drivers, does not count.
///
/// # Errors
/// The error of `setrlimit`.
pub(crate) fn limit_data(bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the limit is a local variable.
    match unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The process that listens at the other end of a connection; `None` if it is not visible here, as from another container.
pub(crate) fn listening_process(stream: &UnixStream) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    let (socket, out) = (stream.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: both out-parameters are local variables, and the size is that of the structure.
    let code = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, out, &raw mut bytes) };
    u32::try_from(peer.pid).ok().filter(|process| code == 0 && *process > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_listed_until_it_is_reaped() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        assert!(children().contains(&id));
        child.kill().unwrap();
        assert!(children().contains(&id));
        child.wait().unwrap();
        assert!(!children().contains(&id));
    }
}
