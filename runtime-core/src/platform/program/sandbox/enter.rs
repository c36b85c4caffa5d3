//! How a child enters its sandbox: three processes, since one must be outside of the PID name space and one must be its first.
//!
//! The child itself stays outside, waits, and ends as the program does. Its child is the first process of the name space, whose end
//! ends all others in it. That one's child becomes the program: the first process of a name space cannot be ended by its own
//! signals, such as that of `abort`. Neither of the first two can be looked into, although they are copies of the parent.

#![allow(unsafe_code, reason = "calls the C library")]

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;

use super::checked;
use super::file_rules::FileRules;
use super::filter::Filters;
use super::limits::{self, SystemLimit};
use super::part::{Parts, SandboxPart, failure};
use super::root::Root;
use super::user::{self, UserMaps, unshare};

/// The descriptors that are looked at where the system cannot close a range of them.
const DESCRIPTORS: u32 = 4096;

/// What a child needs to enter its sandbox.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) parts: Parts,
    pub(super) user: UserMaps,
    pub(super) root: Root,
    /// The working folder.
    pub(super) folder: CString,
    pub(super) rules: FileRules,
    pub(super) filters: Filters,
    pub(super) limits: Vec<SystemLimit>,
    /// In the first process: where it tells how the program has ended.
    pub(super) status: RawFd,
}

impl Entry {
    /// In the child: returns in the process that becomes the program. Makes system calls only.
    ///
    /// # Errors
    /// One that tells the part that has failed.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        use SandboxPart::{
            IpcNamespace, Landlock, MountNamespace, NetworkNamespace, PidNamespace, Seccomp, UserNamespace,
        };
        user::be_ended_first();
        if self.parts.has(MountNamespace) && self.user.was_superuser() {
            // Who is given up, or has privileges in a name space only, may not be able to open what is given: a folder around it may
            // be another user's. In a container the superuser may have none here, and what is not mounted now is mounted there.
            let _ = self.root.mount_places();
        }
        self.user.give_up()?;
        self.step(UserNamespace, |entry| entry.user.enter())?;
        self.step(NetworkNamespace, |_| unshare(libc::CLONE_NEWNET))?;
        self.step(IpcNamespace, |_| unshare(libc::CLONE_NEWIPC))?;
        self.step(MountNamespace, |entry| {
            unshare(libc::CLONE_NEWNS)?;
            entry.root.mount_places()
        })?;
        self.step(PidNamespace, |entry| {
            unshare(libc::CLONE_NEWPID)?;
            entry.status = first_process()?;
            Ok(())
        })?;
        self.step(MountNamespace, |entry| entry.root.enter().and_then(|()| entry.change_folder()))?;
        user::drop_capabilities()?;
        self.step(PidNamespace, |entry| program_process(entry.status))?;
        limits::set(&self.limits)?;
        // SAFETY: only sets an attribute of this process.
        checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
        self.step(Landlock, |entry| entry.rules.enter(entry.parts.has(MountNamespace)))?;
        self.step(Seccomp, |entry| entry.filters.enter())
    }

    fn step(&mut self, part: SandboxPart, enter: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if !self.parts.has(part) {
            return Ok(());
        }
        enter(self).map_err(|error| failure(part, &error))
    }

    fn change_folder(&self) -> io::Result<()> {
        // SAFETY: the path is terminated and outlives the call.
        checked(unsafe { libc::chdir(self.folder.as_ptr()) }.into()).map(|_| ())
    }
}

