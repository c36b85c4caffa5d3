//! One opened cache: the override folder and the dump above, the store on disk, the shared store, the compiler.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::code::{CacheOutcome, CachedCode};
use super::dump::{self, Dump};
use super::entry;
use super::environment::Settings;
use super::eviction::Limits;
use super::in_flight::{InFlight, Obtained, Turn};
use super::key::Key;
use super::options::{CacheAccess, CacheOptions, DumpStage};
use super::shared::SharedStore;
use super::store::{Lookup, Store};
use super::warnings::Warnings;
use crate::{Error, ErrorKind, Result, platform, process};

/// An opened cache.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) access: CacheAccess,
    /// Where the store is or would be.
    pub(super) folder: Option<PathBuf>,
    /// The store, or why there is none.
    pub(super) store: Result<Store>,
    pub(super) limits: Limits,
    shared: Option<Arc<dyn SharedStore>>,
    /// The shared store has failed, and is not used any more.
    shared_failed: AtomicBool,
    recompile: bool,
    override_folder: Option<PathBuf>,
    dump: Option<Dump>,
    lock_timeout: Duration,
    in_flight: Arc<InFlight>,
    warnings: Warnings,
}

impl Layers {
    /// Opens the store.
    pub(super) fn open(settings: Settings) -> Self {
        process::install();
        let Settings { options, warnings: problems } = settings;
        let warnings = Warnings::default();
        for problem in problems {
            warnings.report(&problem, format_args!("{problem}"));
        }
        let limits = Limits { bytes: options.max_bytes, entries: options.max_entries };
        let folder = options.folder.clone().or_else(default_folder);
        let store = open_store(&options, folder.as_deref(), limits);
        let in_flight = store.as_ref().map(|store| store.locks().in_flight().clone()).unwrap_or_default();
        Self {
            access: options.access,
            folder,
            store,
            limits,
            shared: options.shared.filter(|_| options.access != CacheAccess::Off),
            shared_failed: AtomicBool::new(false),
            recompile: options.recompile,
            override_folder: options.override_folder,
            dump: options.dump.map(Dump::new),
            lock_timeout: options.lock_timeout,
            in_flight,
            warnings,
        }
    }

    /// The code of `key`, from the first layer that has it.
    pub(super) fn get(&self, key: &Key, compile: impl FnOnce() -> Result<CachedCode>) -> Obtained {
        let (code, outcome) = match self.stored(key) {
            Some(code) => (Arc::new(code), CacheOutcome::Hit),
            None if self.access == CacheAccess::Off => (Arc::new(compile()?), CacheOutcome::Uncached),
            None => self.obtain_once(key, compile)?,
        };
        if matches!(outcome, CacheOutcome::Miss | CacheOutcome::Uncached) {
            self.share(key, &code);
        }
        if let Some(dump) = &self.dump {
            self.warn_of(
                "dump",
                "cannot write to the folder of RUNTIME_DUMP",
                dump.write_native(&key.name(), &code),
            );
        }
        Ok(self.overridden(key, &code).unwrap_or((code, outcome)))
    }

    /// Obtains code that is not in the store, or waits for the thread that does.
    fn obtain_once(&self, key: &Key, compile: impl FnOnce() -> Result<CachedCode>) -> Obtained {
        self.warn_without_store();
        let deadline = Instant::now() + self.lock_timeout;
        match self.in_flight.join(key, deadline) {
            Turn::First(publisher) => {
                let result = self.obtain(key, deadline, compile);
                publisher.publish(&result);
                result
            }
            Turn::Done(result) => result,
            Turn::TimedOut => self.obtain(key, deadline, compile),
        }
    }

    /// Reports why there is no store. A folder that is missing and would only be read is an empty cache.
    fn warn_without_store(&self) {
        let is_missing = || self.folder.as_deref().is_some_and(|folder| !folder.exists());
        match &self.store {
            Err(error) if self.access == CacheAccess::ReadWrite || !is_missing() => {
                self.warnings.report("open", format_args!("code is not cached: {}", error.message()));
            }
            _ => {}
        }
    }

    /// Asks the shared store, then compiles. Other processes wait meanwhile.
    fn obtain(&self, key: &Key, deadline: Instant, compile: impl FnOnce() -> Result<CachedCode>) -> Obtained {
        let _lock = self.store.as_ref().ok().and_then(|store| store.lock(key, deadline));
        // Another thread or process may have stored it meanwhile.
        if let Some(code) = self.stored(key) {
            return Ok((Arc::new(code), CacheOutcome::Hit));
        }
        if let Some(code) = self.shared_entry(key) {
            self.store(key, &code);
            return Ok((Arc::new(code), CacheOutcome::SharedHit));
        }
        let code = compile()?;
        let outcome = if self.store(key, &code) { CacheOutcome::Miss } else { CacheOutcome::Uncached };
        Ok((Arc::new(code), outcome))
    }

    /// The entry of the store. A damaged one is removed.
    fn stored(&self, key: &Key) -> Option<CachedCode> {
        let store = self.store.as_ref().ok().filter(|_| !self.recompile)?;
        match store.read(key) {
            Lookup::Found(code) => Some(code),
            Lookup::Missing => None,
            Lookup::Damaged(entry::Damage::Unreadable(error))
                if error.kind() != io::ErrorKind::InvalidData =>
            {
                self.warnings.report("read", format_args!("cannot read the code cache: {error}"));
                None
            }
            Lookup::Damaged(damage) => {
                tracing::debug!(target: "runtime::cache", "entry {} is damaged: {damage}", key.name());
                if store.is_writable() {
                    self.warn_of("remove", "cannot remove an entry", store.remove_damaged(&key.name()));
                }
                None
            }
        }
    }

