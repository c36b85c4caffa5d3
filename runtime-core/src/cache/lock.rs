//! Locks between processes that share a folder: one for each key, so that code is compiled once, and one for
//! the usage file.
//!
//! They only save work. An entry is complete and checked without them, and they are not waited for beyond a
//! deadline. The system's locks belong to the process, and closing any descriptor of the file releases them
//! all; hence all caches of a process that use one folder share one [`FolderLocks`].

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::in_flight::InFlight;
use super::key::Key;
use crate::{platform, process};

/// The byte of the usage file's lock. Those of the keys come after it.
const USAGE_OFFSET: u64 = 0;
/// How long the registry of open folders is waited for: in a forked child, its holder may not exist.
const REGISTRY_TIMEOUT: Duration = Duration::from_secs(1);
/// Pauses between attempts to get a lock.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(25);

/// The open folders of the process.
static OPEN: Mutex<Vec<Weak<FolderLocks>>> = Mutex::new(Vec::new());

/// The locks of one folder, for the whole process.
#[derive(Debug)]
pub(super) struct FolderLocks {
    /// Device and inode of the folder.
    identity: Option<(u64, u64)>,
    generation: u32,
    /// `None` if it cannot be opened, as on a read-only disk: then there are no locks.
    file: Option<File>,
    usage: Mutex<()>,
    in_flight: Arc<InFlight>,
}

impl FolderLocks {
    /// The locks of a folder that exists. Without `create`, processes take turns only where there is a lock file
    /// already.
    pub(super) fn of_folder(folder: &Path, create: bool) -> Arc<Self> {
        let identity = fs::metadata(folder).ok().map(|metadata| platform::file_identity(&metadata));
        let Some(mut open) = OPEN.try_lock_for(REGISTRY_TIMEOUT) else {
            return Arc::new(Self::open(folder, identity, create));
        };
        open.retain(|locks| locks.strong_count() > 0);
        let is_same = |locks: &Arc<Self>| {
            identity.is_some() && locks.identity == identity && locks.generation == process::generation()
        };
        if let Some(locks) = open.iter().filter_map(Weak::upgrade).find(is_same) {
            return locks;
        }
        let locks = Arc::new(Self::open(folder, identity, create));
        open.push(Arc::downgrade(&locks));
        locks
    }

    fn open(folder: &Path, identity: Option<(u64, u64)>, create: bool) -> Self {
        let mut options = File::options();
        options.read(true).write(true).create(create).mode(0o600);
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        Self {
            identity,
            generation: process::generation(),
            file: options.open(folder.join("lock")).ok(),
            usage: Mutex::new(()),
            in_flight: Arc::default(),
        }
    }

    /// What the threads of this process obtain at the moment.
    pub(super) fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// Waits for the lock of a key. `None` once the deadline has passed, or if there are no locks here.
    pub(super) fn lock_key(&self, key: &Key, deadline: Instant) -> Option<ByteLock<'_>> {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&key.digest()[..6]);
        ByteLock::acquire(self.file.as_ref()?, USAGE_OFFSET + 1 + u64::from_le_bytes(bytes), deadline).ok()?
    }

    /// Waits for the lock of the usage file. `None` once the deadline has passed.
    pub(super) fn lock_usage(&self, deadline: Instant) -> Option<UsageLock<'_>> {
        let thread = self.usage.try_lock_until(deadline)?;
        let process = match &self.file {
            // Where there are no locks, the threads of this process still take turns.
            Some(file) => match ByteLock::acquire(file, USAGE_OFFSET, deadline) {
                Ok(Some(lock)) => Some(lock),
                Ok(None) => return None,
                Err(_) => None,
            },
            None => None,
        };
        Some(UsageLock { _process: process, _thread: thread })
    }
}

/// The lock of the usage file.
#[derive(Debug)]
pub(super) struct UsageLock<'a> {
    _process: Option<ByteLock<'a>>,
    _thread: MutexGuard<'a, ()>,
}

/// A locked byte of the lock file.
#[derive(Debug)]
pub(super) struct ByteLock<'a> {
    file: &'a File,
    offset: u64,
}

impl<'a> ByteLock<'a> {
    /// Tries until the deadline; `None` if it passes.
    ///
    /// # Errors
    /// The system's error, where locks are unsupported.
    fn acquire(file: &'a File, offset: u64, deadline: Instant) -> io::Result<Option<Self>> {
        let mut pause = FIRST_PAUSE;
        while !platform::try_lock_byte(file, offset)? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(Some(Self { file, offset }))
    }
}

impl Drop for ByteLock<'_> {
    fn drop(&mut self) {
        platform::unlock_byte(self.file, self.offset);
    }
}
