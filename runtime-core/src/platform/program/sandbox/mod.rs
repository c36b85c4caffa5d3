//! Sandboxes: how a program runs that processes, or is, code of strangers.
//!
//! A program in a sandbox sees the folders that it was given and those of the system's programs, headers and libraries, all of them
//! read-only but the ones that it may write. It has no network, sees no process but its own children, has no privileges and cannot
//! get any, and is limited in memory, files and processes. Each of these holds by more than one mechanism of Linux where that is
//! possible: name spaces, Landlock, seccomp, limits.
//!
//! [`Sandbox::confine`] prepares everything that allocates; `enter`, in the child, makes system calls only.

mod access;
mod confined_thread;
mod enter;
mod environment;
mod file_rules;
mod filter;
mod huge_pages;
mod limits;
mod part;
mod policy;
mod root;
mod tools;
mod user;

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::Duration;

use self::access::Layout;
use self::enter::Entry;
use self::file_rules::FileRules;
use self::filter::Filters;
use self::part::Parts;
use self::user::UserMaps;
use super::{OUTPUT_BYTES, Output, run_program, spawn_program};
use crate::{Error, ErrorKind, Result};

pub use self::confined_thread::{named_paths, on_confined_thread};
pub use self::filter::start_no_processes;
pub use self::huge_pages::huge_page_file;
pub use self::limits::SandboxLimits;
pub use self::part::{MissingPart, SandboxPart};
pub use self::policy::{SANDBOX_VARIABLE, SandboxPolicy};

/// How long the program may take that finds out what the system lacks. It does nothing.
const PROBE_DEADLINE: Duration = Duration::from_secs(20);

/// The folder in a sandbox that its program may write, and that is gone with it. Its size is bounded.
const SCRATCH: &str = "/.scratch";

/// What a program may do that is not trusted.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    readable: Vec<PathBuf>,
    /// The words of commands of compilers, whose files may be read.
    compilers: Vec<String>,
    writable: Vec<PathBuf>,
    limits: SandboxLimits,
    gives_up_root: bool,
    shows_machine: bool,
}

impl Sandbox {
    /// A sandbox whose program may use the system's programs, headers and libraries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the program read a file, or a folder with all that is below it.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.readable.push(path.into());
        self
    }

    /// Lets the program read and write a folder with all that is below it.
    #[must_use]
    pub fn write(mut self, folder: impl Into<PathBuf>) -> Self {
        self.writable.push(folder.into());
        self
    }

    /// Sets its limits.
    #[must_use]
    pub const fn limits(mut self, limits: SandboxLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Makes the program an ordinary user's if the superuser starts it: it opens what everybody may open.
    ///
    /// Without this it has no capabilities, but files of the superuser are its own, and the number of its processes has no limit.
    #[must_use]
    pub const fn give_up_root(mut self) -> Self {
        self.gives_up_root = true;
        self
    }

    /// Lets the program read what the system says of the machine: its processors, caches and memory.
    #[must_use]
    pub fn show_machine(mut self) -> Self {
        self.shows_machine = true;
        self.read_existing(["/sys/devices/system".into()])
    }

    /// Runs a command in the sandbox, as [`run_program`] does without one.
    ///
    /// # Errors
    /// `Unsupported` if the system lacks a part of the sandbox that `policy` requires, with the remedy; `InvalidArgument` for a path
    /// that cannot be given to the program; otherwise as for [`run_program`].
    pub fn run(
        &self,
        policy: SandboxPolicy,
        command: &mut Command,
        (deadline, bytes): (Duration, usize),
    ) -> Result<Output> {
        self.prepare(policy, command)?;
        let mut output = run_program(command, deadline, bytes).map_err(part::explained)?;
        if policy != SandboxPolicy::Off && !output.status.success() {
            explain_denial(&mut output);
        }
        Ok(output)
    }

    /// Starts a command in the sandbox, as [`spawn_program`] does without one.
    ///
    /// # Errors
    /// As for [`run`](Self::run), and for [`spawn_program`].
    pub fn spawn(&self, policy: SandboxPolicy, command: &mut Command) -> Result<Child> {
        self.prepare(policy, command)?;
        spawn_program(command).map_err(part::explained)
    }

    fn prepare(&self, policy: SandboxPolicy, command: &mut Command) -> Result<()> {
        match policy {
            SandboxPolicy::Off => Ok(()),
            SandboxPolicy::Required => self.confine(command, Parts::ALL),
            SandboxPolicy::BestEffort => self.confine(command, present()?.0),
        }
    }

    /// Makes a command start in the sandbox.
    fn confine(&self, command: &mut Command, parts: Parts) -> Result<()> {
        environment::clean(command);
        let folder = working_folder(command)?;
        let layout = Layout::new(&self.with_compilers().readable, &self.writable)?;
        let folder = layout.working_folder(&folder)?;
        let user = UserMaps::new(self.gives_up_root);
        check_use(&user, &folder)?;
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::OutOfResources, format!("cannot prepare a sandbox: {what}: {error}"))
        };
        let rules = match parts.has(SandboxPart::Landlock) {
            true => FileRules::new(&layout).map_err(|error| failed("Landlock", &error))?,
            false => FileRules::default(),
        };
        let filters = match parts.has(SandboxPart::Seccomp) {
            true => Filters::new().map_err(|error| {
                let lacking =
                    part::failure(SandboxPart::Seccomp, &io::Error::from_raw_os_error(libc::EOPNOTSUPP));
                failed("seccomp", &error).with_source(lacking)
            })?,
            false => Filters::none(),
        };
        let mut entry = Entry {
            parts,
            user,
            root: layout.root(self.shows_machine)?,
            folder: c_path(&folder)?,
            rules,
            filters,
            limits: self.limits.system_limits(parts.has(SandboxPart::UserNamespace)),
            status: -1,
        };
        #[allow(unsafe_code, reason = "prepares a child process")]
        // SAFETY: the function makes system calls only: it neither allocates nor takes locks.
        unsafe {
            command.pre_exec(move || entry.enter())
        };
        Ok(())
    }
}

