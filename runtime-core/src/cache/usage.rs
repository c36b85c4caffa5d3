//! The usage file: how much the folder holds, so that no write has to scan it.
//!
//! It counts an entry before the entry appears, so after a crash it says too much rather than too little. If it
//! is missing, damaged or old, the next write scans the folder.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::numbers_file;

const NAME: &str = "usage";
/// Files that users remove are not subtracted, so the folder is scanned again after this time.
const VALID_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a folder holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) bytes: u64,
    pub(super) entries: u64,
    /// When the folder was scanned, in seconds since 1970.
    checked_s: u64,
}

impl Usage {
    /// What a scan has found just now.
    pub(super) fn scanned(bytes: u64, entries: u64) -> Self {
        Self { bytes, entries, checked_s: now_s() }
    }

    /// Reads the file; `None` if the folder must be scanned.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let [bytes, entries, checked_s] = numbers_file::read(&folder.join(NAME))?;
        let is_current = now_s().checked_sub(checked_s).is_some_and(|age| age <= VALID_FOR.as_secs());
        is_current.then_some(Self { bytes, entries, checked_s })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn write(self, folder: &Path) -> io::Result<()> {
        numbers_file::write(&folder.join(NAME), [self.bytes, self.entries, self.checked_s])
    }

    /// Removes the file, so that the next write scans the folder.
    pub(super) fn forget(folder: &Path) {
        // Where it cannot be removed, nothing else can be written either.
        let _ = fs::remove_file(folder.join(NAME));
    }

    /// Counts an entry.
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.entries = self.entries.saturating_add(1);
    }

    /// No longer counts an entry.
    pub(super) fn subtract(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.entries = self.entries.saturating_sub(1);
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
