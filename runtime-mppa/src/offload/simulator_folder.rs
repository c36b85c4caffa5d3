//! The folder through which the offload library and a simulator meet.
//!
//! Only what the marker records is removed when the folder is used again: files of a user that lie beside it are not ours.

#![allow(unsafe_code, reason = "reads the user's number")]

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, DirEntry, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use runtime_core::{Error, Result};

use crate::environment::SIMULATOR_FOLDER;
use crate::process::io_error;
use crate::unavailable;

/// A locked file, with the names of the entries that the last simulator made.
const MARKER: &str = "runtime-mppa.lock";
/// The name of the folder itself in the marker: this backend created it.
const SELF: &str = ".";
/// In the marker of a folder that is not cleared on drop. No file has this name.
const KEPT: &str = "./kept";
/// Begins the names of folders that belong to one process.
const PREFIX: &str = "runtime-mppa-";
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Room for the names of more files than a simulator makes.
const MAX_MARKER_BYTES: u64 = 16 << 20;
/// How often the folder may be removed by its last user while it is being locked.
const MAX_ATTEMPTS: u32 = 100;

/// A folder that one simulator uses at a time.
#[derive(Debug)]
pub(super) struct SimulatorFolder {
    path: PathBuf,
    is_created: bool,
    removes: bool,
    /// Held open for its lock.
    marker: File,
}

impl SimulatorFolder {
    /// Creates the folder, or clears one that is not in use. With `removes`, it is cleared on drop, and removed if this backend
    /// created it.
    ///
    /// # Errors
    /// `InvalidArgument` if other users may write to it, or it has files that the marker does not record; `Unavailable` if another
    /// simulator uses it; `Io`.
    pub(super) fn create(path: &Path, removes: bool) -> Result<Self> {
        let fails = |error| io_error(path, error);
        std::fs::create_dir_all(path.parent().unwrap_or(path)).map_err(fails)?;
        for _ in 0..MAX_ATTEMPTS {
            let is_created = create_private(path).map_err(fails)?;
            let marker = match open_marker(path) {
                // Its last user has just removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(fails)??,
            };
            match marker.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(path)),
                Err(TryLockError::Error(error)) => return Err(fails(error)),
            }
            // The last user may have removed the file between the two calls.
            if is_at(&marker, &path.join(MARKER)) {
                return Self::take(path, marker, is_created, removes);
            }
        }
        Err(in_use(path))
    }

    /// Takes a folder that is locked, and removes what its last simulator left.
    fn take(path: &Path, marker: File, is_created: bool, removes: bool) -> Result<Self> {
        let fails = |error| io_error(path, error);
        let (recorded, entries) = (recorded(&marker).map_err(fails)?, entries(path).map_err(fails)?);
        if let Some(other) = entries.iter().find(|entry| !recorded.contains(&entry.file_name())) {
            if recorded.is_empty() {
                // The marker is new. If it stays, it is no obstacle.
                let _ = std::fs::remove_file(path.join(MARKER));
            }
            return Err(not_recorded(&other.path()));
        }
        entries.iter().try_for_each(remove).map_err(fails)?;
        let is_created = is_created || recorded.contains(OsStr::new(SELF));
        let folder = Self { path: path.to_owned(), is_created, removes, marker };
        folder.record()?;
        Ok(folder)
    }

    /// Removes the folders with names of this backend that killed processes of this user have left beside `path`, if that has such a
    /// name, too. Folders that were to be kept stay.
    pub(super) fn remove_abandoned(path: &Path) {
        let (Some(parent), Some(_)) = (path.parent(), namer(path)) else { return };
        let siblings = std::fs::read_dir(parent).into_iter().flatten().flatten();
        let folders = siblings.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for path in folders.map(|entry| entry.path()) {
            let is_abandoned = namer(&path).is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists());
            if is_abandoned && !is_kept(&path) {
                // What is in use, or has other files, is not taken.
                drop(Self::create(&path, true));
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Records all entries as those of the simulator: the folder was empty when it started.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn record(&self) -> Result<()> {
        self.write_names().map_err(|error| io_error(&self.path, error))
    }

    fn write_names(&self) -> io::Result<()> {
        let own = self.is_created.then_some(SELF).into_iter().chain((!self.removes).then_some(KEPT));
        let made = entries(&self.path)?.into_iter().map(|entry| entry.file_name());
        let names = own.map(OsString::from).chain(made);
        // No name has a zero byte.
        let bytes: Vec<u8> = names.flat_map(|name| [name.as_bytes(), &[0]].concat()).collect();
        let mut file = &self.marker;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&bytes)
    }

    /// How many files the simulator has made, and whether one is a socket.
    pub(super) fn contents(&self) -> (usize, bool) {
        let entries = entries(&self.path).unwrap_or_default();
        let is_socket = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
        (entries.len(), entries.iter().any(is_socket))
    }

    fn remove(&self) -> io::Result<()> {
        entries(&self.path)?.iter().try_for_each(remove)?;
        std::fs::remove_file(self.path.join(MARKER))?;
        if self.is_created { std::fs::remove_dir(&self.path) } else { Ok(()) }
    }
}

