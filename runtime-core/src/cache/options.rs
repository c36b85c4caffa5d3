//! How a code cache is set up.

#![allow(unsafe_code, reason = "the caller is responsible for whoever provides code")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::shared::SharedStore;
use crate::{Error, Result};

/// What a [`CodeCache`](crate::cache::CodeCache) may do.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheAccess {
    /// Nothing: code is compiled on every load.
    Off,
    /// Use entries, and change nothing.
    ReadOnly,
    /// Use entries, and store code that was compiled.
    #[default]
    ReadWrite,
}

/// How a [`CodeCache`](crate::cache::CodeCache) is set up.
///
/// Code that a cache returns is executed. Naming where it comes from is therefore `unsafe`; everything else is safe, and so is the
/// default folder, which is this user's.
///
/// ```
/// use runtime_core::cache::{CacheOptions, CodeCache};
/// let folder = "/var/cache/program";
/// // SAFETY: only this program writes to the folder.
/// let mut options = unsafe { CacheOptions::default().with_folder(folder) };
/// options.max_entries = 1000;
/// let cache = CodeCache::with_options(options);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Default: read and write.
    pub access: CacheAccess,
    /// The folder; `None` for `runtime/code` in the user's cache folder.
    pub(super) folder: Option<PathBuf>,
    /// The most that all entries may have in bytes. When it is exceeded, the least recently used ones are removed until
    /// 90% remain. Default: 4 GiB.
    pub max_bytes: u64,
    /// The most entries. Default: 100,000.
    pub max_entries: u64,
    /// Compile always, and replace the entries. Default: false.
    pub recompile: bool,
    /// A second store, which is asked before code is compiled.
    pub(super) shared: Option<Arc<dyn SharedStore>>,
    /// A folder with code that replaces that of entries.
    pub(super) override_folder: Option<PathBuf>,
    /// Where to write code that is loaded. Default: nowhere.
    pub dump: Option<DumpOptions>,
    /// How long to wait for another process or thread that compiles the same code. Default: 60 s.
    pub lock_timeout: Duration,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            access: CacheAccess::default(),
            folder: None,
            max_bytes: 4 << 30,
            max_entries: 100_000,
            recompile: false,
            shared: None,
            override_folder: None,
            dump: None,
            lock_timeout: Duration::from_secs(60),
        }
    }
}

impl CacheOptions {
    /// Keeps the entries in `folder`. Default: `runtime/code` in the user's cache folder.
    ///
    /// # Safety
    /// As for [`ModuleSource::native`](crate::ModuleSource::native), for the code of each entry that anything but the cache writes to
    /// the folder.
    #[must_use]
    pub unsafe fn with_folder(self, folder: impl AsRef<Path>) -> Self {
        Self { folder: Some(folder.as_ref().to_owned()), ..self }
    }

    /// Asks a second store before code is compiled. Default: none.
    ///
    /// # Safety
    /// Whatever can be written to the store otherwise than through caches of trusted programs must fulfil what
    /// [`ModuleSource::native`](crate::ModuleSource::native) demands.
    #[must_use]
    pub unsafe fn with_shared(self, shared: Arc<dyn SharedStore>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Replaces the code of entries by that of the files `<name>`, or `<name>.<extension of the format>`, in `folder`. Default: none.
    ///
    /// # Safety
    /// As for [`ModuleSource::native`](crate::ModuleSource::native), for each file, launched with what the kernels of its entry take.
    #[must_use]
    pub unsafe fn with_override_folder(self, folder: impl AsRef<Path>) -> Self {
        Self { override_folder: Some(folder.as_ref().to_owned()), ..self }
    }
}

/// A stage of code on its way to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpStage {
    /// Portable code, lowered for a device.
    Lowered,
    /// Native code, disassembled.
    Asm,
    /// Native code.
    Binary,
}

impl DumpStage {
    pub(super) const ALL: [(&'static str, Self); 3] =
        [("lowered", Self::Lowered), ("asm", Self::Asm), ("binary", Self::Binary)];
}

/// Which code is written where, for a look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// The stages to write.
    pub stages: Vec<DumpStage>,
    /// The folder, which is created if it does not exist.
    pub folder: PathBuf,
}

/// Parses a number of bytes: digits, and an optional unit (`B`, `KiB`, `MiB`, `GiB` or `TiB`).
///
/// # Errors
/// `InvalidArgument`, with the valid forms.
///
/// ```
/// assert_eq!(runtime_core::cache::parse_byte_count("4GiB")?, 4 << 30);
/// assert_eq!(runtime_core::cache::parse_byte_count("1000")?, 1000);
/// assert!(runtime_core::cache::parse_byte_count("4GB").is_err());
/// # Ok::<(), runtime_core::Error>(())
/// ```
pub fn parse_byte_count(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim() {
        "" | "B" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        "TiB" => Some(40),
        _ => None,
    };
    let bytes =
        shift.zip(digits.parse::<u64>().ok()).and_then(|(shift, count)| count.checked_mul(1 << shift));
    bytes.ok_or_else(|| {
        Error::invalid(format!("\"{text}\" is not a number of bytes; write e.g. 500000, 512MiB or 4GiB"))
    })
}
