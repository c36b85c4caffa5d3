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
    /// ([`Sandbox::give_up_root`](super::Sandbox::give_up_root)).
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
    pub(super) const fn system_limits(&self) -> [SystemLimit; 5] {
        [
            (libc::RLIMIT_AS, self.memory_bytes),
            (libc::RLIMIT_FSIZE, self.file_bytes),
            (libc::RLIMIT_NOFILE, self.files),
            (libc::RLIMIT_NPROC, self.processes),
            (libc::RLIMIT_CORE, 0),
        ]
    }
}

/// In the child: sets limits, none of which is above the present one.
pub(super) fn set(limits: &[SystemLimit]) -> io::Result<()> {
    for (resource, value) in limits {
        let mut present = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the limit is a local variable.
        super::checked(unsafe { libc::getrlimit(*resource, &raw mut present) }.into())?;
        let value = present.rlim_max.min(*value);
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: the limit is a local variable.
        super::checked(unsafe { libc::setrlimit(*resource, &raw const limit) }.into())?;
    }
    Ok(())
}