impl Drop for SimulatorFolder {
    fn drop(&mut self) {
        // What cannot be removed or recorded is an error when the folder is used again.
        let _ = if self.removes { self.remove() } else { self.write_names() };
    }
}

/// The name of a folder that only this process uses.
pub(super) fn own_name(platform: &str) -> String {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{PREFIX}{platform}-{}-{time}", std::process::id())
}

/// The number of the process that has named a folder.
fn namer(path: &Path) -> Option<u32> {
    let parts: Vec<_> = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.split('-').collect();
    let [_, process, _] = parts[..] else { return None };
    process.parse().ok()
}

fn is_kept(folder: &Path) -> bool {
    let names = File::open(folder.join(MARKER)).and_then(|marker| recorded(&marker));
    names.is_ok_and(|names| names.contains(OsStr::new(KEPT)))
}

/// Creates a folder for this user alone. Returns whether it is new.
fn create_private(path: &Path) -> io::Result<bool> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens the marker of a folder that only this user may write to; the inner error says that others may, or that it is no marker.
fn open_marker(folder: &Path) -> io::Result<Result<File>> {
    let metadata = folder.metadata()?;
    // SAFETY: only reads a number.
    let user = unsafe { libc::geteuid() };
    if metadata.uid() != user || metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return Ok(Err(Error::invalid(format!(
            "other users may write to {}; set {SIMULATOR_FOLDER} to a new folder",
            folder.display()
        ))));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let path = folder.join(MARKER);
    let marker = options.open(&path)?;
    let metadata = marker.metadata()?;
    if metadata.is_file() && metadata.len() <= MAX_MARKER_BYTES {
        return Ok(Ok(marker));
    }
    Ok(Err(Error::invalid(format!(
        "{} was not made by this backend; remove it, or set {SIMULATOR_FOLDER} to a new folder",
        path.display()
    ))))
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let identity =
        |metadata: io::Result<Metadata>| Some((metadata.as_ref().ok()?.dev(), metadata.ok()?.ino()));
    let open = identity(file.metadata());
    open.is_some() && open == identity(path.symlink_metadata())
}

/// The entries of a folder, without the marker.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter(|entry| entry.file_name() != MARKER).collect())
}

/// The names in a marker.
fn recorded(mut marker: &File) -> io::Result<BTreeSet<OsString>> {
    let mut bytes = Vec::new();
    marker.rewind()?;
    marker.read_to_end(&mut bytes)?;
    let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsString::from_vec(name.to_vec())).collect())
}

fn remove(entry: &DirEntry) -> io::Result<()> {
    if entry.file_type()?.is_dir() {
        std::fs::remove_dir_all(entry.path())
    } else {
        std::fs::remove_file(entry.path())
    }
}

fn in_use(path: &Path) -> Error {
    unavailable(format!(
        "{} is used by another simulator; a process has only one, in a folder of its own: close that device, or set \
         {SIMULATOR_FOLDER} to another folder before the program starts",
        path.display()
    ))
}

