//! Starts tools of the SDK, and programs for simulators, in folders of their own.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use runtime_core::backend::{Process, TemporaryFolder};
use runtime_core::{Error, ErrorKind, Result};

/// The part of each output of a program that errors and the log have. A simulator may print for hours.
const REPORTED_BYTES: usize = 64 << 10;
/// What to do when a disk is full.
pub(crate) const NO_ROOM: &str =
    "; make room there, or set TMPDIR or option \"work_dir\" to a folder that has more";

/// Starts a command, without a shell, in `folder`.
///
/// # Errors
/// As for [`Process::start`].
pub(crate) fn start(words: &[String], folder: &Path, variables: &[(&str, String)]) -> Result<Process> {
    let (program, arguments) = words.split_first().ok_or_else(|| Error::invalid("the command is empty"))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(variables.iter().map(|(name, value)| (name, value)));
    Process::start(&mut command, Stdio::null(), REPORTED_BYTES)
}

/// Removes what an earlier run of a tool has left in place of a file: opening a pipe would wait, and a link leads elsewhere.
///
/// # Errors
/// `Io`.
pub(crate) fn remove_stale(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(path, error)),
        _ => Ok(()),
    }
}

/// A private folder for temporary files, removed on drop.
///
/// # Errors
/// `Io`, with the remedy.
pub(crate) fn folder(prefix: &str) -> Result<TemporaryFolder> {
    TemporaryFolder::new(prefix).map_err(|error| {
        Error::new(ErrorKind::Io, format!("no temporary folder: {error}; set TMPDIR")).with_source(error)
    })
}

/// The error of a file, with the remedy if there is no room for it.
pub(crate) fn io_error(path: &Path, error: io::Error) -> Error {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => NO_ROOM,
        _ => "",
    };
    Error::new(ErrorKind::Io, format!("{}: {error}{remedy}", path.display())).with_source(error)
}
