//! Starts processes that are killed when this one dies.

#![allow(unsafe_code, reason = "prepares a child process between fork and exec")]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use runtime_core::backend::ProcessGroup;

use crate::death_signal::die_with_thread;

/// Number of the descriptor that a child inherits.
pub(super) const INHERITED: i32 = 3;

struct Job {
    command: Command,
    /// Passed on as descriptor [`INHERITED`].
    socket: Option<std::os::unix::net::UnixStream>,
    started: Sender<io::Result<Child>>,
}

/// A thread that starts processes. Linux kills such a child when the *thread* that started it exits, and host threads are
/// short-lived.
#[derive(Debug, Default)]
pub(crate) struct Spawner {
    jobs: Mutex<Option<Sender<Job>>>,
}

impl Spawner {
    /// Starts a process in a group of its own, with `socket` as descriptor 3.
    pub(super) fn start(
        &self,
        command: Command,
        socket: Option<std::os::unix::net::UnixStream>,
    ) -> io::Result<ProcessGroup> {
        let (started, result) = channel();
        let gone = || io::Error::other("the thread that starts processes has ended");
        let mut jobs = self.jobs.lock();
        if jobs.is_none() {
            let (sender, receiver) = channel();
            std::thread::Builder::new()
                .name("runtime-embedded".to_owned())
                .spawn(move || start_all(&receiver))?;
            *jobs = Some(sender);
        }
        let sender = jobs.as_ref().ok_or_else(gone)?;
        sender.send(Job { command, socket, started }).map_err(|_| gone())?;
        drop(jobs);
        result.recv().map_err(|_| gone())?.map(ProcessGroup::new)
    }
}

fn start_all(jobs: &Receiver<Job>) {
    while let Ok(Job { mut command, socket, started }) = jobs.recv() {
        let descriptor = socket.as_ref().map(AsRawFd::as_raw_fd);
        command.process_group(0);
        die_with_thread(&mut command);
        if let Some(descriptor) = descriptor {
            // SAFETY: `inherit` makes system calls only.
            unsafe { command.pre_exec(move || inherit(descriptor)) };
        }
        // If the caller has given up, dropping the child would leave it running.
        if let Err(unwanted) = started.send(command.spawn()) {
            let _ = unwanted.0.map(|mut child| child.kill().and_then(|()| child.wait()));
        }
    }
}

/// In the child: it inherits the socket.
fn inherit(descriptor: i32) -> io::Result<()> {
    // SAFETY: a system call on descriptors of this process.
    let copied = unsafe { libc::dup2(descriptor, INHERITED) };
    // `dup2` does nothing if the descriptor has the number already, and then it is still closed on exec.
    // SAFETY: as above.
    let kept = unsafe { libc::fcntl(INHERITED, libc::F_SETFD, 0) };
    if copied < 0 || kept < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
