//! The folder through which the offload library and a simulator meet.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};

use runtime_core::{Error, ErrorKind, Result};

use crate::environment::SIMULATOR_FOLDER;
use crate::process::{OUTPUT_FILE, io_error};

/// A locked file, which also shows that this backend created the folder.
const MARKER: &str = "runtime-mppa.lock";

/// A folder that one simulator uses at a time.
#[derive(Debug)]
pub(super) struct SimulatorFolder {
    path: PathBuf,
    removes: bool,
    /// Held open for its lock.
    _marker: File,
}

impl SimulatorFolder {
    /// Creates the folder, or clears one that this backend created and nobody uses. With `removes`, it is removed on drop.
    ///
    /// # Errors
    /// `InvalidArgument` if it has files of others; `Unavailable` if another simulator uses it; `Io`.
    pub(super) fn create(path: &Path, removes: bool) -> Result<Self> {
        let fails = |error| io_error(path, error);
        std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(fails)?;
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(fails(error)),
            _ => {}
        }
        let marker = path.join(MARKER);
        if !marker.exists() && std::fs::read_dir(path).map_err(fails)?.next().is_some() {
            return Err(Error::invalid(format!(
                "{} has files that no simulator of this backend made; set {SIMULATOR_FOLDER} to a new folder",
                path.display()
            )));
        }
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(&marker).map_err(fails)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let message = format!(
                "{} is used by another simulator: a process has one, with a folder of its own; close that device, or set {SIMULATOR_FOLDER} to \
                 another folder before the program starts",
                path.display()
            );
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let folder = Self { path: path.to_owned(), removes, _marker: file };
        folder.clear().map_err(fails)?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what an earlier simulator left.
    fn clear(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => std::fs::remove_dir_all(entry.path())?,
                _ if entry.file_name() == MARKER => {}
                _ => std::fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// How many files the simulator has made, and whether one is a socket.
    pub(super) fn contents(&self) -> (usize, bool) {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let made = entries.filter(|entry| entry.file_name() != MARKER && entry.file_name() != OUTPUT_FILE);
        made.fold((0, false), |(count, socket), entry| {
            (count + 1, socket || entry.file_type().is_ok_and(|kind| kind.is_socket()))
        })
    }
}

impl Drop for SimulatorFolder {
    fn drop(&mut self) {
        if self.removes {
            // What is left is cleared when the folder is used again.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_simulator_and_files_of_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/mymppa");
        let folder = SimulatorFolder::create(&path, true).unwrap();
        let busy = SimulatorFolder::create(&path, true).unwrap_err();
        assert!(busy.kind() == ErrorKind::Unavailable && busy.message().contains(SIMULATOR_FOLDER), "{busy}");
        assert_eq!(folder.contents(), (0, false));
        drop(folder);
        assert!(!path.exists());
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("thesis.tex"), "").unwrap();
        let foreign = SimulatorFolder::create(&path, true).unwrap_err();
        assert!(
            foreign.kind() == ErrorKind::InvalidArgument && path.join("thesis.tex").exists(),
            "{foreign}"
        );
    }

    #[test]
    fn what_a_killed_process_left_is_cleared() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mymppa");
        drop(SimulatorFolder::create(&path, false).unwrap());
        std::fs::create_dir(path.join("memory")).unwrap();
        std::fs::write(path.join("memory/0"), "").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap();
        let folder = SimulatorFolder::create(&path, false).unwrap();
        assert_eq!(folder.contents(), (0, false));
        let _socket = std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap();
        assert_eq!(folder.contents(), (1, true));
    }
}
