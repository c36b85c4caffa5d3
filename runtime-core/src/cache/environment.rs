//! The environment variables of the code cache.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::options::{CacheAccess, CacheOptions, DumpOptions, DumpStage, parse_byte_count};
use super::shared::{SharedFolder, SharedStore};
use crate::platform;

/// Options, and what is wrong with the variables that set them.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) options: CacheOptions,
    pub(super) warnings: Vec<String>,
}

impl Settings {
    /// The options of this process. A privileged program uses no cache, and ignores all variables.
    pub(super) fn from_environment() -> Self {
        if platform::is_privileged() {
            let options = CacheOptions { access: CacheAccess::Off, ..CacheOptions::default() };
            return Self { options, warnings: Vec::new() };
        }
        Self::read(&|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// Reads the variables. One that is invalid is ignored with a warning; `RUNTIME_CACHE` then turns the cache off.
    pub(super) fn read(variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let mut settings = Self::default();
        if let Some(value) = variable("RUNTIME_CACHE") {
            settings.set_cache(&value);
        }
        for name in ["RUNTIME_CACHE_MAX_BYTES", "RUNTIME_CACHE_MAX_ENTRIES"] {
            if let Some(value) = variable(name) {
                settings.set_limit(name, &value.to_string_lossy());
            }
        }
        if let Some(value) = variable("RUNTIME_CACHE_RECOMPILE") {
            match value.to_str() {
                Some("1") => settings.options.recompile = true,
                Some("0") => {}
                _ => settings.warn("RUNTIME_CACHE_RECOMPILE", &value, "set it to 1, or unset it"),
            }
        }
        if let Some(value) = variable("RUNTIME_CACHE_SHARED") {
            settings.set_shared(&value);
        }
        if let Some(value) = variable("RUNTIME_CACHE_OVERRIDE") {
            match absolute(&value) {
                Some(folder) => settings.options.override_folder = Some(folder),
                None => {
                    settings.warn(
                        "RUNTIME_CACHE_OVERRIDE",
                        &value,
                        "set it to the absolute path of a folder",
                    );
                }
            }
        }
        if let Some(value) = variable("RUNTIME_DUMP") {
            settings.set_dump(&value);
        }
        settings
    }

    fn set_cache(&mut self, value: &OsString) {
        match (value.to_str(), absolute(value)) {
            (Some("off"), _) => self.options.access = CacheAccess::Off,
            (Some("read-only"), _) => self.options.access = CacheAccess::ReadOnly,
            (_, Some(folder)) => self.options.folder = Some(folder),
            _ => {
                self.options.access = CacheAccess::Off;
                let remedy =
                    "set it to off, to read-only, or to the absolute path of a folder; nothing is cached";
                self.warn("RUNTIME_CACHE", value, remedy);
            }
        }
    }

    fn set_limit(&mut self, name: &str, value: &str) {
        match (name, parse_byte_count(value), value.parse()) {
            ("RUNTIME_CACHE_MAX_BYTES", Ok(bytes), _) => self.options.max_bytes = bytes,
            ("RUNTIME_CACHE_MAX_ENTRIES", _, Ok(entries)) => self.options.max_entries = entries,
            ("RUNTIME_CACHE_MAX_BYTES", Err(error), _) => {
                self.warnings.push(format!("{name}: {}", error.message()));
            }
            _ => self.warnings.push(format!("{name}: \"{value}\" is not a number of entries")),
        }
    }

    fn set_shared(&mut self, value: &OsString) {
        let name = "RUNTIME_CACHE_SHARED";
        match (value.to_str().filter(|text| text.starts_with("http://")), absolute(value)) {
            (Some(address), _) => match http_store(address, self.options.max_bytes) {
                Some(store) => self.options.shared = Some(store),
                None => self.warn(name, value, "this program was built without the feature `http-cache`"),
            },
            (_, Some(folder)) => {
                self.options.shared = Some(Arc::new(SharedFolder::new(&folder, self.options.max_bytes)));
            }
            _ => self.warn(
                name,
                value,
                "set it to the absolute path of a folder, or to an address with http://",
            ),
        }
    }

    fn set_dump(&mut self, value: &OsString) {
        match value.to_str().and_then(dump_options) {
            Some(dump) => self.options.dump = Some(dump),
            None => {
                let remedy = "set it to stages (lowered, asm, binary) and the absolute path of a folder, as in \
                              \"lowered,binary /tmp/dump\"";
                self.warn("RUNTIME_DUMP", value, remedy);
            }
        }
    }

    fn warn(&mut self, name: &str, value: &OsString, remedy: &str) {
        self.warnings.push(format!("{name} is \"{}\": {remedy}", value.to_string_lossy()));
    }
}

fn absolute(value: &OsString) -> Option<PathBuf> {
    Some(PathBuf::from(value)).filter(|path| path.is_absolute())
}

/// Parses `STAGE,… FOLDER`.
fn dump_options(text: &str) -> Option<DumpOptions> {
    let (stages, folder) = text.split_once(' ')?;
    let stage = |word: &str| DumpStage::ALL.iter().find(|(name, _)| *name == word).map(|(_, stage)| *stage);
    let stages = stages.split(',').map(stage).collect::<Option<Vec<_>>>()?;
    let folder = Path::new(folder.trim());
    folder.is_absolute().then(|| DumpOptions { stages, folder: folder.to_owned() })
}

#[cfg(feature = "http-cache")]
#[expect(clippy::unnecessary_wraps, reason = "there is none without the feature")]
fn http_store(address: &str, max_bytes: u64) -> Option<Arc<dyn SharedStore>> {
    Some(Arc::new(super::http::HttpStore::new(address, max_bytes)))
}

#[cfg(not(feature = "http-cache"))]
fn http_store(_address: &str, _max_bytes: u64) -> Option<Arc<dyn SharedStore>> {
    None
}
