//! Images: the firmware with a kernel, linked for a board.

mod build;
mod elf;
mod entry;
mod tool;
mod uart;

pub(crate) use build::Builder;
pub(crate) use elf::Image;
pub(crate) use entry::Parameter;
pub(crate) use tool::{is_installed, run_command};