    /// Stores an entry; false if it is not stored.
    fn store(&self, key: &Key, code: &CachedCode) -> bool {
        let Some(store) = self.store.as_ref().ok().filter(|store| store.is_writable()) else { return false };
        store.write(key, code).unwrap_or_else(|error| {
            let cause = format!("write: {:?}", error.kind());
            let folder = store.folder().display();
            self.warnings
                .report(&cause, format_args!("cannot store code in {folder}: {error}; it is not cached"));
            false
        })
    }

    /// Removes an entry that cannot be used.
    pub(super) fn remove(&self, key: &Key) {
        if let Some(store) = self.store.as_ref().ok().filter(|store| store.is_writable()) {
            self.warn_of("remove", "cannot remove an entry", store.remove(&key.name()));
        }
    }

    /// The shared store, unless it has failed.
    fn shared(&self) -> Option<&dyn SharedStore> {
        self.shared.as_deref().filter(|_| !self.shared_failed.load(Ordering::Relaxed))
    }

    fn shared_entry(&self, key: &Key) -> Option<CachedCode> {
        let shared = self.shared().filter(|_| !self.recompile)?;
        let bytes = shared.get(&key.name()).unwrap_or_else(|error| {
            self.give_up_shared(shared, &error);
            None
        })?;
        let read = entry::read(&mut bytes.as_slice(), bytes.len() as u64, key);
        read.map_err(|damage| {
            let (name, location) = (key.name(), shared.location());
            self.warnings
                .report("shared entry", format_args!("{location}: entry {name} is not used: {damage}"));
        })
        .ok()
    }

    /// Offers an entry to the shared store.
    fn share(&self, key: &Key, code: &CachedCode) {
        let Some(shared) = self.shared().filter(|_| self.access == CacheAccess::ReadWrite) else { return };
        let mut bytes = entry::encode_head(key, code);
        bytes.extend(&code.code);
        if let Err(error) = shared.put(&key.name(), &bytes) {
            self.give_up_shared(shared, &error);
        }
    }

    fn give_up_shared(&self, shared: &dyn SharedStore, error: &Error) {
        self.shared_failed.store(true, Ordering::Relaxed);
        let (location, error) = (shared.location(), error.message());
        self.warnings.report("shared", format_args!("the shared code cache {location} is not used: {error}"));
    }

    /// The code of the override folder. What the compiler said of the entry's own code does not apply to it.
    fn overridden(&self, key: &Key, code: &CachedCode) -> Option<(Arc<CachedCode>, CacheOutcome)> {
        let folder = self.override_folder.as_deref()?;
        let read = dump::read_override(folder, &key.name(), &code.format);
        let bytes = self.warn_of("override", "RUNTIME_CACHE_OVERRIDE is not used", read)??;
        let own = CachedCode {
            format: code.format.clone(),
            code: bytes,
            log: String::new(),
            options: code.options.clone(),
            lowered: code.lowered.clone(),
            resources: Vec::new(),
        };
        Some((Arc::new(own), CacheOutcome::Override))
    }

    /// Whether code of a stage is to be written.
    pub(super) fn dumps(&self, stage: DumpStage) -> bool {
        self.dump.as_ref().is_some_and(|dump| dump.wants(stage))
    }

    /// Whether code neither comes from anywhere but the compiler, nor goes anywhere.
    pub(super) fn is_off(&self) -> bool {
        self.access == CacheAccess::Off && self.dump.is_none() && self.override_folder.is_none()
    }

    /// Writes code of a stage, if the user asked for it.
    pub(super) fn dump(&self, key: &Key, stage: DumpStage, extension: &str, bytes: &[u8]) {
        if let Some(dump) = &self.dump {
            let written = dump.write(&key.name(), stage, extension, bytes);
            self.warn_of("dump", "cannot write to the folder of RUNTIME_DUMP", written);
        }
    }

    /// Writes the text of lowered code, if the user asked for the latter.
    pub(super) fn dump_source(&self, file: &str, text: &[u8]) {
        if let Some(dump) = &self.dump {
            let written = dump.write_source(file, text);
            self.warn_of("dump", "cannot write to the folder of RUNTIME_DUMP", written);
        }
    }

    fn warn_of<T, E: Display>(&self, cause: &str, what: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.warnings.report(cause, format_args!("{what}: {error}"))).ok()
    }
}

/// `runtime/code` in the user's cache folder.
pub(super) fn default_folder() -> Option<PathBuf> {
    platform::user_caches().map(|caches| caches.join("runtime").join("code"))
}

fn open_store(options: &CacheOptions, folder: Option<&Path>, limits: Limits) -> Result<Store> {
    let unavailable = |message: &str| Err(Error::new(ErrorKind::Unavailable, message));
    match (options.access, folder) {
        (CacheAccess::Off, _) => unavailable("the code cache is off"),
        (_, None) => unavailable("there is no cache folder; set HOME, or RUNTIME_CACHE to an absolute path"),
        (access, Some(folder)) => Store::open(folder, access == CacheAccess::ReadWrite, limits),
    }
}
