//! The parts of a sandbox, and how a failed one is told.

use std::fmt;
use std::io;

use crate::Error;

/// A part of a sandbox that a system may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxPart {
    /// A user name space: without it an ordinary user may not use the other name spaces.
    UserNamespace,
    /// A mount name space, whose file system has only what the program may use.
    MountNamespace,
    /// A network name space, without a network.
    NetworkNamespace,
    /// An IPC name space, without System V's shared memory, semaphores and queues of others.
    IpcNamespace,
    /// A PID name space, in which no other process can be seen or signalled, and which ends with the program.
    PidNamespace,
    /// Landlock: rules for paths that hold for a process and its children.
    Landlock,
    /// Seccomp: system calls that a program does not need fail.
    Seccomp,
}

impl SandboxPart {
    const ALL: [Self; 7] = [
        Self::UserNamespace,
        Self::MountNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::PidNamespace,
        Self::Landlock,
        Self::Seccomp,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user name spaces",
            Self::MountNamespace => "mount name spaces",
            Self::NetworkNamespace => "network name spaces",
            Self::IpcNamespace => "IPC name spaces",
            Self::PidNamespace => "PID name spaces",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp filters",
        }
    }

    /// What makes a system have it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::UserNamespace => {
                "allow user name spaces: `sysctl user.max_user_namespaces=10000`, on Debian `sysctl \
                 kernel.unprivileged_userns_clone=1`, on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; \
                 start a container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
            }
            Self::MountNamespace => {
                "allow mounts in name spaces (Linux 5.12 or newer), and let all users enter the folders around what a program \
                 is given; start a container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`"
            }
            Self::NetworkNamespace => "use a kernel with CONFIG_NET_NS, and raise user.max_net_namespaces",
            Self::IpcNamespace => "use a kernel with CONFIG_IPC_NS, and raise user.max_ipc_namespaces",
            Self::PidNamespace => "use a kernel with CONFIG_PID_NS, and raise user.max_pid_namespaces",
            Self::Landlock => {
                "use Linux 5.13 or newer, with `landlock` in the list of the boot parameter `lsm=` (or CONFIG_LSM)"
            }
            Self::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER",
        }
    }
}

impl fmt::Display for SandboxPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a system lacks for a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPart {
    /// The part; `None` if it cannot be told which one it is.
    pub part: Option<SandboxPart>,
    /// What the system said.
    pub cause: String,
    /// What helps.
    pub remedy: &'static str,
}

impl MissingPart {
    pub(super) fn new(part: SandboxPart, cause: &io::Error) -> Self {
        Self { part: Some(part), cause: cause.to_string(), remedy: part.remedy() }
    }

    pub(super) fn unknown(error: &Error) -> Self {
        Self { part: None, cause: error.to_string(), remedy: "no sandbox was tried" }
    }
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.part.map_or("a sandbox", SandboxPart::name);
        write!(f, "{name}: {}; {}", self.cause, self.remedy)
    }
}

/// A set of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts(u32);

impl Parts {
    pub(super) const ALL: Self = Self(u32::MAX);

    pub(super) const fn has(self, part: SandboxPart) -> bool {
        self.0 & (1 << part as u32) != 0
    }

    /// Removes a part, and what it is needed for.
    pub(super) fn remove(&mut self, part: SandboxPart) {
        self.0 &= !(1 << part as u32);
        if part == SandboxPart::UserNamespace {
            use SandboxPart::{IpcNamespace, MountNamespace, NetworkNamespace, PidNamespace};
            for other in [MountNamespace, NetworkNamespace, IpcNamespace, PidNamespace] {
                self.remove(other);
            }
        }
    }
}

/// Bits of an error number that are those of the system. The standard library passes nothing but a number from a child that does
/// not start, so the others tell the part.
const NUMBER_BITS: u32 = 16;

/// An error that tells which part of a sandbox has failed.
pub(super) fn failure(part: SandboxPart, error: &io::Error) -> io::Error {
    let number = error.raw_os_error().unwrap_or(libc::EINVAL);
    io::Error::from_raw_os_error(number | (part as i32 + 1) << NUMBER_BITS)
}

/// The part that has failed, and the system's error.
fn decode(error: &io::Error) -> Option<(SandboxPart, io::Error)> {
    let number = error.raw_os_error()?;
    let index = usize::try_from(number >> NUMBER_BITS).ok()?.checked_sub(1)?;
    let part = SandboxPart::ALL.get(index)?;
    Some((*part, io::Error::from_raw_os_error(number & ((1 << NUMBER_BITS) - 1))))
}

/// As [`decode`], of an error of a program that was not started.
pub(super) fn failed(error: &Error) -> Option<(SandboxPart, io::Error)> {
    decode(std::error::Error::source(error)?.downcast_ref::<io::Error>()?)
}

/// As [`failed`], if the system does not have the part, or does not allow it: one that is exhausted may have it.
pub(super) fn lacking(error: &Error) -> Option<(SandboxPart, io::Error)> {
    const EXHAUSTED: [i32; 5] = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::EINTR];
    failed(error).filter(|(_, cause)| cause.raw_os_error().is_none_or(|number| !EXHAUSTED.contains(&number)))
}

/// The error of a program that was not started, with the words for a part of the sandbox that has failed.
pub(super) fn explained(error: Error) -> Error {
    match failed(&error) {
        Some((part, cause)) => {
            let message = format!("no sandbox: {}", MissingPart::new(part, &cause));
            Error::unsupported(message).with_source(cause)
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn an_error_number_tells_the_part() {
        for part in SandboxPart::ALL {
            let (told, cause) = decode(&failure(part, &io::Error::from_raw_os_error(libc::EPERM))).unwrap();
            assert_eq!((told, cause.raw_os_error()), (part, Some(libc::EPERM)));
            assert!(part.remedy().len() > 20);
        }
        assert!(decode(&io::Error::from_raw_os_error(libc::ENOENT)).is_none());
    }

    #[test]
    fn a_program_that_was_not_started_tells_the_part_and_the_remedy() {
        let cause = failure(SandboxPart::Landlock, &io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        let error = explained(Error::new(ErrorKind::Unavailable, "cannot run").with_source(cause));
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("Landlock") && error.message().contains("lsm="), "{error}");
        let other = io::Error::from_raw_os_error(libc::ENOENT);
        let error = explained(Error::new(ErrorKind::Unavailable, "cannot run").with_source(other));
        assert_eq!(error.message(), "cannot run");
    }

    #[test]
    fn without_users_there_are_no_name_spaces() {
        let mut parts = Parts::ALL;
        parts.remove(SandboxPart::UserNamespace);
        let left = SandboxPart::ALL.into_iter().filter(|part| parts.has(*part));
        assert_eq!(left.collect::<Vec<_>>(), [SandboxPart::Landlock, SandboxPart::Seccomp]);
    }
}
