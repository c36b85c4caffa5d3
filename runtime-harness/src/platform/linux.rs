//! What only Linux has: adopting orphans, dying with the parent, listing children, a limit for all private memory.

use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

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
    children_of(std::process::id().cast_signed())
}

/// The child of a process of one thread that has at most one. To read all processes takes a millisecond for a hundred.
pub(crate) fn child_of(process: i32) -> Option<i32> {
    match fs::read_to_string(format!("/proc/{process}/task/{process}/children")) {
        Ok(children) => children.split_whitespace().next()?.parse().ok(),
        Err(_) => children_of(process).pop(),
    }
}

/// The children of a process that the system lists, in any order.
fn children_of(process: i32) -> Vec<i32> {
    let parent = process.to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process_if_child(&entry, &parent)).collect()
}

/// The process of an entry of `/proc`, if its parent is this one.
fn process_if_child(entry: &fs::DirEntry, parent: &str) -> Option<i32> {
    let id = entry.file_name().to_str()?.parse().ok()?;
    (state_and_parent(&entry.path().join("stat"))?.1 == parent).then_some(id)
}

/// The state and the parent in a file `stat`.
fn state_and_parent(file: &Path) -> Option<(char, String)> {
    let stat = fs::read_to_string(file).ok()?;
    // The name in front is in parentheses and may contain any character.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.to_owned()))
}

/// A process whose number may become another one's.
#[derive(Debug)]
pub(crate) struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// The process that has this number now.
    ///
    /// # Errors
    /// Any error of the system.
    pub(crate) fn open(process: i32) -> io::Result<Self> {
        // SAFETY: a system call without pointers.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        if handle < 0 {
            return Err(io::Error::last_os_error());
        }
        let handle = i32::try_from(handle).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(handle) }))
    }

    /// Sends it a signal, unless it has ended.
    pub(crate) fn signal(&self, signal: i32) {
        let (handle, nothing, flags) = (self.0.as_raw_fd(), std::ptr::null::<libc::siginfo_t>(), 0);
        // SAFETY: nothing is told with the signal.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, handle, signal, nothing, flags) };
    }
}

/// The states of the threads of a process, its first thread first, as `/proc` has them: `T` for those that are stopped. Empty if the
/// process is gone.
pub(crate) fn thread_states(process: i32) -> Vec<char> {
    let mut threads: Vec<i32> = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable_by_key(|thread| *thread != process);
    let state = |thread: i32| {
        let file = format!("/proc/{process}/task/{thread}/stat");
        Some(state_and_parent(Path::new(&file))?.0)
    };
    threads.into_iter().filter_map(state).collect()
}

/// Whether a stream has data to read, or its other end is closed.
pub(crate) fn has_data(stream: RawFd) -> bool {
    let mut polled = libc::pollfd { fd: stream, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, a local variable.
    unsafe { libc::poll(&raw mut polled, 1, 0) == 1 }
}

/// The time of all processors that a process has used; zero if it is gone.
pub(crate) fn processor_time(process: i32) -> Duration {
    let mut clock = 0;
    // SAFETY: the clock is a local variable.
    if unsafe { libc::clock_getcpuclockid(process, &raw mut clock) } != 0 {
        return Duration::ZERO;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is a local variable.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Duration::ZERO;
    }
    let part = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), part)
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

    #[test]
    fn the_child_of_another_process_is_found() {
        let mut parent = std::process::Command::new("sh").args(["-c", "sleep 60; :"]).spawn().unwrap();
        let id = i32::try_from(parent.id()).unwrap();
        let child = std::iter::repeat_with(|| child_of(id)).find_map(|child| child).unwrap();
        assert_eq!((children_of(id), child_of(child)), (vec![child], None));
        ProcessHandle::open(child).unwrap().signal(libc::SIGKILL);
        parent.wait().unwrap();
        assert_eq!(child_of(id), None);
    }
}
