//! What starting a target needs beside its board.

use std::path::PathBuf;

use runtime_core::backend::Log;

/// What starting a target needs beside its board.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// Folder for files.
    pub(crate) folder: PathBuf,
    pub(crate) log: Log,
}
