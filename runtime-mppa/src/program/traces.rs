//! Traces of whole programs: files that a tool leaves beside its program, moved to a folder that outlives the device.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use runtime_core::{Error, ErrorKind, Result};

use crate::config::MppaConfig;
use crate::process::io_error;

/// Where the traces of each run go.
#[derive(Debug)]
pub(super) struct Traces {
    folder: PathBuf,
    runs: AtomicU32,
}

impl Traces {
    /// The traces of a device whose files are in `work_folder`; `None` if none are recorded.
    ///
    /// # Errors
    /// `InvalidArgument` if they would be removed with a private folder.
    pub(super) fn new(config: &MppaConfig, work_folder: &Path) -> Result<Option<Self>> {
        if !config.trace {
            return Ok(None);
        }
        let folder = config.trace_folder().ok_or_else(|| {
            Error::invalid(
                "traces would be removed with the private work folder; set option \"work_dir\" or RUNTIME_MPPA_WORK_DIR to the \
                 folder that collects them, or turn traces off",
            )
        })?;
        let name = work_folder.file_name().unwrap_or(OsStr::new("mppa"));
        Ok(Some(Self { folder: folder.join(name), runs: AtomicU32::new(0) }))
    }

    /// Moves what a run has left in `work_folder`, other than `own` files.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn collect(&self, work_folder: &Path, is_own: impl Fn(&OsStr) -> bool) -> Result<()> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let mut folder = self.folder.clone().into_os_string();
        folder.push(format!("-run{run}"));
        let folder = PathBuf::from(folder);
        let entries = std::fs::read_dir(work_folder).map_err(|error| io_error(work_folder, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| io_error(work_folder, error))?;
            if is_own(&entry.file_name()) {
                continue;
            }
            let target = folder.join(entry.file_name());
            let moved =
                std::fs::create_dir_all(&folder).and_then(|()| std::fs::rename(entry.path(), &target));
            moved.map_err(|error| {
                Error::new(
                    ErrorKind::Io,
                    format!("{}: the trace is not collected: {error}", target.display()),
                )
                .with_source(error)
            })?;
        }
        Ok(())
    }
}
