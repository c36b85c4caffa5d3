//! Standard output and files, written so that a closed pipe or a full disk is no surprise.

use std::io::{ErrorKind as IoKind, Write};
use std::path::{Path, PathBuf};

use runtime_core::{Error, ErrorKind, Result};
use tempfile::NamedTempFile;

/// Writes to standard output. A reader that has gone away is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != IoKind::BrokenPipe => {
            Err(Error::new(ErrorKind::Io, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error; there is nobody left to tell when that fails.
pub(crate) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Where a report goes.
#[derive(Debug)]
pub(crate) enum Destination {
    /// Standard output, which then holds nothing else.
    Standard,
    /// A file: made now beside its final name, put in place when it is complete.
    File(NamedTempFile, PathBuf),
}

impl Destination {
    /// Opens `-` or a path at once, so that a wrong path fails before the work is done.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        let fail = |error: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
        };
        if path.is_dir() {
            return Err(fail(IoKind::IsADirectory.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self::File(open_beside(folder).map_err(fail)?, path.to_owned()))
    }

    pub(crate) const fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }

    /// Writes the whole report.
    pub(crate) fn write(self, text: &str) -> Result<()> {
        match self {
            Self::Standard => print(text),
            Self::File(mut file, path) => file
                .write_all(text.as_bytes())
                .and_then(|()| file.persist(&path).map_err(|error| error.error))
                .map(|_| ())
                .map_err(|error| {
                    Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
                }),
        }
    }
}

#[cfg(unix)]
fn open_beside(folder: &Path) -> std::io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // As for any file that a program makes: the user's mask decides, not the secrecy of temporary files.
    let permissions = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".runtime-").permissions(permissions).tempfile_in(folder)
}

#[cfg(not(unix))]
fn open_beside(folder: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".runtime-").tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_fails_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Destination::open(&folder.path().join("missing/report.json")).is_err());
        assert!(Destination::open(folder.path()).is_err());
    }

    #[test]
    fn a_file_appears_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        std::fs::write(&path, "old").unwrap();
        let destination = Destination::open(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        destination.write("new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        drop(Destination::open(&path).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    }
}
