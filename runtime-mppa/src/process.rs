//! Starts tools of the SDK, and programs for simulators, in folders of their own.

use std::io;
use std::path::Path;
use std::process::Command;

use runtime_core::backend::{Process, TemporaryFolder};
use runtime_core::{Error, ErrorKind, Result};

/// The file that has the output of a command, in its folder.
pub(crate) const OUTPUT: &str = "output.txt";

/// Starts a command, without a shell, in `folder`; its output goes to a file there.
///
/// # Errors
/// `Unavailable` if the program cannot be run; `Io`.
pub(crate) fn start(words: &[String], folder: &Path, variables: &[(&str, String)]) -> Result<Process> {
    let (program, arguments) = words.split_first().ok_or_else(|| Error::invalid("the command is empty"))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(variables.iter().map(|(name, value)| (name, value)));
    Process::start(&mut command, &folder.join(OUTPUT))
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

pub(crate) fn io_error(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {error}", path.display())).with_source(error)
}
