//! The environment of a program in a sandbox.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

/// The variables that list folders with headers, libraries and programs for compilers.
pub(super) const LISTS: [&str; 6] =
    ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH"];

/// Others that are passed on: where programs are, and how messages and dates are written.
const PASSED: [&str; 7] =
    ["LANG", "LC_ALL", "TZ", "SOURCE_DATE_EPOCH", "FORCE_SOURCE_DATE", "GCC_EXEC_PREFIX", "SDKROOT"];

/// Whether a variable, also one that is given to the command itself, changes what the dynamic loader loads.
fn is_loaders(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"LD_") || name == "GLIBC_TUNABLES" || name == "MALLOC_TRACE"
}

/// Leaves a command the variables that it was given itself, and some of this process's.
pub(super) fn clean(command: &mut Command) {
    let given: Vec<(OsString, Option<OsString>)> = command
        .get_envs()
        .filter(|(name, _)| !is_loaders(name))
        .map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned)))
        .collect();
    command.env_clear();
    command.envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    let lists = LISTS.iter().chain(&["PATH"]);
    command.envs(lists.filter_map(|name| Some((name, absolute(&std::env::var_os(name)?)?))));
    // A cache of compiled code has no folder here.
    command.env("CCACHE_DISABLE", "1");
    for (name, value) in given {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// The absolute folders of a list; `None` without any. A program's working folder may be a stranger's, who puts an assembler there.
fn absolute(list: &OsStr) -> Option<OsString> {
    let folders: Vec<PathBuf> = std::env::split_paths(list).filter(|folder| folder.is_absolute()).collect();
    if folders.is_empty() { None } else { std::env::join_paths(folders).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_a_list_are_absolute() {
        for (list, expected) in
            [(":/a::b:./c:/d/../e:", Some("/a:/d/../e")), ("", None), (".:", None), ("/a", Some("/a"))]
        {
            assert_eq!(absolute(OsStr::new(list)).as_deref(), expected.map(OsStr::new), "{list}");
        }
    }

    #[test]
    fn a_program_gets_what_it_was_given_but_for_variables_of_the_loader() {
        let mut command = Command::new("x");
        command
            .env("TMPDIR", "/t")
            .env("LD_PRELOAD", "/evil.so")
            .env("LD_AUDIT", "/evil.so")
            .env("SECRET", "1");
        command.env_remove("LANG");
        clean(&mut command);
        let value =
            |wanted: &str| command.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
        assert_eq!((value("TMPDIR"), value("SECRET")), (Some(OsStr::new("/t")), Some(OsStr::new("1"))));
        assert_eq!((value("LD_PRELOAD"), value("LD_AUDIT"), value("LANG")), (None, None, None));
        assert!(value("PATH").is_some());
        assert!(value("CARGO_MANIFEST_DIR").is_none(), "of ours, only some are passed on");
    }
}
