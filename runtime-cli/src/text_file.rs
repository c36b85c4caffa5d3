//! Text of files, which may also be pipes.

use std::fs::File;
use std::io::{Error as IoError, Read, Result as IoResult};
use std::path::Path;

use runtime_core::{Error, ErrorKind, Result};

/// More than a specification or a kernel ever has: a device or an endless pipe would fill the memory.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a text, without the byte-order mark that editors of some systems begin it with.
///
/// # Errors
/// `Io` that names the file.
pub(crate) fn read(path: &Path) -> Result<String> {
    let text = read_bounded(path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display())).with_source(error)
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn read_bounded(path: &Path) -> IoResult<String> {
    if path.is_dir() {
        return Err(IoError::other("it is a folder, not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(IoError::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| IoError::other("it is not text in UTF-8"))
}
