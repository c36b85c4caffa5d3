//! Images: the firmware with a kernel, linked for a board.

mod build;
mod compiler;
mod elf;
mod entry;
mod functions;
mod key;
mod tool;
mod uart;

pub(crate) use build::Builder;
#[cfg(test)]
pub(crate) use elf::Symbols;
pub(crate) use elf::{Image, MAILBOX_BYTES};
pub(crate) use entry::Parameter;
pub(crate) use functions::Functions;
pub(crate) use tool::{is_installed, run_command};
