//! Bounds of a store: what a scan finds, and which entries are removed to make room.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::usage::Usage;
use crate::atomic_file;

/// The most that a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) entries: u64,
}

impl Limits {
    pub(super) fn allow(self, bytes: u64, entries: u64) -> bool {
        bytes <= self.bytes && entries <= self.entries
    }

    /// What remains after entries were removed, so that not every write has to remove some.
    fn target(self) -> Self {
        Self { bytes: self.bytes / 10 * 9, entries: self.entries / 10 * 9 }
    }
}

/// A file in the place of an entry.
#[derive(Clone, Debug)]
pub(super) struct StoredFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) used: SystemTime,
}

/// All entries of a folder, in no order. Temporary files of writers that are gone are removed on the way if
/// `clean` is set.
pub(super) fn scan(folder: &Path, clean: bool) -> Vec<StoredFile> {
    let mut found = Vec::new();
    for part in fs::read_dir(folder).into_iter().flatten().flatten() {
        let first = part.file_name();
        let Some(first) = first.to_str().filter(|name| is_hexadecimal(name, 2)) else { continue };
        if !part.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if clean {
            atomic_file::remove_all_stale_files(&part.path());
        }
        for entry in fs::read_dir(part.path()).into_iter().flatten().flatten() {
            let rest = entry.file_name();
            let Some(rest) = rest.to_str().filter(|name| is_hexadecimal(name, 62)) else { continue };
            // It may have been removed in the meantime.
            let Ok(metadata) = entry.metadata() else { continue };
            found.push(StoredFile {
                name: format!("{first}{rest}"),
                path: entry.path(),
                bytes: metadata.len(),
                used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
    }
    found
}

fn is_hexadecimal(name: &str, digits: usize) -> bool {
    name.len() == digits && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Scans a folder for what it holds.
pub(super) fn measure(folder: &Path) -> Usage {
    total(&scan(folder, true))
}

/// What these entries amount to.
pub(super) fn total(files: &[StoredFile]) -> Usage {
    Usage::scanned(files.iter().map(|file| file.bytes).sum(), files.len() as u64)
}

/// Scans a folder, and removes the least recently used entries until `bytes` more fit. Returns what remains,
/// without the entry at `replaced`.
pub(super) fn make_room(folder: &Path, limits: Limits, bytes: u64, replaced: &Path) -> Usage {
    let mut files = scan(folder, true);
    files.retain(|file| file.path != replaced);
    let usage = total(&files);
    if limits.allow(usage.bytes.saturating_add(bytes), usage.entries.saturating_add(1)) {
        return usage;
    }
    remove_oldest(files, |left, _| {
        limits.target().allow(left.bytes.saturating_add(bytes), left.entries.saturating_add(1))
    })
    .0
}

/// Removes the least recently used entries until `enough` is true of what is left and the next entry.
/// Returns what remains, and what was removed.
pub(super) fn remove_oldest(
    mut files: Vec<StoredFile>,
    enough: impl Fn(&Usage, &StoredFile) -> bool,
) -> (Usage, Usage) {
    let (mut left, mut removed) = (total(&files), Usage::scanned(0, 0));
    files.sort_unstable_by(|one, other| (one.used, &one.name).cmp(&(other.used, &other.name)));
    for file in &files {
        if enough(&left, file) {
            break;
        }
        if fs::remove_file(&file.path).is_ok() || !file.path.exists() {
            left.subtract(file.bytes);
            removed.add(file.bytes);
        }
    }
    (left, removed)
}
