//! Landlock: what a program may do with which files.

#![allow(unsafe_code, reason = "calls the C library")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};

use super::access::Layout;
use super::checked;
use super::root::Access;

/// The newest version of Landlock whose rules are known here.
const NEWEST: ABI = ABI::V6;

/// Landlock's rules, made before the child is.
#[derive(Debug, Default)]
pub(super) struct FileRules {
    /// `None` on a system without Landlock.
    rules: Option<OwnedFd>,
    /// What the system's version knows of.
    known: u64,
}

impl FileRules {
    /// Rules for the files of a sandbox. They are about files, not about paths, and so hold in any name space.
    ///
    /// # Errors
    /// Those of Landlock, which also says that the system does not have it.
    pub(super) fn new(layout: &Layout) -> Result<Self, Box<dyn std::error::Error>> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?;
        let mut created = ruleset.create()?;
        for (path, access) in &layout.places {
            let allowed = allowed(*access, path.is_dir());
            created = created.add_rule(PathBeneath::new(PathFd::new(path)?, allowed))?;
        }
        Ok(Self { rules: created.into(), known: AccessFs::from_all(version()).bits() })
    }

    /// Rules for reading the files of a sandbox: everything but reading is as before.
    ///
    /// # Errors
    /// Those of Landlock.
    pub(super) fn of_reading(layout: &Layout) -> Result<Self, Box<dyn std::error::Error>> {
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::ReadFile)?;
        let mut created = ruleset.create()?;
        for path in layout.places.keys() {
            created = created.add_rule(PathBeneath::new(PathFd::new(path)?, AccessFs::ReadFile))?;
        }
        Ok(Self { rules: created.into(), known: BitFlags::from(AccessFs::ReadFile).bits() })
    }

    /// In the child: restricts it for ever. In a file system of its own, it may write the scratch folder and read `/proc`.
    pub(super) fn enter(&self, has_own_root: bool) -> io::Result<()> {
        let Some(rules) = &self.rules else { return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)) };
        if has_own_root {
            self.allow(c"/.scratch", allowed(Access::Write, true))?;
            self.allow(c"/proc", AccessFs::ReadFile | AccessFs::ReadDir)?;
        }
        let (rules, flags) = (rules.as_raw_fd(), 0);
        // SAFETY: a system call without pointers.
        checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, flags) }).map(|_| ())
    }

    fn allow(&self, path: &CStr, access: BitFlags<AccessFs>) -> io::Result<()> {
        /// `struct landlock_path_beneath_attr`.
        #[repr(C, packed)]
        struct Rule {
            allowed: u64,
            folder: i32,
        }
        /// `LANDLOCK_RULE_PATH_BENEATH`.
        const PATH_BENEATH: libc::c_int = 1;
        // SAFETY: the path is terminated and outlives the call.
        let folder = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
        let folder = i32::try_from(checked(folder.into())?).map_err(|_| io::ErrorKind::InvalidInput)?;
        let rule = Rule { allowed: access.bits() & self.known, folder };
        let (rules, flags) = (self.rules.as_ref().map_or(-1, OwnedFd::as_raw_fd), 0);
        // SAFETY: the structure is the one of this kind of rule, and outlives the call.
        checked(unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, rules, PATH_BENEATH, &raw const rule, flags)
        })
        .map(|_| ())
    }
}

/// The version of Landlock that the system has, or the newest known one if that is newer.
fn version() -> ABI {
    /// `LANDLOCK_CREATE_RULESET_VERSION`.
    const VERSION: libc::c_int = 1;
    let (none, bytes) = (std::ptr::null::<u8>(), 0_usize);
    // SAFETY: asks for the version, for which there is no structure.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, bytes, VERSION) };
    ABI::from(i32::try_from(version.max(0)).unwrap_or(i32::MAX)).min(NEWEST)
}

fn allowed(access: Access, is_folder: bool) -> BitFlags<AccessFs> {
    let special = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
    let all = match access {
        Access::Read => AccessFs::from_read(NEWEST),
        Access::Device => AccessFs::ReadFile | AccessFs::WriteFile,
        Access::Write => AccessFs::from_all(NEWEST) & !special,
    };
    if is_folder { all } else { all & AccessFs::from_file(NEWEST) }
}
