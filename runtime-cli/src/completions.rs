//! `runtime completions`: completions for a shell, generated from the command line's definition.

use clap::Args;
use clap_complete::Shell;
use runtime_core::Result;

use crate::output;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the completions of a command.
///
/// # Errors
/// `Io` if they cannot be written.
pub(crate) fn print(arguments: &CompletionsArguments, mut command: clap::Command) -> Result<()> {
    let (name, mut text) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    output::print_exact(&text)
}
