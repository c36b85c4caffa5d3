//! Reads the manifest section of a Mach-O library, without loading it.

use std::fs::File;
use std::path::Path;

use object::{Object, ObjectKind, ObjectSection, ReadCache};

use crate::{Error, ErrorKind, Result};

/// Name of the section in segment `__DATA`; Mach-O limits it to 16 characters.
const SECTION: &str = "__rt_manifest";

/// Reads the manifest section of a shared library.
///
/// # Errors
/// `Io` if the file cannot be read; `AbiMismatch` if it is not a shared library, is truncated, or lacks the
/// section.
pub(crate) fn manifest_section(path: &Path) -> Result<Vec<u8>> {
    let mismatch = |message: String| Error::new(ErrorKind::AbiMismatch, message);
    let data = ReadCache::new(File::open(path)?);
    let broken = |error: object::Error| mismatch(format!("not a Mach-O file, or a damaged one ({error})"));
    let file = object::File::parse(&data).map_err(broken)?;
    if file.kind() != ObjectKind::Dynamic {
        return Err(mismatch("not a shared library".to_owned()));
    }
    let section = file.section_by_name(SECTION);
    let section = section
        .ok_or_else(|| mismatch(format!("not a backend of this project: it has no section {SECTION}")))?;
    section.data().map(<[u8]>::to_vec).map_err(broken)
}

/// Does nothing: the system's loader checks a file before it maps it.
///
/// # Errors
/// None.
pub(crate) fn check_library_file(_: &Path) -> Result<()> {
    Ok(())
}

/// Does nothing, like [`check_library_file`].
///
/// # Errors
/// None.
pub(crate) fn check_library(_: &[u8]) -> Result<()> {
    Ok(())
}
