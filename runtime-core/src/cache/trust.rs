//! Which folders and files are trusted with native code: those that no other user can change.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{Error, ErrorKind, Result, platform};

/// Who may own a folder and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// This user.
    User,
    /// This user, or the administrator.
    UserOrRoot,
}

impl Owner {
    fn accepts(self, metadata: &Metadata) -> bool {
        metadata.uid() == platform::user() || (self == Self::UserOrRoot && metadata.uid() == 0)
    }
}

const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Creates a folder for this user only, with those above it, unless it exists.
///
/// # Errors
/// `Io`, with the path.
pub(super) fn create_folder(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| folder_error(folder, &error))
}

/// Checks a folder and all above it. Returns its path without symbolic links.
///
/// # Errors
/// `Io` if it cannot be examined; `Unavailable` if other users could change what is in it.
pub(super) fn check_folder(folder: &Path, owner: Owner) -> Result<PathBuf> {
    let path = folder.canonicalize().map_err(|error| folder_error(folder, &error))?;
    for (at, ancestor) in path.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(ancestor).map_err(|error| folder_error(ancestor, &error))?;
        let (owner, is_folder) = if at == 0 { (owner, true) } else { (Owner::UserOrRoot, false) };
        if !metadata.is_dir() {
            return Err(unusable(format!("{} is not a folder", ancestor.display())));
        }
        if !owner.accepts(&metadata) {
            let text = format!("{} belongs to user {}", ancestor.display(), metadata.uid());
            return Err(unusable(format!("{text}; name a folder that is yours in RUNTIME_CACHE")));
        }
        // In a sticky folder such as /tmp, others cannot rename what is not theirs.
        let is_sticky = !is_folder && metadata.mode() & STICKY != 0;
        if metadata.mode() & WRITABLE_BY_OTHERS != 0 && !is_sticky {
            let text = format!("other users may write to {}", ancestor.display());
            return Err(unusable(format!("{text}; remove their permission with `chmod go-w`")));
        }
    }
    Ok(path)
}

/// Opens a file in a checked folder. A symbolic link, anything but a file, and a file that others may change
/// give an error of kind `InvalidData`.
///
/// # Errors
/// The system's error.
pub(super) fn open_file(path: &Path, owner: Owner) -> io::Result<(File, Metadata)> {
    // A pipe would block without O_NONBLOCK.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| {
        match error.raw_os_error() {
            Some(libc::ELOOP) => io::Error::new(io::ErrorKind::InvalidData, "it is a symbolic link"),
            _ => error,
        }
    })?;
    let metadata = file.metadata()?;
    let untrusted = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    match metadata.is_file() {
        false => untrusted("it is not a file"),
        true if !owner.accepts(&metadata) => untrusted("it belongs to another user"),
        true if metadata.mode() & WRITABLE_BY_OTHERS != 0 => untrusted("other users may write to it"),
        true => Ok((file, metadata)),
    }
}

/// Reads a file of at most `most` bytes as [`open_file`] opens it; `None` if there is none.
///
/// # Errors
/// `Io` that names the file.
pub(super) fn read_file(path: &Path, owner: Owner, most: u64) -> Result<Option<Vec<u8>>> {
    let read = open_file(path, owner).and_then(|(mut file, metadata)| {
        if metadata.len() > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    });
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(ErrorKind::Io, format!("{}: {error}", path.display()))),
    }
}

fn unusable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}

fn folder_error(folder: &Path, error: &io::Error) -> Error {
    let message = format!("cannot use the folder {}: {error}", folder.display());
    Error::new(ErrorKind::Io, message).with_source(io::Error::from(error.kind()))
}
