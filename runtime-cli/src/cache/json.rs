//! The JSON of `runtime cache list --json`.

use runtime_core::cache::{CacheEntryInfo, CodeCache};
use serde_json::{Value, json};

use crate::output;

/// Longer parts of a key, such as source code, are given by their length alone.
const MAX_TEXT_BYTES: usize = 256;

pub(super) fn list(cache: &CodeCache, entries: &[CacheEntryInfo]) -> String {
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    let path = cache.path().map(|path| path.to_string_lossy());
    output::document("runtime.cache", 1, json!({ "path": path, "entries": entries }))
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
