//! What a compiler needs beside the code: its installation, and the files that its flags and variables name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use parking_lot::Mutex;

use super::environment::LISTS;
use super::{PROBE_DEADLINE, Sandbox};
use crate::platform::program::{OUTPUT_BYTES, find_in_path, run_program};

/// What an installation has beside the folder of its programs.
const INSTALLED: [&str; 5] = ["lib", "lib64", "libexec", "include", "share"];
/// Programs that compilers start, and find as a shell does.
const TOOLS: [&str; 2] = ["as", "ld"];
/// What a C compiler is asked for the folders that it uses. Not every one knows each of these.
const QUESTIONS: [&[&str]; 3] =
    [&["-E", "-v", "-x", "c", "/dev/null"], &["-print-search-dirs"], &["-print-sysroot"]];
/// Flags that are followed by a path, in the same word or in the next one.
const WITH_PATH: [&str; 11] =
    ["-iquote", "-isystem", "-idirafter", "-include", "-imacros", "-isysroot", "-I", "-L", "-B", "-T", "@"];

impl Sandbox {
    /// Lets a compiler run: the programs among the words of its command with what is installed with them, the assembler and the
    /// linker, and the folders of the variables that compilers read.
    #[must_use]
    pub fn compiler<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.compilers.extend(words.into_iter().map(str::to_owned));
        // There, `-mcpu=native` reads `/proc/cpuinfo`; on x86-64 it asks the processor.
        if cfg!(target_arch = "aarch64") { self.show_machine() } else { self }
    }

    /// Lets a compiler read the files and folders that its flags name, relative to `folder`.
    #[must_use]
    pub fn flags<'a>(self, flags: impl IntoIterator<Item = &'a str>, folder: &Path) -> Self {
        let paths = named(flags.into_iter()).into_iter().map(|path| folder.join(path));
        self.read_existing(paths)
    }

    /// Lets the program read what exists of these. Its own message says what does not. The root, as in `--sysroot=/`, stands for the
    /// system's files, which it has.
    #[must_use]
    pub fn read_existing(self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let is_there = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path != Path::new("/"));
        paths.into_iter().filter(is_there).fold(self, Self::read)
    }

    /// With the files of its compilers.
    pub(super) fn with_compilers(&self) -> Self {
        let mut sandbox = self.clone();
        let words = std::mem::take(&mut sandbox.compilers);
        if words.is_empty() {
            return sandbox;
        }
        let home = std::env::var_os("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok());
        let programs = words.iter().map(String::as_str).filter(|word| !word.starts_with('-')).chain(TOOLS);
        let mut paths: Vec<PathBuf> = programs
            .filter_map(find_in_path)
            .flat_map(|program| installation(&program, home.as_deref()))
            .collect();
        for variable in LISTS {
            let value = std::env::var_os(variable).unwrap_or_default();
            paths.extend(std::env::split_paths(&value).filter(|path| path.is_absolute()));
        }
        sandbox.read_existing(paths)
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

/// A program, and what is installed with it: what lies beside its folder, and what it says itself if it is a C compiler.
fn installation(program: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = vec![program.to_owned()];
    let Ok(real) = program.canonicalize() else { return paths };
    if real.starts_with("/usr") {
        return paths;
    }
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    if let Some(folder) = real.parent().filter(|folder| folder.ends_with("bin"))
        && let Some(prefix) = folder.parent().filter(|prefix| !is_personal(prefix, home))
    {
        paths.extend(INSTALLED.map(|name| prefix.join(name)));
        paths.extend(machine_folders(prefix, &name));
        paths.push(folder.to_owned());
    }
    if name.contains("cc") || name.contains("clang") {
        let is_general = |path: &PathBuf| path.canonicalize().is_ok_and(|path| !is_personal(&path, home));
        paths.extend(used_folders(program).into_iter().filter(is_general));
    }
    paths.push(real);
    paths
}

/// Whether a folder has more than programs: the root, folders of users with what is around them, and hidden ones, as `~/.local`.
fn is_personal(folder: &Path, home: Option<&Path>) -> bool {
    folder == Path::new("/")
        || folder == Path::new("/root")
        || folder.parent() == Some(Path::new("/home"))
        || home.is_some_and(|home| home.starts_with(folder))
        || folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The folders that a C compiler says it uses. It is asked once.
fn used_folders(compiler: &Path) -> Vec<PathBuf> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());
    if let Some(known) = KNOWN.lock().get(compiler) {
        return known.clone();
    }
    let answer = |question: &&[&str]| {
        let mut command = Command::new(compiler);
        command.args(*question).env("LC_ALL", "C").current_dir("/");
        let output = run_program(&mut command, PROBE_DEADLINE, OUTPUT_BYTES).ok()?;
        output.status.success().then(|| output.text())
    };
    let folders: Vec<PathBuf> =
        QUESTIONS.iter().filter_map(answer).flat_map(|text| told_folders(&text)).collect();
    KNOWN.lock().insert(compiler.to_owned(), folders.clone());
    folders
}

/// The folders in an answer: lines that are a path, or `name: =path:path` or `name=path:path`.
fn told_folders(text: &str) -> Vec<PathBuf> {
    let lists = text.lines().map(|line| {
        let line = line.trim();
        let after_name = line.strip_prefix("install: ").or_else(|| Some(line.split_once('=')?.1));
        after_name.unwrap_or(line)
    });
    let paths = lists.flat_map(|list| list.split(':')).map(PathBuf::from);
    paths.filter(|path| path.is_absolute() && path.is_dir()).collect()
}

/// The folders of an installation for the machine that a program's name begins with, such as `riscv64-unknown-elf`.
fn machine_folders(prefix: &Path, program: &str) -> Vec<PathBuf> {
    let entries = prefix.read_dir().into_iter().flatten().flatten();
    let is_machine = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.matches('-').count() >= 2 && program.starts_with(name) && path.is_dir()
    };
    entries.map(|entry| entry.path()).filter(is_machine).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, create_dir_all, set_permissions, write};
    use std::os::unix::fs::PermissionsExt as _;

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
    fn flags_may_name_the_root() {
        let sandbox = Sandbox::new().flags(["--sysroot=/", "-I", "/usr/..", "-L/usr/lib"], Path::new("/"));
        assert_eq!(sandbox.readable, [Path::new("/usr/lib")]);
    }

    #[test]
    fn every_program_of_a_command_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (launcher, compiler) = (folder.path().join("a/bin/launch"), folder.path().join("b/bin/gcc"));
        for program in [&launcher, &compiler] {
            program_at(program, "exit 1");
        }
        let words = [launcher.to_str().unwrap(), "-x", compiler.to_str().unwrap(), "-O2"];
        let sandbox = Sandbox::new().compiler(words).with_compilers();
        for path in [&launcher, &compiler] {
            assert!(sandbox.readable.contains(path), "{}: {:?}", path.display(), sandbox.readable);
        }
    }

    #[test]
    fn an_installation_is_what_lies_beside_its_programs() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap().join("installed");
        for name in ["bin", "riscv64-unknown-elf", "home", "other-people-s"] {
            create_dir_all(folder.join(name)).unwrap();
        }
        let program = folder.join("bin/riscv64-unknown-elf-ld");
        write(&program, "").unwrap();
        let paths = installation(&program, None);
        for name in ["bin", "libexec", "riscv64-unknown-elf"] {
            assert!(paths.contains(&folder.join(name)), "{name}");
        }
        assert!(["home", "other-people-s"].iter().all(|name| !paths.contains(&folder.join(name))));
        let alone = folder.join("ptxas");
        write(&alone, "").unwrap();
        assert!(installation(&alone, None).iter().all(|path| *path == alone));
    }

    #[test]
    fn of_a_folder_of_a_user_only_what_a_compiler_uses_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("user");
        let of_compiler = home.join("lib/gcc/x/13");
        create_dir_all(&of_compiler).unwrap();
        for name in ["include", "share", "my-private-letters", ".local"] {
            create_dir(home.join(name)).unwrap();
        }
        let told = of_compiler.display();
        let script =
            format!("echo 'libraries: ={told}/../../../gcc:{0}:{0}/bin/..:/missing'", home.display());
        for program in ["bin/gcc", ".local/bin/gcc"] {
            let program = home.join(program);
            program_at(&program, &script);
            let paths = installation(&program, Some(&home));
            let mut real: Vec<PathBuf> = paths.iter().map(|path| path.canonicalize().unwrap()).collect();
            real.sort();
            real.dedup();
            assert_eq!(real, sorted([home.join("lib/gcc"), program]));
        }
    }

    #[test]
    fn a_compiler_says_which_folders_it_uses() {
        let text = "install: /usr/lib/\nprograms: =/usr/bin:/bin\n#include <...> search starts here:\n /usr/include\n\
                    End of search list.\n /usr/lib/cc1 -E -v\nLIBRARY_PATH=/usr/:/sbin\nConfigured with: ../c --prefix=/etc -x";
        let expected = ["/usr/lib/", "/usr/bin", "/bin", "/usr/include", "/usr/", "/sbin"];
        assert_eq!(told_folders(text), expected.map(PathBuf::from));
    }

    fn program_at(path: &Path, script: &str) {
        create_dir_all(path.parent().unwrap()).unwrap();
        write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
        set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    fn sorted(mut paths: [PathBuf; 2]) -> [PathBuf; 2] {
        paths.sort();
        paths
    }
}
