//! Internal functions for the fuzz targets; compiled only for them.

use std::path::Path;

use crate::Result;
use crate::plugin::manifest;

/// Reads the manifest of a library without loading the library.
///
/// # Errors
/// As the loader, for a file that is no backend for this process.
pub fn manifest(path: &Path) -> Result<()> {
    manifest::read(path).map(drop)
}
