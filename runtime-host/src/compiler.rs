//! Which compiler runs: the option `compiler`, `CC`, or the first of the usual ones.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use runtime_core::backend::{
    OUTPUT_BYTES, Output, Sandbox, SandboxPolicy, check_privileges, find_in_path, open_regular_file,
    trusted_variable,
};
use runtime_core::{Error, ErrorKind, Options, Result};

use crate::architecture::Architecture;

const COMPILERS: [&str; 3] = ["cc", "clang", "gcc"];
/// A compiler that runs longer is ended.
pub(crate) const DEADLINE: Duration = Duration::from_secs(600);

/// Runs the first installed compiler for `architecture`; `prepare` adds to the command. At most `bytes` of each of its outputs are
/// kept. It runs in the sandbox if this process compiles code that it does not trust.
///
/// # Errors
/// `Unavailable`, with the remedy; `Timeout`; `OutOfResources`.
pub(crate) fn run(
    options: &Options,
    architecture: Architecture,
    (deadline, bytes): (Duration, usize),
    sandbox: Sandbox,
    prepare: impl FnOnce(&mut Command),
) -> Result<(Vec<String>, Output)> {
    // It ignores the variables by which compilers are found.
    check_privileges()?;
    let (candidates, from) = candidates(options, architecture);
    let is_found = |compiler: &&Vec<String>| candidates.len() == 1 || find_in_path(&compiler[0]).is_some();
    let Some(compiler) = candidates.iter().find(is_found) else {
        let message = format!("no C compiler ({}): install gcc, or set CC", COMPILERS.join(", "));
        return Err(Error::new(ErrorKind::Unavailable, message));
    };
    let mut command = Command::new(&compiler[0]);
    // Messages in English.
    command.args(&compiler[1..]).env("LC_ALL", "C");
    prepare(&mut command);
    let words = compiler.iter().map(String::as_str);
    let sandbox = sandbox.compiler(words.clone()).flags(words, Path::new("/"));
    let output = sandbox.run(SandboxPolicy::of_process()?, &mut command, (deadline, bytes));
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::Unavailable => error.with_note(format!("{from}: name a C compiler that is installed")),
        _ => error,
    })?;
    Ok((compiler.clone(), output))
}

/// The compilers to try, each with its arguments, and the setting that they come from.
fn candidates(options: &Options, architecture: Architecture) -> (Vec<Vec<String>>, &'static str) {
    let cross = (architecture.machine() != std::env::consts::ARCH).then(|| architecture.machine());
    // CC compiles for this machine.
    let from_environment = cross.is_none().then(|| trusted_variable("CC")?.into_string().ok()).flatten();
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

/// The compiler that would run, with its arguments, and its file, whose name has the version on many systems.
pub(crate) fn found(options: &Options) -> Option<(Vec<String>, PathBuf)> {
    let (compilers, _) = candidates(options, Architecture::Native);
    compilers.into_iter().find_map(|compiler| {
        let file = find_in_path(&compiler[0])?.canonicalize().ok()?;
        Some((compiler, file))
    })
}

/// Identifies the compiler that would run, and the assembler and linker that it finds; `None` if there is no compiler.
/// Of a script, only the script itself is known.
pub(crate) fn identity(options: &Options) -> Option<String> {
    let (compiler, file) = found(options)?;
    let compiler = format!("{compiler:?} {} {}", file.display(), file_state(&file)?);
    let tool = |name: &str| {
        let file = find_in_path(name)?.canonicalize().ok()?;
        Some(format!("{} {}", file.display(), file_state(&file)?))
    };
    Some(format!("{compiler}\n{:?}", ["as", "ld"].map(tool)))
}

/// Whether the compiler that would run is a script, which may do anything.
pub(crate) fn is_script(options: &Options) -> bool {
    let (compilers, _) = candidates(options, Architecture::Native);
    let file = compilers.iter().find_map(|compiler| find_in_path(&compiler[0]));
    let mut start = [0; 2];
    let read = file.and_then(|file| open_regular_file(&file).ok());
    read.is_none_or(|mut file| file.read_exact(&mut start).is_err() || start == *b"#!")
}

/// Where the compiler finds a library.
///
/// # Errors
/// `Unsupported` if it does not.
pub(crate) fn file(options: &Options, library: &str) -> Result<PathBuf> {
    let limits = (DEADLINE, OUTPUT_BYTES);
    let (_, output) = run(options, Architecture::Native, limits, Sandbox::new(), |command| {
        command.arg(format!("-print-file-name={library}")).current_dir("/");
    })?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // It repeats the name of a library that it does not find.
    if path.is_absolute() && path.is_file() {
        return Ok(path);
    }
    Err(Error::unsupported(format!("the compiler does not tell where the library \"{library}\" is")))
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
