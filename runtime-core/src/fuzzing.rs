//! Internal functions for the fuzz targets; compiled only for them.

use std::path::Path;

use crate::Result;
use crate::cache;
use crate::plugin::manifest;

/// Reads the manifest of a library without loading the library.
///
/// # Errors
/// As the loader, for a file that is no backend for this process.
pub fn manifest(path: &Path) -> Result<()> {
    manifest::read(path).map(drop)
}

/// Reads an entry of the code cache, and metadata without the hash in front of it. What is accepted must be
/// encoded in the same way.
///
/// # Panics
/// If it is not.
pub fn cache_entry(bytes: &[u8]) {
    cache::fuzz(bytes);
}
