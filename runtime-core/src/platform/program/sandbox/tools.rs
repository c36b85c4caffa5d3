//! What a compiler needs beside the code: its installation, and the files that its flags and variables name.

use std::path::{Path, PathBuf};

use super::Sandbox;
use crate::platform::program::find_in_path;

/// What an installation has beside the folder of its programs.
const INSTALLED: [&str; 5] = ["lib", "lib64", "libexec", "include", "share"];
/// Programs that compilers start, and find as a shell does.
const TOOLS: [&str; 2] = ["as", "ld"];
/// Variables that list folders with headers, libraries and programs.
const FOLDERS: [&str; 6] =
    ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH"];
/// Flags that are followed by a path, in the same word or in the next one.
const WITH_PATH: [&str; 11] =
    ["-iquote", "-isystem", "-idirafter", "-include", "-imacros", "-isysroot", "-I", "-L", "-B", "-T", "@"];

impl Sandbox {
    /// Lets a compiler run: the program itself and what is installed with it, the assembler and the linker, and the folders of the
    /// variables that compilers read.
    #[must_use]
    pub fn compiler(self, program: &str) -> Self {
        let programs = std::iter::once(program).chain(TOOLS).filter_map(find_in_path);
        let mut paths: Vec<PathBuf> = programs.flat_map(|program| installation(&program)).collect();
        for variable in FOLDERS {
            let value = std::env::var_os(variable).unwrap_or_default();
            paths.extend(std::env::split_paths(&value).filter(|path| path.is_absolute()));
        }
        let sandbox = self.read_existing(paths);
        // There, `-mcpu=native` reads `/proc/cpuinfo`; on x86-64 it asks the processor.
        if cfg!(target_arch = "aarch64") { sandbox.show_machine() } else { sandbox }
    }

    /// Lets a compiler read the files and folders that its flags name, relative to `folder`.
    #[must_use]
    pub fn flags<'a>(self, flags: impl IntoIterator<Item = &'a str>, folder: &Path) -> Self {
        let paths = named(flags.into_iter()).into_iter().map(|path| folder.join(path));
        self.read_existing(paths)
    }

    /// Lets the program read what exists of these. Its own message says what does not.
    #[must_use]
    pub fn read_existing(self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        paths.into_iter().filter(|path| path.exists()).fold(self, Self::read)
    }
}

/// The paths that flags name.
fn named<'a>(mut flags: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(flag) = flags.next() {
        let defines = flag.starts_with("-D");
        match WITH_PATH.iter().find_map(|name| flag.strip_prefix(name)) {
            Some("") => paths.extend(flags.next().map(PathBuf::from)),
            Some(path) => paths.push(path.into()),
            None if !flag.starts_with('-') => paths.push(flag.into()),
            None if defines => {}
            None => paths.extend(flag.split_once('=').map(|(_, path)| PathBuf::from(path))),
        }
    }
    paths.retain(|path| !path.as_os_str().is_empty());
    paths
}

/// A program, the folder it is in, and what is installed beside that.
fn installation(program: &Path) -> Vec<PathBuf> {
    let mut paths = vec![program.to_owned()];
    let programs = program.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned()));
    if let Some(folder) = programs.filter(|folder| folder.ends_with("bin"))
        && let Some(prefix) = folder.parent()
    {
        paths.extend(INSTALLED.map(|name| prefix.join(name)));
        paths.extend(machine_folders(prefix));
        paths.push(folder);
    }
    paths
}

/// The folders of an installation for a machine, such as `x86_64-linux-gnu`.
fn machine_folders(prefix: &Path) -> Vec<PathBuf> {
    let entries = prefix.read_dir().into_iter().flatten().flatten();
    let is_machine = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.matches('-').count() >= 2 && path.is_dir()
    };
    entries.map(|entry| entry.path()).filter(is_machine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_flags() {
        let named = |text: &str| {
            named(text.split_whitespace()).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named("-O3 -DX=/x -I/a -I b -isystem /c -include d.h"), ["/a", "b", "/c", "d.h"]);
        assert_eq!(named("--sysroot=/e -fplugin=/f.so /g.o @h"), ["/e", "/f.so", "/g.o", "h"]);
        assert!(named("-O2 -g -pthread").is_empty());
    }

    #[test]
    fn an_installation_is_what_lies_beside_its_programs() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        for name in ["bin", "riscv64-unknown-elf", "home"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        let program = folder.join("bin/cc");
        std::fs::write(&program, "").unwrap();
        let paths = installation(&program);
        for name in ["bin", "libexec", "riscv64-unknown-elf"] {
            assert!(paths.contains(&folder.join(name)), "{name}");
        }
        assert!(!paths.contains(&folder.join("home")));
        let alone = folder.join("cc");
        std::fs::write(&alone, "").unwrap();
        assert_eq!(installation(&alone), [alone]);
    }
}
