//! Which compiler runs: the option `compiler`, `CC`, or the first of the usual ones.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runtime_core::backend::is_privileged;
use runtime_core::{Error, ErrorKind, Options, Result};

use crate::architecture::Architecture;
use crate::build_folder::exhausted;

const COMPILERS: [&str; 3] = ["cc", "clang", "gcc"];

/// Runs the first installed compiler for `architecture`; `prepare` adds to the command.
///
/// # Errors
/// `Unavailable`, with the remedy; `OutOfResources`.
pub(crate) fn run(
    options: &Options,
    architecture: Architecture,
    prepare: impl Fn(&mut Command),
) -> Result<(Vec<String>, Output)> {
    if is_privileged() {
        // PATH, CC and other variables would select a program to run with another user's privileges.
        let message = "a process with elevated privileges runs no compiler; load a shared object instead";
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    let (candidates, from) = candidates(options, architecture);
    let named = candidates.len() == 1;
    for compiler in candidates {
        let mut command = Command::new(&compiler[0]);
        // Messages in English.
        command.args(&compiler[1..]).stdin(Stdio::null()).env("LC_ALL", "C");
        prepare(&mut command);
        match command.output() {
            Ok(output) => return Ok((compiler, output)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => {}
            Err(error) if exhausted(&error).is_some() => {
                let remedy = exhausted(&error).unwrap_or_default();
                let message = format!("cannot start \"{}\": {error}; {remedy}", compiler[0]);
                return Err(Error::new(ErrorKind::OutOfResources, message).with_source(error));
            }
            Err(error) => {
                let message = format!(
                    "{from}: cannot run \"{}\": {error}; name a C compiler that is installed",
                    compiler[0]
                );
                return Err(Error::new(ErrorKind::Unavailable, message).with_source(error));
            }
        }
    }
    let message = format!("no C compiler ({}): install gcc, or set CC", COMPILERS.join(", "));
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// The compilers to try, each with its arguments, and the setting that they come from.
fn candidates(options: &Options, architecture: Architecture) -> (Vec<Vec<String>>, &'static str) {
    let cross = (architecture.machine() != std::env::consts::ARCH).then(|| architecture.machine());
    // CC compiles for this machine.
    let from_environment = if cross.is_none() { std::env::var("CC") } else { Ok(String::new()) };
    let from_environment = from_environment.unwrap_or_default();
    let (wanted, from) = match options.text("compiler") {
        Some(compiler) if !compiler.trim().is_empty() => (compiler, "option \"compiler\""),
        _ => (from_environment.as_str(), "CC"),
    };
    match (words(wanted), cross) {
        (wanted, Some(machine)) if wanted.is_empty() => {
            (vec![vec![format!("{machine}-linux-gnu-gcc")]], "option \"compiler\" is not set")
        }
        (wanted, None) if wanted.is_empty() => (COMPILERS.iter().map(|name| words(name)).collect(), from),
        (wanted, _) => (vec![wanted], from),
    }
}

/// The flags that come with the name of the compiler that would run.
pub(crate) fn flags_of(options: &Options) -> Vec<String> {
    let (candidates, _) = candidates(options, Architecture::Native);
    candidates.into_iter().next().unwrap_or_default().split_off(1)
}

/// Identifies the compiler that would run, and the assembler and linker that it finds; `None` if there is no compiler.
/// Of a script, only the script itself is known.
pub(crate) fn identity(options: &Options) -> Option<String> {
    let (compilers, _) = candidates(options, Architecture::Native);
    let compiler = compilers.iter().find_map(|compiler| {
        let file = in_path(&compiler[0])?.canonicalize().ok()?;
        Some(format!("{compiler:?} {} {}", file.display(), file_state(&file)?))
    })?;
    let tool = |name: &str| {
        let file = in_path(name)?.canonicalize().ok()?;
        Some(format!("{} {}", file.display(), file_state(&file)?))
    };
    Some(format!("{compiler}\n{:?}", ["as", "ld"].map(tool)))
}

/// Whether the compiler that would run is a script, which may do anything.
pub(crate) fn is_script(options: &Options) -> bool {
    let (compilers, _) = candidates(options, Architecture::Native);
    let file = compilers.iter().find_map(|compiler| in_path(&compiler[0]));
    let mut start = [0; 2];
    let read = file.and_then(|file| std::fs::File::open(file).ok());
    read.is_none_or(|mut file| file.read_exact(&mut start).is_err() || start == *b"#!")
}

/// Where the compiler finds a library.
///
/// # Errors
/// `Unsupported` if it does not.
pub(crate) fn file(options: &Options, library: &str) -> Result<PathBuf> {
    let (_, output) = run(options, Architecture::Native, |command| {
        command.arg(format!("-print-file-name={library}"));
    })?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // It repeats the name of a library that it does not find.
    if path.is_absolute() && path.is_file() {
        return Ok(path);
    }
    Err(Error::unsupported(format!("the compiler does not tell where the library \"{library}\" is")))
}

/// Where the system finds a program.
fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // `join` keeps an absolute path as it is.
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    if Path::new(program).is_absolute() { places.next() } else { places.find(|place| place.is_file()) }
}

/// What changes when a file is replaced: size, time of change, inode.
pub(crate) fn file_state(file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let state = file.metadata().ok()?;
    Some(format!(
        "{} {}.{:09} {}:{}",
        state.len(),
        state.mtime(),
        state.mtime_nsec(),
        state.dev(),
        state.ino()
    ))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
