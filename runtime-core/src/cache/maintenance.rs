//! What `runtime cache` does: lists, verifies and removes entries.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::CodeCache;
use super::entry;
use super::eviction::{self, Limits, StoredFile};
use super::key::{self, Key};
use super::lock::UsageLock;
use super::notes;
use super::options::CacheAccess;
use super::store::Store;
use super::totals::LoadTotals;
use super::usage::Usage;
use crate::platform::trust::{self, Owner};
use crate::{Error, ErrorKind, Result};

/// How long it waits for processes that write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// An entry, as its file describes it.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct CacheEntryInfo {
    /// Its name: the hash of its key, in hexadecimal.
    pub name: String,
    /// Size of its file in bytes.
    pub bytes: u64,
    /// When it was last used, to a minute.
    pub last_used: SystemTime,
    /// The format of its code; `None` if the file cannot be read.
    pub format: Option<String>,
    /// The kernels that it describes, which may not be all.
    pub kernels: Vec<String>,
    /// The parts of its key, in order: their names and values.
    pub key: Vec<(String, Vec<u8>)>,
}

/// What the cache holds.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Bytes of all entries.
    pub bytes: u64,
    /// Number of entries.
    pub entries: u64,
}

impl From<Usage> for CacheUsage {
    fn from(usage: Usage) -> Self {
        Self { bytes: usage.bytes, entries: usage.entries }
    }
}

/// What a check of all entries found.
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// The entries that are intact.
    pub intact: CacheUsage,
    /// The others.
    pub damaged: Vec<DamagedEntry>,
}

/// An entry that cannot be used.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct DamagedEntry {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Which entries to remove. Without any bound, those that exceed the bounds of the cache.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default)]
pub struct PruneOptions {
    /// Remove the least recently used entries until the others have at most this many bytes.
    pub max_bytes: Option<u64>,
    /// Remove entries that were not used for this long.
    pub older_than: Option<Duration>,
}

impl CodeCache {
    /// All entries, the most recently used first. Their code is not checked; [`CodeCache::verify`] does that.
    ///
    /// # Errors
    /// `Unavailable` or `Io` if the cache cannot be used.
    pub fn list(&self) -> Result<Vec<CacheEntryInfo>> {
        let Some(store) = self.existing_store()? else { return Ok(Vec::new()) };
        let mut files = eviction::scan(store.folder(), false);
        files.sort_unstable_by(|one, other| (other.used, &one.name).cmp(&(one.used, &other.name)));
        Ok(files.into_iter().map(describe).collect())
    }

    /// What the cache holds, by a scan.
    ///
    /// # Errors
    /// As [`CodeCache::list`].
    pub fn usage(&self) -> Result<CacheUsage> {
        let Some(store) = self.existing_store()? else { return Ok(CacheUsage::default()) };
        Ok(eviction::total(&eviction::scan(store.folder(), false)).into())
    }

    /// What loads through this folder have cost, without those of caches that are still open.
    ///
    /// # Errors
    /// As [`CodeCache::list`].
    pub fn totals(&self) -> Result<LoadTotals> {
        Ok(self.existing_store()?.map(|store| LoadTotals::read(store.folder())).unwrap_or_default())
    }

