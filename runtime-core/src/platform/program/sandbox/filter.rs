//! Seccomp: the system calls that a program in a sandbox has no use for.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};

use crate::{Error, Result};

/// Reach into other processes; change what the system mounts, loads, counts or calls the time; need a driver's or an interpreter's
/// worth of code in the kernel; look at files in other ways than by their paths; reach servers, also those whose sockets are among the
/// files that may be read (a pair of connected sockets can be made).
const REFUSED: [libc::c_long; 61] = [
    libc::SYS_socket,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_personality,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_memfd_secret,
    // Their signals may be SIGCONT, with which a stopped process goes on.
    libc::SYS_timer_create,
    libc::SYS_mq_notify,
];

/// Those that only x86-64 has: ports and segments.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [libc::c_long; 4] =
    [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [libc::c_long; 0] = [];

/// Start programs, or reach others.
const STARTING: [libc::c_long; 6] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_socket,
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_pidfd_open,
];
/// Start processes. Other processors have `clone` alone.
#[cfg(target_arch = "x86_64")]
const STARTING_HERE: [libc::c_long; 2] = [libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const STARTING_HERE: [libc::c_long; 0] = [];

/// Flags of `clone` for new name spaces, in which a process would have capabilities.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // `CLONE_NEWTIME`, which `clone3` alone takes.
    0x80,
];

/// Requests of `ioctl` that type on a terminal in the user's place, or after which a descriptor sends signals, which may be SIGCONT.
const REQUESTS: [libc::c_ulong; 5] = [
    libc::TIOCSTI,
    0x541c, /* TIOCLINUX */
    0x5452, /* FIOASYNC */
    0x8901, /* FIOSETOWN */
    0x8902, /* SIOCSPGRP */
];

/// Commands of `fcntl` of the second kind: `F_SETOWN`, `F_SETSIG` and `F_SETOWN_EX`.
const COMMANDS: [u64; 3] = [8, 10, 15];

/// The filters of a sandbox.
#[derive(Debug)]
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// # Errors
    /// Those of `seccompiler`, as on a processor that it does not know.
    pub(super) fn new() -> std::result::Result<Self, seccompiler::Error> {
        let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        for call in REFUSED.into_iter().chain(REFUSED_HERE) {
            refused.insert(call, Vec::new());
        }
        let flags = NAMESPACES.map(|flag| u64::from(flag.cast_unsigned()));
        let flags = flags.map(|flag| condition(0, SeccompCmpOp::MaskedEq(flag), flag));
        refused.insert(libc::SYS_clone, rules(flags)?);
        let requests = REQUESTS.map(|request| condition(1, SeccompCmpOp::Eq, request));
        refused.insert(libc::SYS_ioctl, rules(requests)?);
        let commands = COMMANDS.map(|command| condition(1, SeccompCmpOp::Eq, command));
        refused.insert(libc::SYS_fcntl, rules(commands)?);
        // It takes pages away from all who have mapped them.
        let removed = condition(2, SeccompCmpOp::Eq, u64::from(libc::MADV_REMOVE.cast_unsigned()));
        refused.insert(libc::SYS_madvise, rules([removed])?);
        let refused = program(refused, libc::EPERM)?;
        // Its flags are in memory, where no filter sees them. The C library uses `clone` where it does not exist.
        let unknown = program([(libc::SYS_clone3, Vec::new())].into(), libc::ENOSYS)?;
        Ok(Self(vec![refused, unknown]))
    }

    /// None, for a system that cannot have them.
    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// In the child: applies them for ever.
    pub(super) fn enter(&self) -> std::io::Result<()> {
        for filter in &self.0 {
            apply_filter(filter).map_err(|_| std::io::Error::last_os_error())?;
        }
        Ok(())
    }
}

/// Makes this process start no other processes and programs from now on, and make no sockets; threads it may start.
///
/// # Errors
/// `Unsupported` if the system has no filters of system calls.
pub fn start_no_processes() -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::unsupported(format!("system calls cannot be filtered: {error}"))
    };
    let filter = processes().map_err(|error| failed(&error))?;
    seccompiler::apply_filter_all_threads(&filter).map_err(|error| failed(&error))
}

fn processes() -> std::result::Result<BpfProgram, seccompiler::Error> {
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        [(libc::SYS_clone, rules([condition(0, SeccompCmpOp::MaskedEq(thread), 0)])?)].into();
    for call in STARTING.into_iter().chain(STARTING_HERE) {
        refused.insert(call, Vec::new());
    }
    program(refused, libc::EPERM)
}

fn condition(
    argument: u8,
    operation: SeccompCmpOp,
    value: u64,
) -> std::result::Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
}

/// One rule per condition: any of them is enough.
fn rules<const COUNT: usize>(
    conditions: [std::result::Result<SeccompCondition, seccompiler::BackendError>; COUNT],
) -> std::result::Result<Vec<SeccompRule>, seccompiler::BackendError> {
    conditions.into_iter().map(|condition| SeccompRule::new(vec![condition?])).collect()
}

/// A filter after which these system calls fail with `error`, and with them all of x32, whose numbers are others.
fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: i32,
) -> std::result::Result<BpfProgram, seccompiler::Error> {
    let action = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, std::env::consts::ARCH.try_into()?)?;
    let checked: BpfProgram = filter.try_into()?;
    Ok(without_x32().into_iter().chain(checked).collect())
}

#[cfg(target_arch = "x86_64")]
fn without_x32() -> Vec<sock_filter> {
    const X32: u32 = 0x4000_0000;
    let code = |code: u32| u16::try_from(code).unwrap_or_default();
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let (load, jump) =
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K);
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        // The number of the system call comes first in the data.
        instruction(code(load), 0, 0, 0),
        instruction(code(jump), 0, 1, X32),
        instruction(code(libc::BPF_RET | libc::BPF_K), 0, 0, refuse),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn without_x32() -> Vec<sock_filter> {
    Vec::new()
}
