//! Temporary folders that are removed even if their owner is killed.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::platform;

/// Attempts to create a folder: a concurrent cleanup may remove it between its creation and its lock.
const ATTEMPTS: usize = 8;

/// A private folder below the system's temporary directory, removed on drop.
///
/// The owner holds a lock on it. A folder that can be locked has lost its owner, for example to a signal, and
/// is removed when the next folder with the same prefix is created.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    /// Held open for its lock.
    _lock: File,
}

impl TemporaryFolder {
    /// Creates a folder whose name begins with `prefix`, and removes those whose owners have died.
    ///
    /// # Errors
    /// Any I/O error.
    pub fn new(prefix: &str) -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir(), prefix)
    }

    fn new_in(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_stale(parent, prefix);
        for _ in 0..ATTEMPTS {
            let path = parent.join(format!("{prefix}{:016x}", RandomState::new().hash_one(parent)));
            DirBuilder::new().mode(0o700).create(&path)?;
            match lock(&path) {
                Ok(Some(lock)) => return Ok(Self { path, _lock: lock }),
                Ok(None) => {}
                Err(error) => {
                    let _ = fs::remove_dir(&path);
                    return Err(error);
                }
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "another program keeps removing the temporary folder",
        ))
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // Anything left is removed when the next folder with this prefix is created.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Locks a folder that was just created; `None` if another process has taken it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let folder = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        folder => folder?,
    };
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // Where locks are unsupported, other processes cannot remove the folder either.
        _ => Ok(path.exists().then_some(folder)),
    }
}

fn remove_stale(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let folder = entry.path();
        if is_our_name(entry.file_name().as_encoded_bytes(), prefix) && is_own_folder(&folder) {
            // Hold the lock until the folder is removed.
            if let Ok(lock) = File::open(&folder)
                && lock.try_lock().is_ok()
            {
                let _ = fs::remove_dir_all(&folder);
            }
        }
    }
}

/// Whether `name` has the format that this module generates; unrelated folders may share the prefix.
fn is_our_name(name: &[u8], prefix: &str) -> bool {
    let digits = name.strip_prefix(prefix.as_bytes());
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Whether `path` is a folder, not a link, that this user owns.
fn is_own_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == platform::user())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn a_folder_is_removed_on_drop() {
        let parent = tempfile::tempdir().unwrap();
        let folder = TemporaryFolder::new_in(parent.path(), "x-").unwrap();
        assert_eq!(folder.path().metadata().unwrap().mode() & 0o777, 0o700);
        fs::write(folder.path().join("file"), "content").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn only_folders_of_dead_owners_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let alive = TemporaryFolder::new_in(parent.path(), "x-").unwrap();
        let dead = "x-0123456789abcdef";
        let others = ["y-0123456789abcdef", "x-root", "x-0123456789abcdef0", "x-0123456789abcdeg"];
        for name in others.into_iter().chain([dead, "x-0123456789abcdef/inner"]) {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let (file, link) = ("x-1123456789abcdef", "x-2123456789abcdef");
        fs::write(parent.path().join(file), "").unwrap();
        std::os::unix::fs::symlink(parent.path().join(others[0]), parent.path().join(link)).unwrap();
        let next = TemporaryFolder::new_in(parent.path(), "x-").unwrap();
        assert!(!parent.path().join(dead).exists());
        for kept in others.into_iter().chain([file, link]) {
            assert!(parent.path().join(kept).exists(), "{kept}");
        }
        assert!(alive.path().exists() && next.path().exists());
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn folders_can_be_created_concurrently() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let folder = TemporaryFolder::new_in(parent.path(), "x-").unwrap();
                        fs::write(folder.path().join("file"), "content").unwrap();
                        assert!(folder.path().join("file").exists());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
