//! The socket of a server: a file that only its user may use.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use runtime_core::{Error, ErrorKind, Result};

use crate::platform;

/// A socket that clients connect to. Its file is removed on drop.
#[derive(Debug)]
pub struct SocketListener {
    listener: UnixListener,
    file: SocketFile,
}

/// The file of a socket.
#[derive(Clone, Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and number: another server may have put its own file in the place.
    identity: (u64, u64),
}

impl SocketListener {
    /// Listens at `path`, where a socket may lie that nobody listens at.
    ///
    /// # Errors
    /// `InvalidArgument` if another file is there, or somebody listens; `Io`.
    pub fn bind(path: &Path) -> Result<Self> {
        let failed = |error: &io::Error| {
            Error::new(ErrorKind::Io, format!("cannot listen at {}: {error}", path.display()))
        };
        if let Some(why) = in_the_way(path).map_err(|error| failed(&error))? {
            return Err(Error::invalid(format!("--listen: {} {why}", path.display())));
        }
        let bound = platform::create_privately(|| UnixListener::bind(path));
        let listener = bound.map_err(|error| failed(&error))?;
        let identity = fs::symlink_metadata(path).map_err(|error| failed(&error))?;
        let file = SocketFile { path: path.to_owned(), identity: identity_of(&identity) };
        Ok(Self { listener, file })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> SocketFile {
        self.file.clone()
    }

    pub(super) fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }
}

impl Drop for SocketListener {
    fn drop(&mut self) {
        self.file.remove();
    }
}

impl SocketFile {
    /// Removes the file.
    pub fn remove(&self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity_of(&found) == self.identity) {
            // It may be gone.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity_of(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Removes a socket that nobody listens at; says what else there is, with the remedy.
fn in_the_way(path: &Path) -> io::Result<Option<&'static str>> {
    let file = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if !file.file_type().is_socket() {
        return Ok(Some("exists and is no socket; give another path"));
    }
    match UnixStream::connect(path) {
        Ok(_) => Ok(Some("is the socket of a running server; end that, or give another path")),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_socket_that_nobody_listens_at_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        fs::write(&path, "kept").unwrap();
        let refused = |words: &str| {
            let error = SocketListener::bind(&path).unwrap_err();
            assert!(error.message().contains(words), "{error}");
        };
        refused("is no socket");
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        fs::remove_file(&path).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let listener = SocketListener::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        refused("running server");
        // That of another server stays.
        fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop(listener);
        assert!(path.exists());
        drop(other);
        drop(SocketListener::bind(&path).unwrap());
        assert!(!path.exists());
    }
}
