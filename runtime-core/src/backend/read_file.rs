//! Reading a file of code.

use std::path::Path;

use crate::{Error, ErrorKind, Result};

/// Reads a regular file.
///
/// # Errors
/// `Io`, naming the path, if the file cannot be read or is not a regular file.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    // Reading a pipe would wait for a writer.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let message = format!("\"{}\" is not a regular file; pass the path of one", path.display());
        return Err(Error::new(ErrorKind::Io, message));
    }
    std::fs::read(path).map_err(|error| {
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
        for (path, reason) in [(folder.path(), "is not a regular file"), (&file.join("x"), "check the path")]
        {
            let error = read_file(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.message().contains(reason) && error.message().contains(path.to_str().unwrap()));
        }
    }
}
