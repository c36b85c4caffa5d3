//! The JSON of `runtime cache list --json`.

use runtime_core::{CacheEntryInfo, CodeCache};
use runtime_harness::describe::Program;
use serde_json::{Value, json};

/// Longer parts of a key, such as source code, are given by their length alone.
const MAX_TEXT_BYTES: usize = 256;

pub(super) fn list(cache: &CodeCache, entries: &[CacheEntryInfo]) -> String {
    let document = json!({
        "schema": "runtime.cache",
        "version": 1,
        "runtime": Program::current(),
        "path": cache.path().map(|path| path.to_string_lossy()),
        "entries": entries.iter().map(entry).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn entry(entry: &CacheEntryInfo) -> Value {
    let key = entry.key.iter().map(|(name, value)| {
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= MAX_TEXT_BYTES);
        json!({ "name": name, "bytes": value.len(), "text": text })
    });
    json!({
        "name": entry.name,
        "bytes": entry.bytes,
        "last_used": humantime::format_rfc3339_seconds(entry.last_used).to_string(),
        "format": entry.format,
        "kernels": entry.kernels,
        "key": key.collect::<Vec<_>>(),
    })
}
