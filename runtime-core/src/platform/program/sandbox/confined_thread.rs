//! Compilers that are libraries: they run in this process, on a thread that reads no other files than they need.

#![allow(unsafe_code, reason = "calls the C library")]

use std::path::PathBuf;

use super::access::Layout;
use super::file_rules::FileRules;
use super::{SandboxPolicy, checked};
use crate::{Error, ErrorKind, Result};

/// What drivers need beside the folders of the system.
const DRIVERS: [&str; 6] = ["/dev", "/proc", "/sys", "/opt", "/etc/OpenCL", "/etc/nvidia"];

/// Runs `work`, which compiles code that is not trusted, on a thread that can read only the system's programs, headers and libraries, what
/// drivers need, and the files and folders that `readable` returns. Of these, paths that do not exist are ignored, and so is `/`.
///
/// If the [`SandboxPolicy`] of the process is `Off`, or best effort without Landlock, `work` runs on this thread, unrestricted.
/// Landlock restricts reading only: compilers write into caches of their own.
///
/// # Errors
/// Those of the policy and of the system; `Unsupported` if it requires a sandbox and the system has no Landlock.
pub fn on_confined_thread<R: Send>(
    readable: impl FnOnce() -> Vec<PathBuf>,
    work: impl FnOnce() -> R + Send,
) -> Result<R> {
    let policy = SandboxPolicy::of_process()?;
    if policy == SandboxPolicy::Off {
        return Ok(work());
    }
    let mut readable = readable();
    // The root of the file system has no parent.
    readable.retain(|path| path.canonicalize().is_ok_and(|path| path.parent().is_some()));
    readable.extend(DRIVERS.iter().map(PathBuf::from).filter(|path| path.exists()));
    let rules = match FileRules::of_reading(&Layout::new(&readable, &[])?) {
        Ok(rules) => rules,
        Err(_) if policy == SandboxPolicy::BestEffort => return Ok(work()),
        Err(error) => return Err(Error::unsupported(format!("a compiler cannot be confined: {error}"))),
    };
    let confined = move || {
        // SAFETY: changes this thread only, and takes no pointers.
        checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
        rules.enter(false)?;
        Ok(work())
    };
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::OutOfResources, format!("a compiler cannot be confined: {error}"))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("compiler".to_owned()).spawn_scoped(scope, confined);
        match thread.map_err(failed)?.join() {
            Ok(result) => result.map_err(failed),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// The files and folders that an option of a compiler names, as in `-I "FOLDER"`, `-IFOLDER` and `--pre-include=FILE`. What does not exist
/// may be among them.
#[must_use]
pub fn named_paths(option: &str) -> Vec<PathBuf> {
    let quoted = option.split('"').skip(1).step_by(2);
    let words = option.split(char::is_whitespace).flat_map(|word| {
        let value = word.split_once('=').map_or(word, |(_, value)| value);
        [value.trim_matches('"'), word.strip_prefix("-I").unwrap_or(value)]
    });
    quoted.chain(words).filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::read_to_string;

    use super::*;

    #[test]
    fn options_name_paths_in_several_ways() {
        for (option, path) in [
            ("-I /a", "/a"),
            ("-I/a", "/a"),
            ("-I \"/a b\"", "/a b"),
            ("--pre-include=/a/b.h", "/a/b.h"),
            ("-D X -I \"c\"", "c"),
        ] {
            assert!(named_paths(option).contains(&PathBuf::from(path)), "{option}");
        }
    }

    #[test]
    fn rules_hold_on_one_thread_and_allow_what_is_given() {
        let [given, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [given, other] = [&given, &other].map(|folder| folder.path().join("text"));
        for path in [&given, &other] {
            std::fs::write(path, "text").unwrap();
        }
        let Ok(layout) = Layout::new(std::slice::from_ref(&given), &[]) else { panic!("{given:?}") };
        // Some systems lack Landlock.
        let Ok(rules) = FileRules::of_reading(&layout) else { return };
        let (given_path, other_path) = (given.clone(), other.clone());
        let read = std::thread::spawn(move || {
            // SAFETY: changes this thread only.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
            rules.enter(false).unwrap();
            let written = std::fs::write(other_path.with_extension("new"), "written").is_ok();
            (read_to_string(given_path).is_ok(), read_to_string(other_path).is_ok(), written)
        });
        assert_eq!(read.join().unwrap(), (true, false, true));
        assert_eq!(read_to_string(other).unwrap(), "text", "on another thread");
    }
}
