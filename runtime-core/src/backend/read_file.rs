//! Reading a file of code.

use std::path::Path;

use crate::platform::read_regular_file;
use crate::{Error, ErrorKind, Result};

/// Reads a regular file.
///
/// # Errors
/// `Io`, naming the path, if the file cannot be read or is not a regular file.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    read_regular_file(path).map_err(|error| {
        let message = format!("\"{}\": {error}; check the path", path.display());
        Error::new(ErrorKind::Io, message).with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("code");
        std::fs::write(&file, b"text").unwrap();
        assert_eq!(read_file(&file).unwrap(), b"text");
        for (path, reason) in [(folder.path(), "not a regular file"), (&file.join("x"), "check the path")] {
            let error = read_file(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.message().contains(reason) && error.message().contains(path.to_str().unwrap()));
        }
    }
}
