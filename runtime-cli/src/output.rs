//! Standard output and files, written so that a closed pipe or a full disk is no surprise.

use std::fs::File;
use std::io::{ErrorKind as IoKind, Write};
use std::path::{Path, PathBuf};

use runtime_core::{Error, ErrorKind, Result};
use tempfile::NamedTempFile;

/// Writes to standard output. A reader that has gone away is not an error.
pub(crate) fn print(text: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
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
    /// A pipe or a device, which must not be replaced by a file.
    Stream(File, PathBuf),
}

impl Destination {
    /// Opens `-` or a path at once, so that a wrong path fails before the work is done.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        match path == Path::new("-") {
            true => Ok(Self::Standard),
            false => Self::open_path(path).map_err(|error| cannot_write(path, &error)),
        }
    }

    fn open_path(path: &Path) -> std::io::Result<Self> {
        // Through a symbolic link the file behind it is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => return Err(IoKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                return Ok(Self::Stream(File::options().write(true).open(&path)?, path));
            }
            _ => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self::File(open_beside(folder)?, path))
    }

    pub(crate) const fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }

    /// Whether it is an ordinary file.
    pub(crate) const fn is_file(&self) -> bool {
        matches!(self, Self::File(..))
    }

    /// Writes the whole report.
    pub(crate) fn write(self, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
        match self {
            Self::Standard => print(text),
            Self::Stream(mut stream, path) => {
                stream.write_all(text.as_ref()).map_err(|error| cannot_write(&path, &error))
            }
            Self::File(mut file, path) => file
                .write_all(text.as_ref())
                .and_then(|()| file.persist(&path).map_err(|error| error.error))
                .map(drop)
                .map_err(|error| cannot_write(&path, &error)),
        }
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
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

    #[test]
    #[cfg(unix)]
    fn links_stay_and_devices_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("report.json"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Destination::open(&link).unwrap().write("new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert!(matches!(Destination::open(Path::new("/dev/null")).unwrap(), Destination::Stream(..)));
    }
}