/// Starts the first process of the PID name space, and returns in it: with the descriptor on which it is to tell how the program
/// has ended.
fn first_process() -> io::Result<RawFd> {
    let mut pipe: [RawFd; 2] = [-1; 2];
    // SAFETY: the array has room for both descriptors.
    checked(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    hide()?;
    match fork()? {
        0 => {
            let [statuses, status] = pipe;
            // SAFETY: the descriptor is this process's, and is not used again.
            unsafe { libc::close(statuses) };
            end_with_parent(status)?;
            Ok(status)
        }
        first => {
            let [statuses, _] = pipe;
            // Among others that by which the parent learns that the program was started.
            close_all_but(statuses);
            end_as(wait_for_status(statuses, first))
        }
    }
}

/// Starts the process that becomes the program, and returns in it: with a session and a process group of its own, since signals to its
/// group would leave the name space otherwise.
fn program_process(out: RawFd) -> io::Result<()> {
    let child = fork()?;
    if child == 0 {
        // SAFETY: a system call without pointers.
        return checked(unsafe { libc::setsid() }.into()).map(|_| ());
    }
    close_all_but(out);
    let status = wait_for(child);
    // SAFETY: the status is a local variable of this size.
    unsafe { libc::write(out, (&raw const status).cast(), size_of_val(&status)) };
    exit(0)
}

/// Waits until a child has ended. Others, whose parents have ended before them, are collected meanwhile.
fn wait_for(child: libc::pid_t) -> libc::c_int {
    loop {
        let mut status = 0;
        // SAFETY: the status is a local variable.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if ended == child || (ended < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINTR)) {
            return status;
        }
    }
}

/// How the program has ended; if the first process was ended before it could tell, how that one has.
fn wait_for_status(statuses: RawFd, first: libc::pid_t) -> libc::c_int {
    let mut status: libc::c_int = 0;
    let bytes = size_of_val(&status);
    // SAFETY: the status is a local variable of this size.
    let read = unsafe { libc::read(statuses, (&raw mut status).cast(), bytes) };
    // With the first process, the last of the others has ended.
    let of_first = wait_for(first);
    if read.cast_unsigned() == bytes { status } else { of_first }
}

/// Ends this process as another one has ended.
fn end_as(status: libc::c_int) -> ! {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // SAFETY: no handler is given.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: only signals this process.
        unsafe { libc::raise(signal) };
    }
    exit(libc::WEXITSTATUS(status))
}

fn exit(code: libc::c_int) -> ! {
    // SAFETY: no code of this process runs afterwards.
    unsafe { libc::_exit(code) }
}

/// A copy of this process. Unlike the C library's `fork` it calls no handlers, which were made for the parent.
pub(super) fn fork() -> io::Result<libc::pid_t> {
    let (flags, none) = (libc::SIGCHLD, 0);
    // SAFETY: without a stack, the copy uses its own one.
    let child = checked(unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) })?;
    libc::pid_t::try_from(child).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Lets no process look into this one, or into its copies. A program that is started can be looked into again.
fn hide() -> io::Result<()> {
    // SAFETY: only sets an attribute of this process.
    checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }.into()).map(|_| ())
}

/// Makes the system kill this process when its parent ends, which alone holds the other end of `pipe`.
fn end_with_parent(pipe: RawFd) -> io::Result<()> {
    // SAFETY: only sets an attribute of this process.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }.into())?;
    let mut parent = libc::pollfd { fd: pipe, events: 0, revents: 0 };
    // SAFETY: the entry is a local variable.
    unsafe { libc::poll(&raw mut parent, 1, 0) };
    // It may have ended before.
    if parent.revents & libc::POLLERR != 0 { exit(1) } else { Ok(()) }
}

/// Closes all descriptors but one, the standard ones included: their other ends wait for the program, not for this process.
fn close_all_but(kept: RawFd) {
    let kept = kept.cast_unsigned();
    for (first, last) in [(0, kept.wrapping_sub(1)), (kept + 1, u32::MAX)] {
        // SAFETY: a system call without pointers. All that this process uses afterwards is kept.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            // Linux before 5.9.
            for descriptor in first..=last.min(DESCRIPTORS) {
                // SAFETY: as above; fails for a number that is no descriptor.
                unsafe { libc::close(descriptor.cast_signed()) };
            }
        }
    }
}
