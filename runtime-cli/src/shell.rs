//! `runtime completions` and `runtime man`: files for the shell, generated from the command line's definition.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use runtime_core::{Error, ErrorKind, Result};

use crate::arguments::Command;
use crate::output;

/// Name of the program, as users type it.
const NAME: &str = "runtime";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page per command to this folder [default: print the page of `runtime`]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the completions.
///
/// # Errors
/// `Io` if they cannot be written.
pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Command::command(), NAME, &mut text);
    output::print(&text)
}

/// Prints the manual page, or writes all of them.
///
/// # Errors
/// `Io` if one cannot be written.
pub(crate) fn man(arguments: &ManArguments) -> Result<()> {
    match &arguments.folder {
        Some(folder) => {
            clap_mangen::generate_to(Command::command(), folder).map_err(|error| failed(folder, error))
        }
        None => {
            let mut text = Vec::new();
            let page = clap_mangen::Man::new(Command::command());
            page.render(&mut text).map_err(|error| failed(Path::new("-"), error))?;
            output::print(&text)
        }
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write manual pages to {}: {error}", path.display()))
        .with_source(error)
}
