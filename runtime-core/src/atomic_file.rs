//! Atomic file replacement: readers see the old file or the new one, never a part of it, even after a crash.
//!
//! Where the file system supports it, the new file has no name until it is complete, so a killed writer leaves
//! nothing behind. Elsewhere it has a temporary name next to the final one, and its writer holds a lock on it.
//! A temporary file that is not locked has lost its writer, so the next writer removes it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::platform;

/// Attempts to create a named temporary file: a concurrent cleanup may remove it between its creation and its
/// lock.
const MAX_ATTEMPTS: usize = 8;

/// A path whose file can be replaced atomically, any number of times.
#[derive(Clone, Debug)]
pub struct AtomicFile {
    path: PathBuf,
}

impl AtomicFile {
    /// Checks that `path` can be replaced, and removes temporary files left there by killed writers. An
    /// existing file is not changed until [`AtomicFile::replace`].
    ///
    /// # Errors
    /// The system's error: a missing folder, no write permission, or a path that is a folder.
    pub fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        remove_stale_files(&path);
        TemporaryFile::create_beside(&path)?;
        Ok(Self { path })
    }

    /// Replaces the content of the file by the concatenation of `parts`.
    ///
    /// Does not wait for the disk; [`AtomicFile::sync`] does.
    ///
    /// # Errors
    /// The system's error; the file then keeps its previous content.
    pub fn replace(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut temporary = TemporaryFile::create_beside(&self.path)?;
        parts.iter().try_for_each(|part| temporary.file.write_all(part))?;
        temporary.persist(&self.path)
    }

    /// Waits until the content is on disk. Some file systems report only then that they are full.
    ///
    /// # Errors
    /// The system's error.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Writes a new file with `write`, then replaces `path` by it. Pipes and devices are written directly, because
/// a file must not replace them.
///
/// # Errors
/// `Io`; any error of `write`.
pub(crate) fn write_atomic(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
        Ok(metadata) if !metadata.is_file() => return write(&mut File::options().write(true).open(path)?),
        _ => {}
    }
    remove_stale_files(path);
    let mut temporary = TemporaryFile::create_beside(path)?;
    write(&mut temporary.file)?;
    // Some file systems report only here that they are full.
    temporary.file.sync_all()?;
    Ok(temporary.persist(path)?)
}

/// A new file that is not yet complete.
pub(crate) struct TemporaryFile {
    pub(crate) file: File,
    /// Its temporary name; `None` if it has none.
    name: Option<PathBuf>,
}

impl TemporaryFile {
    /// Creates a file that may become `path`.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create_beside(path: &Path) -> io::Result<Self> {
        if path.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
        }
        match platform::nameless_file(parent_folder(path)) {
            Ok(file) => {
                // No other process can open a file without a name, so this fails only where locks are
                // unsupported.
                let _ = file.try_lock();
                Ok(Self { file, name: None })
            }
            Err(_) => Self::create_named(path),
        }
    }

    fn create_named(path: &Path) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let name = temporary_name(path);
            let file = File::options().write(true).create_new(true).open(&name)?;
            let locked = file.try_lock();
            let temporary = Self { file, name: Some(name) };
            if !matches!(locked, Err(TryLockError::WouldBlock))
                && temporary.name.as_ref().is_some_and(|name| name.exists())
            {
                return Ok(temporary);
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "another program keeps removing the temporary file"))
    }

    /// Makes it `path`, in place of any file that is there.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn persist(mut self, path: &Path) -> io::Result<()> {
        if let Ok(old) = fs::metadata(path) {
            // Keep the permissions: users who could not read the old file must not be able to read the new one.
            self.file.set_permissions(old.permissions())?;
        }
        if self.name.is_none() {
            // If `path` does not exist, no temporary name is needed.
            if platform::name_file(&self.file, path).is_ok() {
                return Ok(());
            }
            let name = temporary_name(path);
            platform::name_file(&self.file, &name)?;
            self.name = Some(name);
        }
        if let Some(name) = &self.name {
            fs::rename(name, path)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // If the file is already gone, so much the better.
            let _ = fs::remove_file(name);
        }
    }
}

fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The prefix of temporary names for `path`.
fn temporary_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    // A name of maximum length leaves no room for the prefix and suffix.
    let name = path.file_name().unwrap_or_default();
    prefix.push(if name.len() > 200 { OsStr::new("output") } else { name });
    prefix.push(".");
    prefix
}

const TEMPORARY_SUFFIX: &[u8] = b".tmp";

/// A random name in the same folder. A process ID would not do: processes in different containers may share it.
fn temporary_name(path: &Path) -> PathBuf {
    let mut name = temporary_prefix(path);
    name.push(format!("{:016x}.tmp", RandomState::new().hash_one(path)));
    parent_folder(path).join(name)
}

/// Removes the temporary files of `path` whose writers are gone.
fn remove_stale_files(path: &Path) {
    remove_stale_with_prefix(parent_folder(path), &temporary_prefix(path));
}

/// Removes all temporary files in `folder` whose writers are gone.
pub(crate) fn remove_all_stale_files(folder: &Path) {
    remove_stale_with_prefix(folder, OsStr::new("."));
}

fn remove_stale_with_prefix(folder: &Path, prefix: &OsStr) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let is_temporary = name.starts_with(prefix.as_encoded_bytes()) && name.ends_with(TEMPORARY_SUFFIX);
        if is_temporary && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            remove_if_unlocked(&entry.path());
        }
    }
}

/// Removes the file if no process holds its lock.
fn remove_if_unlocked(path: &Path) {
    if let Ok(file) = File::open(path)
        && file.try_lock().is_ok()
    {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn a_file_is_replaced_only_once_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        let broken = write_atomic(&path, |file| {
            file.write_all(b"half")?;
            Err(Error::invalid("broken"))
        });
        assert_eq!(broken.unwrap_err().message(), "broken");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_atomic(&path, |file| Ok(file.write_all(b"new")?)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["x"], "nothing else is left");
        assert!(write_atomic(folder.path(), |_| Ok(())).is_err(), "a folder is not a file");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn a_replaced_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        AtomicFile::new(&path).unwrap().replace(&[b"one", b"two"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"onetwo");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn only_files_without_a_writer_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let alive = TemporaryFile::create_named(&path).unwrap();
        fs::write(temporary_name(&path), "half").unwrap();
        fs::write(folder.path().join(".y.0.tmp"), "another file's").unwrap();
        let file = AtomicFile::new(&path).unwrap();
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
        assert!(alive.name.as_ref().unwrap().exists());
        alive.persist(&path).unwrap();
        file.replace(&[b"new"]).unwrap();
        file.sync().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()).len(), 2);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn concurrent_writers_leave_one_complete_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::thread::scope(|scope| {
            for byte in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        AtomicFile::new(path).unwrap().replace(&[&[byte; 1000], &[byte; 1000]]).unwrap();
                        let read = fs::read(path).unwrap();
                        assert!(read.len() == 2000 && read.iter().all(|other| *other == read[0]));
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn a_path_that_cannot_be_written_fails_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(AtomicFile::new(folder.path()).is_err());
        assert!(AtomicFile::new(folder.path().join("missing/x")).is_err());
        assert!(AtomicFile::new("").is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri does not support named pipes")]
    fn a_pipe_is_written_and_stays_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of coreutils");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path)
        });
        write_atomic(&path, |file| Ok(file.write_all(b"through")?)).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"through");
        assert!(!fs::metadata(&path).unwrap().is_file());
    }
}
