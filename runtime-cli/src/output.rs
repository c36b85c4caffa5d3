//! Standard output and report files, with defined behaviour for closed pipes and full disks.

#![allow(unsafe_code, reason = "checks whether standard output is open before Rust replaces it")]

use std::fs::File;
use std::io::{self, ErrorKind as IoKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use runtime_core::cache::AtomicFile;
use runtime_core::{Error, ErrorKind, Result};
use runtime_harness::describe::Program;
use runtime_harness::printable::printable_lines;
use serde_json::{Value, json};

/// Standard output was closed when the program was started.
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Checks standard output before `main`, where Rust opens `/dev/null` in place of a closed one.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK_STDOUT: extern "C" fn() = {
    extern "C" fn check() {
        // SAFETY: only reads the flags of the descriptor, if there is one.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        STDOUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
    }
    check
};

/// Writes text for people to standard output, without what a terminal would obey. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    print_exact(&printable_lines(text))
}

/// Writes what a program reads to standard output. A closed pipe is not an error.
pub(crate) fn print_exact(content: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    match write_stdout(content.as_ref()) {
        Err(error) if error.kind() != IoKind::BrokenPipe => Err(stdout_error(&error)),
        _ => Ok(()),
    }
}

fn write_stdout(text: &[u8]) -> io::Result<()> {
    if STDOUT_WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("it is closed; redirect it, e.g. with `>/dev/null`"));
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(text).and_then(|()| stdout.flush())
}

fn stdout_error(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write to standard output: {error}"))
}

/// A JSON document: its schema and version, this program, and `fields`.
pub(crate) fn document(schema: &str, version: u64, mut fields: Value) -> String {
    let mut document = json!({ "schema": schema, "version": version, "runtime": Program::current() });
    if let (Some(document), Some(fields)) = (document.as_object_mut(), fields.as_object_mut()) {
        document.append(fields);
    }
    format!("{document:#}\n")
}

/// Writes a line to standard error, without what a terminal would obey. A failure is ignored: there is nowhere left to report it.
pub(crate) fn print_stderr(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(text));
}

/// The destination of a report.
#[derive(Debug)]
pub(crate) enum Destination {
    /// Standard output, which then holds nothing else.
    Standard,
    /// A file, replaced atomically.
    File(AtomicFile, PathBuf),
    /// A pipe or a device, which must not be replaced by a file.
    Stream(File, PathBuf),
}

impl Destination {
    /// Opens `-` or a path right away, so that a wrong path fails before any work is done.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        match path == Path::new("-") {
            true if STDOUT_WAS_CLOSED.load(Ordering::Relaxed) => {
                Err(stdout_error(&io::Error::other("it is closed")))
            }
            true => Ok(Self::Standard),
            false => Self::open_path(path).map_err(|error| write_error(path, &error)),
        }
    }

    fn open_path(path: &Path) -> io::Result<Self> {
        let path = resolve_symlinks(path)?;
        match std::fs::metadata(&path) {
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                Ok(Self::Stream(File::options().write(true).open(&path)?, path))
            }
            _ => Ok(Self::File(AtomicFile::new(&path)?, path)),
        }
    }

    pub(crate) const fn is_standard(&self) -> bool {
        matches!(self, Self::Standard)
    }

    /// Whether it is an ordinary file.
    pub(crate) const fn is_file(&self) -> bool {
        matches!(self, Self::File(..))
    }

    /// Writes the whole report.
    pub(crate) fn write(mut self, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
        if let Self::Standard = self {
            return print_exact(text);
        }
        let written = self.append(&[], text.as_ref()).and_then(|()| self.sync());
        written.map_err(|error| self.write_error(&error))
    }

    /// Appends `text` to a stream, or replaces a file with `before` followed by `text`.
    pub(crate) fn append(&mut self, before: &[u8], text: &[u8]) -> io::Result<()> {
        match self {
            Self::Standard => write_stdout(text),
            Self::Stream(stream, _) => stream.write_all(text),
            Self::File(file, _) => file.replace(&[before, text]),
        }
    }

    /// Syncs a file to disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if let Self::File(file, _) = self { file.sync() } else { Ok(()) }
    }

    /// The error to report for a failed write.
    pub(crate) fn write_error(&self, error: &io::Error) -> Error {
        match self {
            Self::Standard => stdout_error(error),
            Self::File(_, path) | Self::Stream(_, path) => write_error(path, error),
        }
    }
}

/// Resolves symbolic links, so that the target of a link is replaced and not the link.
fn resolve_symlinks(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.symlink_metadata()) {
        (Ok(path), _) => Ok(path),
        // A link to a file that does not exist yet.
        (Err(error), Ok(metadata)) if metadata.is_symlink() && error.kind() == IoKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new(""));
            resolve_symlinks(&folder.join(path.read_link()?))
        }
        (Err(_), Err(error)) if error.kind() == IoKind::NotFound => Ok(path.to_owned()),
        (Err(error), _) => Err(error),
    }
}

/// The error of a file that cannot be written.
pub(crate) fn write_error(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display()))
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
    fn a_file_is_replaced_only_when_it_is_complete() {
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
    fn links_stay_and_devices_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("report.json"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Destination::open(&link).unwrap().write("new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        let (missing, dangling) = (folder.path().join("missing"), folder.path().join("dangling"));
        std::os::unix::fs::symlink("missing", &dangling).unwrap();
        Destination::open(&dangling).unwrap().write("new").unwrap();
        assert!(dangling.is_symlink() && missing.is_file());
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(Destination::open(&circle).is_err() && circle.is_symlink());
        assert!(Destination::open(&folder.path().join("x".repeat(300))).is_err());
        assert!(matches!(Destination::open(Path::new("/dev/null")).unwrap(), Destination::Stream(..)));
    }
}