    /// Reads every entry completely, and removes the damaged ones, unless the cache is read-only.
    ///
    /// # Errors
    /// As [`CodeCache::list`]; `Io` if a damaged entry cannot be removed.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let Some(store) = self.existing_store()? else { return Ok(report) };
        for file in eviction::scan(store.folder(), store.is_writable()) {
            match check(&file, store.limits()) {
                None => {
                    report.intact.bytes += file.bytes;
                    report.intact.entries += 1;
                }
                // Another process has just removed it.
                Some(_) if !file.path.exists() && !file.path.is_symlink() => {}
                Some(reason) => {
                    if store.is_writable() {
                        store.remove_damaged(&file.name)?;
                    }
                    report.damaged.push(DamagedEntry { name: file.name, reason });
                }
            }
        }
        Ok(report)
    }

    /// Removes all entries. Returns what was removed.
    ///
    /// # Errors
    /// As [`CodeCache::list`]; `InvalidArgument` if the cache is read-only.
    pub fn clear(&self) -> Result<CacheUsage> {
        if let Some(store) = self.existing_store()?.filter(|store| store.is_writable()) {
            notes::clear(store.folder());
        }
        self.remove_entries(|_, _| false)
    }

    /// Removes old entries. Returns what was removed.
    ///
    /// # Errors
    /// As [`CodeCache::clear`].
    pub fn prune(&self, options: &PruneOptions) -> Result<CacheUsage> {
        let limits = self.layers().limits;
        let (max_bytes, max_entries) = match (options.max_bytes, options.older_than) {
            (Some(bytes), _) => (bytes, u64::MAX),
            (None, Some(_)) => (u64::MAX, u64::MAX),
            (None, None) => (limits.bytes, limits.entries),
        };
        let oldest = options.older_than.and_then(|age| SystemTime::now().checked_sub(age));
        self.remove_entries(|left, next| {
            left.bytes <= max_bytes
                && left.entries <= max_entries
                && oldest.is_none_or(|oldest| next.used >= oldest)
        })
    }

    /// Removes entries, the least recently used first, until `enough` is true of what is left and the next one.
    fn remove_entries(&self, enough: impl Fn(&Usage, &StoredFile) -> bool) -> Result<CacheUsage> {
        let Some(store) = self.existing_store()? else { return Ok(CacheUsage::default()) };
        if !store.is_writable() {
            return Err(Error::invalid(
                "the code cache is read-only; unset RUNTIME_CACHE, or set it to its folder",
            ));
        }
        let _lock = lock_usage(store)?;
        let files = eviction::scan(store.folder(), true);
        let (left, removed) = eviction::remove_oldest(files, enough);
        if left.write(store.folder()).is_err() {
            Usage::forget(store.folder());
        }
        Ok(removed.into())
    }

    /// The store; `None` if its folder does not exist.
    fn existing_store(&self) -> Result<Option<&Store>> {
        let layers = self.layers();
        match (&layers.store, &layers.folder) {
            (Ok(store), _) => Ok(Some(store)),
            (Err(_), Some(folder)) if layers.access != CacheAccess::Off && is_missing(folder) => Ok(None),
            (Err(error), _) => Err(error.clone()),
        }
    }
}

fn is_missing(folder: &Path) -> bool {
    matches!(folder.symlink_metadata(), Err(error) if error.kind() == std::io::ErrorKind::NotFound)
}

fn lock_usage(store: &Store) -> Result<UsageLock<'_>> {
    store.locks().lock_usage(Instant::now() + LOCK_TIMEOUT).ok_or_else(|| {
        let message = "another process holds the lock of the code cache; try again when it has ended";
        Error::new(ErrorKind::Timeout, message)
    })
}

/// Why an entry cannot be used; `None` if it can.
fn check(file: &StoredFile, limits: Limits) -> Option<String> {
    let (mut opened, metadata) = match trust::open_file(&file.path, Owner::User) {
        Ok(opened) => opened,
        Err(error) => return Some(error.to_string()),
    };
    if metadata.len() > limits.bytes {
        return Some("it is larger than the bound of the cache".to_owned());
    }
    match entry::read_any(&mut opened, metadata.len()) {
        Ok((key, _)) if key.name() == file.name => None,
        Ok((key, _)) => Some(format!("it is entry {} under a wrong name", key.name())),
        Err(damage) => Some(damage.to_string()),
    }
}

fn describe(file: StoredFile) -> CacheEntryInfo {
    let description = trust::open_file(&file.path, Owner::User)
        .ok()
        .and_then(|(mut opened, metadata)| entry::read_description(&mut opened, metadata.len()).ok());
    let mut info = CacheEntryInfo {
        name: file.name,
        bytes: file.bytes,
        last_used: file.used,
        format: None,
        kernels: Vec::new(),
        key: Vec::new(),
    };
    if let Some((key, code)) = description {
        info.format = Some(code.format.to_string());
        info.kernels = match &code.lowered {
            Some(kernels) => kernels.iter().map(|kernel| kernel.name.clone()).collect(),
            None => code.resources.iter().map(|(name, _)| name.clone()).collect(),
        };
        info.key = owned_parts(&key);
    }
    info
}

fn owned_parts(key: &Key) -> Vec<(String, Vec<u8>)> {
    let parts = key::parts(key.bytes()).into_iter();
    parts.map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.to_vec())).collect()
}
