//! A file of memory with huge pages. `memfd_create` gives small ones unless the system's administrator has changed
//! `transparent_hugepage/shmem_enabled`; a `tmpfs` of one's own has an option, but mounting one needs privileges, which a process has
//! in a user name space of its own. So a child makes the file, and sends it.

#![allow(unsafe_code, reason = "calls functions of the system")]

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use super::checked;
use super::enter::fork;
use super::user::{UserMaps, unshare};

/// Operations of `fsconfig`, from `linux/mount.h`.
const SET_STRING: libc::c_uint = 1;
const CREATE: libc::c_uint = 6;
/// `FSOPEN_CLOEXEC` and `FSMOUNT_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_uint = 1;

/// Bytes of a descriptor.
const DESCRIPTOR: libc::c_uint = 4;

/// Room for a control message with a descriptor, aligned as its header.
type Control = [u64; 4];

/// A file of memory in huge pages, of this size, which no other process can open.
///
/// # Errors
/// Any error of the system, as where name spaces, or huge pages, are forbidden.
pub fn huge_page_file(bytes: usize) -> io::Result<File> {
    let plan = Plan::new(bytes)?;
    let (ours, theirs) = UnixStream::pair()?;
    // The child makes system calls only, and allocates nothing.
    match fork()? {
        0 => {
            // A parent that receives nothing knows that it has failed.
            let _ = plan.mounted_file().and_then(|file| send(&theirs, &file));
            // SAFETY: no code of this process runs afterwards.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(theirs);
            let received = receive(&ours);
            // SAFETY: no status is asked for.
            unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
            received
        }
    }
}

/// What a child needs to know, which must not allocate.
struct Plan {
    bytes: libc::off_t,
    size: CString,
    user: UserMaps,
}

impl Plan {
    fn new(bytes: usize) -> io::Result<Self> {
        // Whole huge pages, and one for what the file system needs itself.
        let size = CString::new(format!("{}", bytes.next_multiple_of(2 << 20) + (2 << 20)))?;
        let bytes = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(Self { bytes, size, user: UserMaps::new(false) })
    }

    /// In the child: the file, on a mount that nobody else sees.
    fn mounted_file(&self) -> io::Result<OwnedFd> {
        // The superuser can mount without.
        if !self.user.was_superuser() {
            self.user.enter()?;
            unshare(libc::CLONE_NEWNS)?;
        }
        // SAFETY: the name is terminated and outlives the call.
        let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), CLOSE_ON_EXEC) })?;
        configure(&context, SET_STRING, Some((c"huge", c"within_size")))?;
        configure(&context, SET_STRING, Some((c"size", &self.size)))?;
        configure(&context, CREATE, None)?;
        // SAFETY: a system call without pointers.
        let mount = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, 0) };
        let mount = owned(mount)?;
        let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
        // SAFETY: the path is terminated and outlives the call.
        let file = unsafe { libc::openat(mount.as_raw_fd(), c".".as_ptr(), flags, 0o600) };
        let file = owned(file.into())?;
        // Now, not when a page is used: that would end the process.
        // SAFETY: a system call without pointers.
        checked(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, self.bytes) }.into())?;
        Ok(file)
    }
}

fn configure(context: &OwnedFd, operation: libc::c_uint, option: Option<(&CStr, &CStr)>) -> io::Result<()> {
    let (key, value) =
        option.map_or((ptr::null(), ptr::null()), |(key, value)| (key.as_ptr(), value.as_ptr()));
    let context = context.as_raw_fd();
    // SAFETY: the texts are terminated and outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_fsconfig, context, operation, key, value, 0) }).map(|_| ())
}

fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let number = RawFd::try_from(checked(result)?).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// A message of one byte, with room for a descriptor.
fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: a zeroed structure is a valid one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (part, 1);
    (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of::<Control>());
    message
}

fn send(stream: &UnixStream, file: &OwnedFd) -> io::Result<()> {
    let (mut byte, mut control): (u8, Control) = (0, Control::default());
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut message = message(&mut part, &mut control);
    // SAFETY: computes a size.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(DESCRIPTOR) } as usize;
    // SAFETY: the message has room for a header.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: computes a size.
    let length = unsafe { libc::CMSG_LEN(DESCRIPTOR) } as usize;
    let filled =
        libc::cmsghdr { cmsg_len: length, cmsg_level: libc::SOL_SOCKET, cmsg_type: libc::SCM_RIGHTS };
    // SAFETY: the header is in `control`.
    unsafe { header.write(filled) };
    // SAFETY: the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: there is room for a descriptor.
    unsafe { data.cast::<RawFd>().write_unaligned(file.as_raw_fd()) };
    // SAFETY: all that the message names lives in this function.
    checked(unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, 0) } as libc::c_long).map(|_| ())
}

fn receive(stream: &UnixStream) -> io::Result<File> {
    let (mut byte, mut control): (u8, Control) = (0, Control::default());
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut message = message(&mut part, &mut control);
    // SAFETY: all that the message names lives in this function.
    checked(unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) }
        as libc::c_long)?;
    // SAFETY: the system has filled the message.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    // SAFETY: the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: the only message that is sent has a descriptor.
    let number = unsafe { data.cast::<RawFd>().read_unaligned() };
    owned(number.into()).map(File::from)
}