fn not_recorded(path: &Path) -> Error {
    Error::invalid(format!(
        "{} is not recorded as a file of a simulator, so it is not removed; remove it, or set {SIMULATOR_FOLDER} to a new folder",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicU32, Ordering};

    use runtime_core::ErrorKind;

    use super::*;

    fn refused(path: &Path, kind: ErrorKind) -> String {
        let error = SimulatorFolder::create(path, true).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(SIMULATOR_FOLDER), "{error}");
        error.message().to_owned()
    }

    #[test]
    fn a_folder_has_one_simulator() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/mymppa");
        let folder = SimulatorFolder::create(&path, true).unwrap();
        refused(&path, ErrorKind::Unavailable);
        assert_eq!(folder.contents(), (0, false));
        drop(folder);
        assert!(!path.exists());
        std::fs::create_dir(&path).unwrap();
        drop(SimulatorFolder::create(&path, true).unwrap());
        assert!(entries(&path).unwrap().is_empty() && path.exists(), "a folder of the user stays");
    }

    #[test]
    fn a_marker_that_is_no_marker_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mymppa");
        std::fs::create_dir(&path).unwrap();
        let marker = path.join(MARKER);
        File::create(&marker).unwrap().set_len(MAX_MARKER_BYTES + 1).unwrap();
        assert!(refused(&path, ErrorKind::InvalidArgument).contains("was not made by this backend"));
        std::fs::remove_file(&marker).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&marker).status().unwrap().success());
        assert!(refused(&path, ErrorKind::InvalidArgument).contains("was not made by this backend"));
        assert!(marker.exists());
    }

    #[test]
    fn files_of_others_stay_also_beside_a_marker() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mymppa");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("thesis.tex"), "").unwrap();
        assert!(refused(&path, ErrorKind::InvalidArgument).contains("thesis.tex"));
        assert!(path.join("thesis.tex").exists() && !path.join(MARKER).exists());
        std::fs::remove_file(path.join("thesis.tex")).unwrap();
        drop(SimulatorFolder::create(&path, false).unwrap());
        std::fs::write(path.join("thesis.tex"), "").unwrap();
        assert!(refused(&path, ErrorKind::InvalidArgument).contains("thesis.tex"));
        assert!(path.join("thesis.tex").exists() && path.join(MARKER).exists());
    }

    #[test]
    fn what_a_killed_process_left_is_cleared() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mymppa");
        // As a killed process, it removes nothing and gives its lock back.
        let mut killed = std::mem::ManuallyDrop::new(SimulatorFolder::create(&path, true).unwrap());
        std::fs::create_dir(path.join("memory")).unwrap();
        std::fs::write(path.join("memory/0"), "").unwrap();
        let _socket = UnixListener::bind(path.join("socket")).unwrap();
        killed.record().unwrap();
        killed.marker = File::open(root.path()).unwrap();
        let folder = SimulatorFolder::create(&path, true).unwrap();
        assert_eq!(folder.contents(), (0, false));
        let _socket = UnixListener::bind(path.join("socket")).unwrap();
        assert_eq!(folder.contents(), (1, true));
        drop(folder);
        assert!(!path.exists(), "a process of this backend created it");
    }

    #[test]
    fn folders_that_killed_processes_left_are_removed() {
        let root = tempfile::tempdir().unwrap();
        // No process has this number.
        let path = |process: u32, time| root.path().join(format!("{PREFIX}iss-{process}-{time}"));
        let kill = |path: &Path, removes| {
            let mut killed = std::mem::ManuallyDrop::new(SimulatorFolder::create(path, removes).unwrap());
            std::fs::write(path.join("memory"), "").unwrap();
            killed.record().unwrap();
            killed.marker = File::open(root.path()).unwrap();
        };
        let (dead, kept, live) = (path(u32::MAX, 1), path(u32::MAX, 2), path(std::process::id(), 3));
        kill(&dead, true);
        kill(&kept, false);
        kill(&live, true);
        let used = SimulatorFolder::create(&path(u32::MAX, 4), true).unwrap();
        std::fs::create_dir(path(u32::MAX, 5)).unwrap();
        std::fs::write(path(u32::MAX, 5).join("thesis.tex"), "").unwrap();
        SimulatorFolder::remove_abandoned(&root.path().join("mymppa"));
        assert!(dead.exists(), "a folder that the user has named says nothing about others");
        SimulatorFolder::remove_abandoned(&root.path().join(own_name("qemu")));
        assert!(!dead.exists(), "it stays");
        assert!(kept.join("memory").exists() && live.join("memory").exists() && used.path().exists());
        assert!(path(u32::MAX, 5).join("thesis.tex").exists());
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mymppa");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refused(&path, ErrorKind::InvalidArgument).contains("other users"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let target = root.path().join("target");
        std::os::unix::fs::symlink(&target, path.join(MARKER)).unwrap();
        assert_eq!(SimulatorFolder::create(&path, true).unwrap_err().kind(), ErrorKind::Io);
        assert!(!target.exists(), "nothing is made through a link");
    }

    #[test]
    fn users_side_by_side_see_only_that_it_is_in_use() {
        let root = tempfile::tempdir().unwrap();
        let (path, uses) = (root.path().join("mymppa"), AtomicU32::new(0));
        let try_often = || {
            for _ in 0..200 {
                match SimulatorFolder::create(&path, true) {
                    Ok(_folder) => {
                        assert_eq!(uses.fetch_add(1, Ordering::SeqCst), 0, "used twice at once");
                        std::fs::write(path.join("memory"), "").unwrap();
                        uses.fetch_sub(1, Ordering::SeqCst);
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
                }
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(try_often))));
    }

    #[test]
    fn a_marker_that_was_replaced_is_no_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(MARKER);
        let file = File::create(&path).unwrap();
        assert!(is_at(&file, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path));
        let _other = File::create(&path).unwrap();
        assert!(!is_at(&file, &path));
    }
}
