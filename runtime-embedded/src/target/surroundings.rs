//! What starting a target needs beside its board.

use std::path::PathBuf;
use std::sync::Arc;

use runtime_core::backend::Log;

use super::spawner::Spawner;

/// What starting a target needs beside its board.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) spawner: Arc<Spawner>,
    /// Folder for files.
    pub(crate) folder: PathBuf,
    pub(crate) log: Log,
}
