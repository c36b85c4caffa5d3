//! The limits of a program in a sandbox.

#![allow(unsafe_code, reason = "calls the C library")]

use std::io;

/// Bytes of a file that a program writes.
const FILE_BYTES: u64 = 2 << 30;
/// Descriptors of a process.
const FILES: u64 = 1024;
/// Processes and threads: more than a compiler starts that links in parallel.
const PROCESSES: u64 = 512;
/// Memory of a process, where the system does not tell how much there is.
const MEMORY_BYTES: u64 = 4 << 30;

/// The most that a program in a sandbox may use. Each process is limited for itself, except for the number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Bytes of address space of a process.
    pub memory_bytes: u64,
    /// Bytes of a file that it writes.
    pub file_bytes: u64,
    /// Open files of a process.
    pub files: u64,
    /// Processes and threads in the sandbox. Linux enforces it for ordinary users only
    /// ([`Sandbox::give_up_root`](super::Sandbox::give_up_root)), and counts by sandbox since 5.14: before, and without user name
    /// spaces, there is no limit, since it would be one for all processes of the user.
    pub processes: u64,
}

impl Default for SandboxLimits {
    /// Half of the machine's memory per process, files of 2 GiB, 1024 open files, 512 processes.
    fn default() -> Self {
        let memory_bytes = physical_memory().map_or(MEMORY_BYTES, |bytes| bytes / 2);
        Self { memory_bytes, file_bytes: FILE_BYTES, files: FILES, processes: PROCESSES }
    }
}

fn physical_memory() -> Option<u64> {
    let value = |name| {
        // SAFETY: only reads a setting of the system.
        u64::try_from(unsafe { libc::sysconf(name) }).ok()
    };
    value(libc::_SC_PHYS_PAGES)?.checked_mul(value(libc::_SC_PAGESIZE)?)
}

/// A limit as `setrlimit` takes it.
pub(super) type SystemLimit = (libc::__rlimit_resource_t, u64);

impl SandboxLimits {
    /// The limits for a child, with or without a user name space.
    pub(super) fn system_limits(&self, has_users: bool) -> Vec<SystemLimit> {
        let mut limits = vec![
            (libc::RLIMIT_AS, self.memory_bytes),
            (libc::RLIMIT_FSIZE, self.file_bytes),
            (libc::RLIMIT_NOFILE, self.files),
            (libc::RLIMIT_CORE, 0),
        ];
        if has_users && counts_by_name_space() {
            limits.push((libc::RLIMIT_NPROC, self.processes));
        }
        limits
    }
}

/// Whether the processes of a user name space are counted for themselves.
fn counts_by_name_space() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|release| is_since_5_14(&release))
}

fn is_since_5_14(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|word| word.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(14))
}

/// In the child: sets limits, none of which is above the present one.
pub(super) fn set(limits: &[SystemLimit]) -> io::Result<()> {
    for (resource, value) in limits {
        let mut present = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is a local variable.
        super::checked(unsafe { libc::getrlimit(*resource, &raw mut present) }.into())?;
        let limit =
            libc::rlimit { rlim_cur: present.rlim_cur.min(*value), rlim_max: present.rlim_max.min(*value) };
        // SAFETY: the limit is a local variable.
        super::checked(unsafe { libc::setrlimit(*resource, &raw const limit) }.into())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_limited_where_those_of_a_sandbox_are_counted() {
        let limits = |has_users| SandboxLimits::default().system_limits(has_users);
        let is_limited = |has_users| limits(has_users).iter().any(|limit| limit.0 == libc::RLIMIT_NPROC);
        assert!(!is_limited(false) && is_limited(true) == counts_by_name_space());
        for (release, since) in
            [("5.13.19-2", false), ("5.14.0", true), ("6.1.0-amd64", true), ("4.18.0-553.el8", false)]
        {
            assert_eq!(is_since_5_14(release), since, "{release}");
        }
    }
}
