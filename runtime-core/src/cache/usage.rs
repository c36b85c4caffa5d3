//! The usage file: how much the folder holds, so that no write has to scan it.
//!
//! It counts an entry before the entry appears, so after a crash it says too much rather than too little. If it
//! is missing, damaged or old, the next write scans the folder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::trust::{self, Owner};

const NAME: &str = "usage";
const NUMBERS_BYTES: usize = 24;
const FILE_BYTES: usize = NUMBERS_BYTES + 32;
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
        let (file, metadata) = trust::open_file(&folder.join(NAME), Owner::User).ok()?;
        let mut bytes = [0; FILE_BYTES];
        if metadata.len() != FILE_BYTES as u64 || file.read_exact_at(&mut bytes, 0).is_err() {
            return None;
        }
        let (numbers, hash) = bytes.split_at(NUMBERS_BYTES);
        let number = |at: usize| Some(u64::from_le_bytes(numbers[at..at + 8].try_into().ok()?));
        let usage = Self { bytes: number(0)?, entries: number(8)?, checked_s: number(16)? };
        let is_current = now_s().checked_sub(usage.checked_s).is_some_and(|age| age <= VALID_FOR.as_secs());
        (blake3::hash(numbers) == *hash && is_current).then_some(usage)
    }

    /// Writes the file, in place: that works on a full disk, too.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn write(self, folder: &Path) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        for number in [self.bytes, self.entries, self.checked_s] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(blake3::hash(&bytes).as_bytes());
        let mut options = File::options();
        options.write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(folder.join(NAME))?;
        file.write_all_at(&bytes, 0)?;
        if file.metadata()?.len() == FILE_BYTES as u64 { Ok(()) } else { file.set_len(FILE_BYTES as u64) }
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