/// What this system lacks for a sandbox: nothing if it is whole. Starts a program, once for each part that is missing.
#[must_use]
pub fn missing_sandbox_parts() -> Vec<MissingPart> {
    present().map_or_else(|error| vec![MissingPart::unknown(&error)], |present| present.1.clone())
}

/// The parts that a system has, and what it lacks.
type Present = (Parts, Vec<MissingPart>);

/// What this system has. It is found out once: what fails later is an error, and makes no sandbox smaller.
fn present() -> Result<&'static Present> {
    static PRESENT: OnceLock<Present> = OnceLock::new();
    if let Some(present) = PRESENT.get() {
        return Ok(present);
    }
    let found = find_parts(probe)?;
    Ok(PRESENT.get_or_init(|| found))
}

/// Tries a sandbox without the parts that the system is found to lack, until it works.
///
/// # Errors
/// Those of `probe` that tell of no missing part: as on a system that has no memory now.
fn find_parts(probe: impl Fn(Parts) -> Result<()>) -> Result<Present> {
    let (mut parts, mut missing) = (Parts::ALL, Vec::new());
    while let Err(error) = probe(parts) {
        match part::lacking(&error).filter(|(part, _)| parts.has(*part)) {
            Some((part, cause)) => {
                parts.remove(part);
                missing.push(MissingPart::new(part, &cause));
            }
            None => return Err(part::explained(error)),
        }
    }
    Ok((parts, missing))
}

/// Starts a program that does nothing.
fn probe(parts: Parts) -> Result<()> {
    let mut command = Command::new("/bin/sh");
    Sandbox::new().confine(command.args(["-c", ":"]).current_dir("/"), parts)?;
    let output = run_program(&mut command, PROBE_DEADLINE, OUTPUT_BYTES)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Failed, format!("/bin/sh: {}: {}", output.status, output.text()))),
    }
}

/// The folder in which a command runs.
fn working_folder(command: &Command) -> Result<PathBuf> {
    let folder = command.get_current_dir().map_or_else(std::env::current_dir, std::path::absolute);
    folder
        .map_err(|error| Error::new(ErrorKind::Io, format!("the working folder: {error}")).with_source(error))
}

/// What a program of the superuser has to be told, which can open everything without a sandbox.
const OF_SUPERUSER: &str = "in a sandbox, a program of the superuser opens only files of the superuser and those that all users may \
                            open; run the command as the user who owns the files, or let all read them (`chmod -R a+rX`)";

/// Checks that a program can work in a folder.
///
/// # Errors
/// `InvalidArgument` if it is another user's and closed to the program.
fn check_use(user: &UserMaps, folder: &Path) -> Result<()> {
    // What cannot be read now is explained when the program is started.
    match folder.metadata() {
        Ok(found) if !user.uses_folder(found.uid(), found.gid(), found.mode()) => {
            Err(Error::invalid(format!("the working folder \"{}\": {OF_SUPERUSER}", folder.display())))
        }
        _ => Ok(()),
    }
}

/// Says why a program of the superuser could not open a file, if that is what it says.
fn explain_denial(output: &mut Output) {
    if UserMaps::new(false).was_superuser() && output.text().contains("ermission denied") {
        output.stderr.extend_from_slice(format!("\nnote: {OF_SUPERUSER}\n").as_bytes());
    }
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::invalid(format!("{}: a path contains a zero byte", path.display())))
}

/// The last error of the C library, if `result` says that there is one.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(part: SandboxPart, number: i32) -> Error {
        let cause = part::failure(part, &io::Error::from_raw_os_error(number));
        Error::new(ErrorKind::Unavailable, "cannot run").with_source(cause)
    }

    #[test]
    fn parts_that_are_missing_are_left_out() {
        let probe =
            |parts: Parts| match (parts.has(SandboxPart::UserNamespace), parts.has(SandboxPart::Landlock)) {
                (true, _) => Err(failing(SandboxPart::UserNamespace, libc::EPERM)),
                (_, true) => Err(failing(SandboxPart::Landlock, libc::EOPNOTSUPP)),
                _ => Ok(()),
            };
        let (parts, missing) = find_parts(probe).unwrap();
        assert!(parts.has(SandboxPart::Seccomp) && !parts.has(SandboxPart::MountNamespace));
        assert_eq!(missing.len(), 2);
    }

    #[test]
    fn a_system_that_is_exhausted_lacks_nothing() {
        for number in [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE] {
            let probe = |parts: Parts| match parts.has(SandboxPart::PidNamespace) {
                true => Err(failing(SandboxPart::PidNamespace, number)),
                false => Ok(()),
            };
            let error = find_parts(probe).unwrap_err();
            assert!(error.message().contains("PID name spaces"), "{error}");
        }
        assert!(find_parts(|_| Err(Error::new(ErrorKind::Timeout, "slow"))).is_err());
    }
}
