//! Reads text files.

use std::io::{Error as IoError, Read, Result as IoResult};
use std::path::Path;

use runtime_core::backend::open_regular_file;
use runtime_core::{Error, ErrorKind, Result};

/// Far above the size of any specification or kernel. Without a limit, a file of the wrong kind would fill the memory.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a text file without its byte-order mark, if it has one.
///
/// # Errors
/// `Io` that names the file, if it is not a regular file of at most 64 MiB of UTF-8.
pub fn read(path: &Path) -> Result<String> {
    let text = read_bounded(path).map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot read {}: {error}", path.display())).with_source(error)
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn read_bounded(path: &Path) -> IoResult<String> {
    let mut bytes = Vec::new();
    open_regular_file(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(IoError::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| IoError::other("it is not UTF-8 text"))
}
