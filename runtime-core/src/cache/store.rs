//! The store on this machine's disk: one file per entry, `<folder>/<2 hexadecimal digits>/<62 digits>`.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::code::CachedCode;
use super::entry::{self, Damage};
use super::eviction::{self, Limits};
use super::key::Key;
use super::lock::{ByteLock, FolderLocks};
use super::usage::Usage;
use crate::Result;
use crate::atomic_file::TemporaryFile;
use crate::platform::trust::{self, Owner};

/// How long a write waits for the usage file before it goes on without it.
const USAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// A hit updates the time of last use only if it is older than this.
const USE_RESOLUTION: Duration = Duration::from_secs(60);

/// A folder with entries.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    is_writable: bool,
    limits: Limits,
    locks: Arc<FolderLocks>,
}

/// What a lookup finds.
#[derive(Debug)]
pub(super) enum Lookup {
    Found(CachedCode),
    Missing,
    /// A file that is no usable entry.
    Damaged(Damage),
}

impl Store {
    /// Opens a folder, and creates it if it is to be written.
    ///
    /// # Errors
    /// `Io` if it cannot be created or examined; `Unavailable` if other users could change what is in it.
    pub(super) fn open(folder: &Path, is_writable: bool, limits: Limits) -> Result<Self> {
        if is_writable {
            trust::create_folder(folder)?;
        }
        let folder = trust::check_folder(folder, Owner::User)?;
        let locks = FolderLocks::of_folder(&folder, is_writable);
        Ok(Self { folder, is_writable, limits, locks })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn is_writable(&self) -> bool {
        self.is_writable
    }

    pub(super) fn locks(&self) -> &FolderLocks {
        &self.locks
    }

    /// Waits until no other process obtains the code of `key`, but not beyond the deadline.
    pub(super) fn lock(&self, key: &Key, deadline: Instant) -> Option<ByteLock<'_>> {
        if self.is_writable { self.locks.lock_key(key, deadline) } else { None }
    }

    /// Reads and checks an entry.
    pub(super) fn read(&self, key: &Key) -> Lookup {
        let (mut file, metadata) = match trust::open_file(&path_of(&self.folder, &key.name()), Owner::User) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Lookup::Missing,
            Err(error) => return Lookup::Damaged(Damage::Unreadable(error)),
        };
        if metadata.len() > self.limits.bytes {
            return Lookup::Damaged(Damage::Length);
        }
        match entry::read(&mut file, metadata.len(), key) {
            Ok(code) => {
                self.note_use(&file, &metadata);
                Lookup::Found(code)
            }
            Err(damage) => Lookup::Damaged(damage),
        }
    }

    fn note_use(&self, file: &File, metadata: &Metadata) {
        let now = SystemTime::now();
        // A time in the future, from before the clock was set back, would keep an entry for too long.
        let is_old = metadata
            .modified()
            .is_ok_and(|used| now.duration_since(used).map_or(true, |age| age > USE_RESOLUTION));
        if self.is_writable && is_old {
            // It only affects the order in which entries are removed.
            let _ = file.set_modified(now);
        }
    }

    /// Writes an entry, and makes room for it first. Returns false if it is larger than the bound of the store.
    ///
    /// # Errors
    /// The system's error; nothing is left behind then.
    pub(super) fn write(&self, key: &Key, code: &CachedCode) -> io::Result<bool> {
        let head = entry::encode_head(key, code);
        let bytes = (head.len() + code.code.len()) as u64;
        if !self.limits.allow(bytes, 1) {
            return Ok(false);
        }
        let path = path_of(&self.folder, &key.name());
        let mut temporary = create_private(&path)?;
        temporary.file.write_all(&head)?;
        temporary.file.write_all(&code.code)?;
        // Some file systems report only here that they are full.
        temporary.file.sync_all()?;
        self.publish(&path, bytes, temporary)?;
        Ok(true)
    }

    /// Counts the new entry, makes room for it, and gives it its name.
    fn publish(&self, path: &Path, bytes: u64, temporary: TemporaryFile) -> io::Result<()> {
        let Some(_lock) = self.locks.lock_usage(Instant::now() + USAGE_TIMEOUT) else {
            temporary.persist(path)?;
            // After the entry: a scan in between would miss it.
            Usage::forget(&self.folder);
            return Ok(());
        };
        let mut usage = Usage::read(&self.folder).unwrap_or_else(|| eviction::measure(&self.folder));
        let replaced = fs::symlink_metadata(path).map(|old| old.len()).ok();
        if let Some(old) = replaced {
            usage.subtract(old);
        }
        if !self.limits.allow(usage.bytes.saturating_add(bytes), usage.entries.saturating_add(1)) {
            usage = eviction::make_room(&self.folder, self.limits, bytes, path);
        }
        usage.add(bytes);
        self.record(usage);
        let persisted = temporary.persist(path);
        if persisted.is_err() {
            Usage::forget(&self.folder);
        }
        persisted
    }

    fn record(&self, usage: Usage) {
        if usage.write(&self.folder).is_err() {
            Usage::forget(&self.folder);
        }
    }

    /// Removes a damaged entry, if it exists. Its size may have changed, so the next write scans the folder.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn remove_damaged(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(path_of(&self.folder, name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                Usage::forget(&self.folder);
                Ok(())
            }
        }
    }

    /// Removes an entry, if it exists.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let path = path_of(&self.folder, name);
        let lock = self.locks.lock_usage(Instant::now() + USAGE_TIMEOUT);
        let removed = fs::symlink_metadata(&path).and_then(|metadata| {
            fs::remove_file(&path)?;
            Ok(metadata.len())
        });
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(bytes) => {
                match Usage::read(&self.folder).filter(|_| lock.is_some()) {
                    Some(mut usage) => {
                        usage.subtract(bytes);
                        self.record(usage);
                    }
                    None => Usage::forget(&self.folder),
                }
                Ok(())
            }
        }
    }
}

/// The path of an entry.
pub(super) fn path_of(folder: &Path, name: &str) -> PathBuf {
    let (first, rest) = name.split_at(2);
    folder.join(first).join(rest)
}

/// A temporary file that only this user may read, in a folder that is created if it is missing.
pub(super) fn create_private(path: &Path) -> io::Result<TemporaryFile> {
    let create = || {
        let temporary = TemporaryFile::create_beside(path)?;
        temporary.file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(temporary)
    };
    match create() {
        Err(error) if io::Error::kind(&error) == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path);
            trust::create_folder(folder).map_err(io::Error::other)?;
            create()
        }
        created => created,
    }
}
