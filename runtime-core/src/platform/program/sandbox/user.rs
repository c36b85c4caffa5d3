//! The user of a sandbox: an ordinary one, without capabilities, that stands for the user who has started it.

#![allow(unsafe_code, reason = "calls the C library")]

use std::ffi::CStr;
use std::io;

use super::checked;

/// The user and the group in the sandbox. Any but 0, whose programs have capabilities.
const INSIDE: u32 = 1000;

/// The user and the group `nobody`, which own no files.
const NOBODY: u32 = 65534;

/// Whose program it is, and the texts that make that user and group those of the sandbox.
#[derive(Debug)]
pub(super) struct UserMaps {
    was_superuser: bool,
    is_nobody: bool,
    users: String,
    groups: String,
}

impl UserMaps {
    /// Those of this process; of `nobody` in place of the superuser if that is to be given up.
    pub(super) fn new(gives_up_root: bool) -> Self {
        // SAFETY: only reads an ID.
        let user = unsafe { libc::geteuid() };
        // SAFETY: only reads an ID.
        let group = unsafe { libc::getegid() };
        let was_superuser = user == 0;
        let is_nobody = gives_up_root && was_superuser && knows_nobody();
        let (user, group) = if is_nobody { (NOBODY, NOBODY) } else { (user, group) };
        Self {
            was_superuser,
            is_nobody,
            users: format!("{INSIDE} {user} 1"),
            groups: format!("{INSIDE} {group} 1"),
        }
    }

    /// Whether the superuser has started it, whose privileges the program does not have.
    pub(super) const fn was_superuser(&self) -> bool {
        self.was_superuser
    }

    /// Whether the program may use a folder of this owner, group and mode.
    pub(super) const fn uses_folder(&self, owner: u32, group: u32, mode: u32) -> bool {
        let own = if self.is_nobody { NOBODY } else { 0 };
        !self.was_superuser || owner == own || mode & 0o001 != 0 || (group == own && mode & 0o010 != 0)
    }

    /// In the child: gives up further groups, and the superuser if that was asked for.
    pub(super) fn give_up(&self) -> io::Result<()> {
        // Fails for ordinary users, who have chosen their groups, and whose files these open.
        // SAFETY: no groups are read.
        unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) };
        if self.is_nobody { become_nobody() } else { Ok(()) }
    }

    /// In the child: moves it to a user name space.
    pub(super) fn enter(&self) -> io::Result<()> {
        unshare(libc::CLONE_NEWUSER)?;
        // Without it, a group that shuts somebody out could be left.
        write(c"/proc/self/setgroups", "deny")?;
        write(c"/proc/self/gid_map", &self.groups)?;
        write(c"/proc/self/uid_map", &self.users)
    }
}

/// Whether there is such a user and group here: in some containers the superuser is the only one, an ordinary user in truth.
fn knows_nobody() -> bool {
    ["/proc/self/uid_map", "/proc/self/gid_map"].iter().all(|file| {
        // Without `/proc` it is tried.
        std::fs::read_to_string(file).map_or(true, |map| has_id(&map, NOBODY))
    })
}

/// Whether a map of a user name space has this ID: its lines are the first one inside, the first one outside, and their number.
fn has_id(map: &str, id: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first.saturating_add(count)).contains(&id.into()))
    })
}

/// In the child: moves it to new name spaces.
pub(super) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a system call without pointers.
    checked(unsafe { libc::unshare(flags) }.into()).map(|_| ())
}

/// In the child: gives up the superuser. By raw system calls, since the C library would tell threads that are not here.
fn become_nobody() -> io::Result<()> {
    for call in [libc::SYS_setresgid, libc::SYS_setresuid] {
        // SAFETY: a system call without pointers.
        checked(unsafe { libc::syscall(call, NOBODY, NOBODY, NOBODY) })?;
    }
    // Its files in `/proc` are the superuser's otherwise.
    // SAFETY: only sets an attribute of this process.
    checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }.into()).map(|_| ())
}

/// In the child: where memory is short, the system ends its program before others. Without `/proc` it may not.
pub(super) fn be_ended_first() {
    let _ = write(c"/proc/self/oom_score_adj", "1000");
}

fn write(file: &CStr, text: &str) -> io::Result<()> {
    // SAFETY: the path is terminated and outlives the call.
    let file = checked(unsafe { libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) }.into())?;
    let file = i32::try_from(file).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the text outlives the call, and its length is given.
    let written = checked(unsafe { libc::write(file, text.as_ptr().cast(), text.len()) } as libc::c_long);
    // SAFETY: it was opened here, and is not used again.
    unsafe { libc::close(file) };
    written.map(|_| ())
}

/// In the child: gives up all capabilities, for its children as well.
pub(super) fn drop_capabilities() -> io::Result<()> {
    for capability in 0..64 {
        // SAFETY: only changes an attribute of this process. Fails behind the last capability.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
    #[repr(C)]
    struct Header {
        version: u32,
        process: i32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`.
    const VERSION: u32 = 0x2008_0522;
    let header = Header { version: VERSION, process: 0 };
    // Effective, permitted and inheritable ones, in two halves.
    let none = [0_u32; 6];
    // SAFETY: both structures are those of this version, and outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_tells_its_users() {
        let container = "         0     100000      65536\n     70000          1          1\n";
        for (map, expected) in
            [("0 0 4294967295\n", true), (container, true), ("0 1000 1\n", false), ("", false)]
        {
            assert_eq!(has_id(map, NOBODY), expected, "{map}");
        }
        assert!(!has_id(container, 65_536) && has_id(container, 70_000));
    }
}
