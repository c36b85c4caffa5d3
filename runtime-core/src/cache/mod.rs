//! The code cache: native code on disk, so that it is compiled once.
//!
//! An entry is a file that is written completely before it gets its name, and is checked whenever it is read. Locks
//! only spare work: without them, code is compiled twice, and the last result stays. `docs/cache.md` describes the
//! format of the files, whom the cache trusts, and its layers.

mod code;
mod dump;
mod encoding;
mod entry;
mod environment;
mod eviction;
#[cfg(feature = "http-cache")]
mod http;
mod in_flight;
mod key;
mod layers;
mod lock;
mod maintenance;
mod notes;
mod numbers_file;
mod options;
mod shared;
mod store;
mod totals;
mod usage;
mod warnings;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::model::code_load::CodeLoad;
use crate::{Result, process};
use environment::Settings;
use layers::Layers;
use totals::ProcessTotals;

pub use crate::atomic_file::AtomicFile;
pub(crate) use code::{CacheOutcome, CachedCode};
pub(crate) use encoding::{Relied, decode_plan, encode_plan};
pub(crate) use key::Key;
pub(crate) use key::KeyBuilder;
pub use maintenance::{CacheEntryInfo, CacheUsage, DamagedEntry, PruneOptions, VerifyReport};
pub use notes::Notes;
pub use options::{CacheAccess, CacheOptions, DumpOptions, DumpStage, parse_byte_count};
pub use shared::SharedStore;
pub use totals::{LoadTotals, StageTotals};

/// A cache of native code. Clones share it.
///
/// It never fails a load: what cannot be read is compiled, and what cannot be stored is only used. Each such cause
/// is logged once, as a warning with the target `runtime::cache`.
///
/// A process that was forked after the cache was made compiles everything.
///
/// ```
/// # use runtime_core::{ModuleSource, Options, Runtime};
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// # let source = unsafe { ModuleSource::native("null", "add_f32") };
/// use runtime_core::cache::{CacheOptions, CodeCache};
///
/// // SAFETY: only this program writes to the folder.
/// let cache = CodeCache::with_options(unsafe { CacheOptions::default().with_folder(folder) });
/// let runtime = Runtime::builder().code_cache(cache.clone()).register(runtime_null::backend());
/// # let runtime = runtime.discover(false);
/// # let options = Options::new().with("compiler", true);
/// let device = runtime.build().open_with("null", &options)?;
/// device.kernel(&source, "add_f32")?; // compiled, and kept
/// assert_eq!(cache.list()?[0].kernels, ["add_f32"]);
/// assert_eq!(cache.clear()?.entries, 1);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CodeCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Source,
    layers: OnceLock<Layers>,
    totals: ProcessTotals,
    /// The process that made it.
    generation: u32,
}

#[derive(Debug)]
enum Source {
    Environment,
    Options(CacheOptions),
}

impl CodeCache {
    /// The cache that the environment describes: `RUNTIME_CACHE` and the other variables of `docs/environment.md`.
    /// Neither the environment nor the disk is touched before the first use.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::new(Source::Environment)
    }

    /// A cache that ignores the environment, except for the default of the folder.
    #[must_use]
    pub fn with_options(options: CacheOptions) -> Self {
        Self::new(Source::Options(options))
    }

    /// No cache.
    #[must_use]
    pub fn off() -> Self {
        Self::with_options(CacheOptions { access: CacheAccess::Off, ..CacheOptions::default() })
    }

    fn new(source: Source) -> Self {
        Self(Arc::new(Inner {
            source,
            layers: OnceLock::new(),
            totals: ProcessTotals::default(),
            generation: process::generation(),
        }))
    }

    fn layers(&self) -> &Layers {
        self.0.layers.get_or_init(|| {
            Layers::open(match &self.0.source {
                Source::Environment => Settings::from_environment(),
                Source::Options(options) => Settings { options: options.clone(), warnings: Vec::new() },
            })
        })
    }

    /// The code of `key`: an entry, or the result of `compile`, which is then stored. However many threads and
    /// processes want it at once, one compiles it, and the others wait, up to a deadline.
    ///
    /// # Errors
    /// Those of `compile`. Threads that wait for it get the same error.
    pub(crate) fn get(
        &self,
        key: &Key,
        compile: impl FnOnce() -> Result<CachedCode>,
    ) -> Result<(Arc<CachedCode>, CacheOutcome)> {
        if self.is_inherited() {
            return Ok((Arc::new(compile()?), CacheOutcome::Uncached));
        }
        self.layers().get(key, compile)
    }

    /// The notes in its folder.
    pub(crate) fn notes(&self) -> Notes {
        match &self.0.source {
            _ if self.is_inherited() => Notes::default(),
            Source::Environment => Notes::from_environment(),
            Source::Options(options) => Notes::with_options(options),
        }
    }

    /// Removes an entry that the driver refused.
    pub(crate) fn remove(&self, key: &Key) {
        if !self.is_inherited() {
            self.layers().remove(key);
        }
    }

    /// Writes the code of a stage to the folder of `RUNTIME_DUMP`, if it lists the stage.
    pub(crate) fn dump(&self, key: &Key, stage: DumpStage, extension: &str, bytes: &[u8]) {
        if !self.is_inherited() {
            self.layers().dump(key, stage, extension, bytes);
        }
    }

    /// Writes the text of lowered code to the folder of `RUNTIME_DUMP`, if that gets lowered code.
    pub(crate) fn dump_source(&self, file: &str, text: &[u8]) {
        if !self.is_inherited() {
            self.layers().dump_source(file, text);
        }
    }

    /// Counts a load.
    pub(crate) fn count(&self, load: &CodeLoad) {
        self.0.totals.add(load);
    }

    /// Whether code of a stage is to be written.
    pub(crate) fn dumps(&self, stage: DumpStage) -> bool {
        !self.is_inherited() && self.layers().dumps(stage)
    }

    /// Whether it does nothing, so that code needs no key.
    pub(crate) fn is_off(&self) -> bool {
        self.is_inherited() || self.layers().is_off()
    }

    /// Whether this is a forked child of the process that made it. Its locks may be held by threads that do not exist
    /// here.
    fn is_inherited(&self) -> bool {
        self.0.generation != process::generation()
    }

    /// The folder of the entries, which may not exist; `None` if there is none.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.layers().folder.as_deref()
    }
}

/// Reads an entry, and metadata without the hash in front of it.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    let _ = entry::read_any(&mut &*bytes, bytes.len() as u64);
    let _ = entry::read_description(&mut &*bytes, bytes.len() as u64);
    if let Some(code) = encoding::decode(bytes, Vec::new()) {
        assert_eq!(encoding::encode(&code), bytes, "what is accepted is encoded in the same way");
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(layers) = self.layers.get()
            && self.generation == process::generation()
        {
            self.totals.flush(layers);
        }
    }
}
