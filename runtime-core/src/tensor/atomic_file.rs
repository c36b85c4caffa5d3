//! Files that are replaced in one step: a reader, and whoever is left after a crash, sees the old file or the new one,
//! never a part.
//!
//! Where the file system can, a new file has no name until it is complete, so that a killed writer leaves nothing.
//! Elsewhere it has a temporary name beside the final one. Its writer holds a lock on it: a file that can be locked
//! has lost its writer, and the next writer removes it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Result;
use crate::platform;

/// How often a temporary name is tried: somebody who cleans up may take a name between its creation and its lock.
const ATTEMPTS: usize = 8;

/// A path whose file is replaced in one step, again and again.
#[derive(Clone, Debug)]
pub struct AtomicFile {
    path: PathBuf,
}

impl AtomicFile {
    /// Checks that `path` can be replaced, and removes what killed writers have left beside it. An existing file stays
    /// as it is until [`AtomicFile::replace`].
    ///
    /// # Errors
    /// What the system says: no such folder, no right to write there, a path that is a folder.
    pub fn new(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        match path.symlink_metadata() {
            Ok(known) if known.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        remove_leftovers(&path);
        Fresh::beside(&path)?;
        Ok(Self { path })
    }

    /// Makes the concatenation of `parts` the content of the file.
    ///
    /// It does not wait for the disk: [`AtomicFile::sync`] does.
    ///
    /// # Errors
    /// What the system says; then the file has the content that it had before.
    pub fn replace(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut fresh = Fresh::beside(&self.path)?;
        parts.iter().try_for_each(|part| fresh.file.write_all(part))?;
        fresh.put_in_place(&self.path)
    }

    /// Waits until the content is on the disk: some file systems report only then that they are full.
    ///
    /// # Errors
    /// What the system says.
    pub fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Writes `path` by `write`: into a new file, which replaces `path` when it is complete. A pipe or a device is written
/// as a stream, because a file must not replace it.
///
/// # Errors
/// `Io`; whatever `write` says.
pub(crate) fn write_atomic(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    match fs::metadata(path) {
        Ok(known) if known.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
        Ok(known) if !known.is_file() => return write(&mut File::options().write(true).open(path)?),
        _ => {}
    }
    remove_leftovers(path);
    let mut fresh = Fresh::beside(path)?;
    write(&mut fresh.file)?;
    // Some file systems report only here that they are full.
    fresh.file.sync_all()?;
    Ok(fresh.put_in_place(path)?)
}

/// A file that is not complete yet.
struct Fresh {
    file: File,
    /// Its temporary name; `None` while it has none.
    name: Option<PathBuf>,
}

impl Fresh {
    fn beside(path: &Path) -> io::Result<Self> {
        if path.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
        }
        match platform::nameless_file(folder_of(path)) {
            Ok(file) => {
                // A lock of a file that only we know never fails where there are locks.
                let _ = file.try_lock();
                Ok(Self { file, name: None })
            }
            Err(_) => Self::named(path),
        }
    }

    fn named(path: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let name = temporary_name(path);
            let file = File::options().write(true).create_new(true).open(&name)?;
            let locked = file.try_lock();
            let fresh = Self { file, name: Some(name) };
            if !matches!(locked, Err(TryLockError::WouldBlock))
                && fresh.name.as_ref().is_some_and(|name| name.exists())
            {
                return Ok(fresh);
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "another program removes every temporary file"))
    }

    fn put_in_place(mut self, path: &Path) -> io::Result<()> {
        if let Ok(old) = fs::metadata(path) {
            // Keep the permissions: a user who could not read the old file must not read the new one.
            self.file.set_permissions(old.permissions())?;
        }
        if self.name.is_none() {
            // A new file needs no temporary name at all.
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

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // A file that is not there any more is what we want.
            let _ = fs::remove_file(name);
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the temporary names of `path` begin with.
fn temporary_prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    // The longest name that a file system takes leaves no room for ours.
    let name = path.file_name().unwrap_or_default();
    prefix.push(if name.len() > 200 { OsStr::new("output") } else { name });
    prefix.push(".");
    prefix
}

const TEMPORARY_SUFFIX: &[u8] = b".tmp";

/// A name in the same folder that nobody else uses: a process number may be another one's in a container.
fn temporary_name(path: &Path) -> PathBuf {
    let mut name = temporary_prefix(path);
    name.push(format!("{:016x}.tmp", RandomState::new().hash_one(path)));
    folder_of(path).join(name)
}

/// Removes the temporary files of `path` that have lost their writers.
fn remove_leftovers(path: &Path) {
    let prefix = temporary_prefix(path);
    for entry in fs::read_dir(folder_of(path)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let is_ours = name.starts_with(prefix.as_encoded_bytes()) && name.ends_with(TEMPORARY_SUFFIX);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            remove_abandoned(&entry.path());
        }
    }
}

/// Removes the file if nobody holds its lock.
fn remove_abandoned(path: &Path) {
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
    fn a_file_is_replaced_when_it_is_complete_and_not_before() {
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
        assert!(write_atomic(folder.path(), |_| Ok(())).is_err(), "a folder is no file");
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
        let alive = Fresh::named(&path).unwrap();
        fs::write(temporary_name(&path), "half").unwrap();
        fs::write(folder.path().join(".y.0.tmp"), "another file's").unwrap();
        let file = AtomicFile::new(&path).unwrap();
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
        assert!(alive.name.as_ref().unwrap().exists());
        alive.put_in_place(&path).unwrap();
        file.replace(&[b"new"]).unwrap();
        file.sync().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()).len(), 2);
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
    #[cfg_attr(miri, ignore = "Miri makes no pipes in the file system")]
    fn a_pipe_is_written_and_stays_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is of coreutils");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path)
        });
        write_atomic(&path, |file| Ok(file.write_all(b"through")?)).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"through");
        assert!(!fs::metadata(&path).unwrap().is_file());
    }
}
