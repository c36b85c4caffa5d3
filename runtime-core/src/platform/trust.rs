//! Which folders and files are trusted with what is executed, or decides what is: those that no other user can change. The rules
//! are the same for every user, also for root.
//!
//! | what | rule | where it is checked |
//! | --- | --- | --- |
//! | the code cache, its notes, the caches of backends | [`check_folder`] and [`open_file`], of this user | `cache/`, [`cache_folder`](super::cache_folder) |
//! | shared and override folders of the code cache | the same, or of root | `cache/shared.rs`, `cache/dump.rs` |
//! | board files, and the drivers and scripts that they name | [`trusted_folder`], [`trusted_file`] and [`read_trusted`]: the same | `runtime-embedded/src/boards` |
//! | backend libraries, and their folders | [`check_installed`]: anybody may own them, for they are often installed by others | `plugin/` |
//! | drivers and other libraries that backends open | the same | `backend/library.rs` |
//! | compilers, emulators and other programs | the same | `platform/program/` |
//!
//! What the caller names by an unsafe call is the caller's responsibility, and a process with elevated privileges ignores the
//! variables that name folders.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{Error, ErrorKind, Result, platform};

/// Who may own a folder and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
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
const WRITABLE_BY_ALL: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Creates a folder for this user only, with those above it, unless it exists.
///
/// # Errors
/// `Io`, with the path.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| folder_error(folder, &error))
}

/// Checks a folder and all above it. Returns its path without symbolic links.
///
/// # Errors
/// `Io` if it cannot be examined; `Unavailable` if other users could change what is in it.
pub(crate) fn check_folder(folder: &Path, owner: Owner) -> Result<PathBuf> {
    let path = folder.canonicalize().map_err(|error| folder_error(folder, &error))?;
    for (at, ancestor) in path.ancestors().enumerate() {
        let metadata = fs::symlink_metadata(ancestor).map_err(|error| folder_error(ancestor, &error))?;
        let (owner, is_folder) = if at == 0 { (owner, true) } else { (Owner::UserOrRoot, false) };
        if !metadata.is_dir() {
            return Err(unusable(format!("{} is not a folder", ancestor.display())));
        }
        if !owner.accepts(&metadata) {
            let text = format!("{} belongs to user {}", ancestor.display(), metadata.uid());
            return Err(unusable(format!("{text}; use a folder that is yours")));
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
pub(crate) fn open_file(path: &Path, owner: Owner) -> io::Result<(File, Metadata)> {
    // A pipe would block without O_NONBLOCK.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(|error| {
        match error.raw_os_error() {
            Some(libc::ELOOP) => {
                io::Error::new(io::ErrorKind::InvalidData, "it is a symbolic link, not a regular file")
            }
            _ => error,
        }
    })?;
    let metadata = file.metadata()?;
    let untrusted = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    match metadata.is_file() {
        false => untrusted("it is not a regular file"),
        true if !owner.accepts(&metadata) => untrusted("it belongs to another user"),
        true if metadata.mode() & WRITABLE_BY_OTHERS != 0 => untrusted("other users may write to it"),
        true => Ok((file, metadata)),
    }
}

/// Reads a file of at most `most` bytes as [`open_file`] opens it; `None` if there is none.
///
/// # Errors
/// `Io` that names the file.
pub(crate) fn read_file(path: &Path, owner: Owner, most: u64) -> Result<Option<Vec<u8>>> {
    let read = open_file(path, owner).and_then(|(mut file, metadata)| {
        if metadata.len() > most {
            return Err(io::Error::other(format!("it is not a regular file of at most {most} bytes")));
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

/// Checks a folder whose content is executed, or decides what is, and all above it. Returns its path without symbolic links.
///
/// # Errors
/// `Io` if it cannot be examined; `Unavailable` if anyone but this user and root could change what is in it.
pub fn trusted_folder(folder: &Path) -> Result<PathBuf> {
    check_folder(folder, Owner::UserOrRoot)
}

/// Reads a file of at most `most` bytes in a [`trusted_folder`]; `None` if there is none.
///
/// # Errors
/// `Io` that names the file, if it is not a regular file of this size, or anyone but this user and root could change it.
pub fn read_trusted(file: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    read_file(file, Owner::UserOrRoot, most)
}

/// Checks a file that is compiled or executed, and its folder. It may be a link to another one.
///
/// # Errors
/// As [`trusted_folder`] and [`read_trusted`].
pub fn trusted_file(file: &Path) -> Result<()> {
    let unusable = |error| Error::new(ErrorKind::Io, format!("{}: {error}", file.display()));
    let path = file.canonicalize().map_err(unusable)?;
    trusted_folder(path.parent().unwrap_or(&path))?;
    open_file(&path, Owner::UserOrRoot).map(drop).map_err(unusable)
}

/// Checks a library, a program, or a folder of these, as somebody installed it: whoever that was, not everybody may write to it
/// or to its folder, nor put others in their place.
///
/// # Errors
/// `Io` if it cannot be examined; `InvalidArgument` with the remedy.
pub(crate) fn check_installed(path: &Path) -> Result<()> {
    let path = path.canonicalize()?;
    // In a sticky folder such as /tmp, others cannot rename what is not theirs, but they can add to it.
    let searched = if path.is_dir() { 0 } else { 1 };
    for (at, place) in path.ancestors().enumerate() {
        let mode = fs::metadata(place)?.mode();
        if mode & WRITABLE_BY_ALL != 0 && (at <= searched || mode & STICKY == 0) {
            let place = place.display();
            let what = if at == 0 { "it".to_owned() } else { place.to_string() };
            return Err(Error::invalid(format!(
                "rejected: {what} is world-writable; run `chmod o-w {place}` if it is yours"
            )));
        }
    }
    Ok(())
}

fn unusable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}

fn folder_error(folder: &Path, error: &io::Error) -> Error {
    let message = format!("cannot use the folder {}: {error}", folder.display());
    Error::new(ErrorKind::Io, message).with_source(io::Error::from(error.kind()))
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::platform::program::find_program;

    /// Root, whose process could read and execute everything, trusts no more than others do.
    #[test]
    fn a_folder_of_another_user_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = match chown(folder.path(), Some(65534), None) {
            Ok(()) => trusted_folder(folder.path()),
            Err(_) => check_folder(Path::new("/"), Owner::User),
        };
        let error = refused.unwrap_err();
        assert!(error.message().contains("belongs to user"), "{error}");
    }

    #[test]
    fn what_everybody_can_change_is_not_installed() {
        let root = tempfile::tempdir().unwrap();
        let (above, folder) = (root.path().join("above"), root.path().join("above/folder"));
        let file = folder.join("tool");
        fs::create_dir_all(&folder).unwrap();
        fs::write(&file, "").unwrap();
        let set_mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set_mode(&file, 0o755);
        let is_installed = || {
            let is_found = find_program("tool", [folder.clone()]).is_some();
            assert_eq!(is_found, check_installed(&file).is_ok());
            is_found
        };
        assert!(is_installed() && check_installed(&folder).is_ok());
        for place in [&above, &folder, &file] {
            set_mode(place, 0o777);
            assert!(!is_installed(), "{}", place.display());
            set_mode(place, 0o1777);
            assert_eq!(is_installed(), place == &above, "only above it, as /tmp is: {}", place.display());
            set_mode(place, 0o755);
        }
        set_mode(&folder, 0o1777);
        assert!(check_installed(&folder).is_err(), "everybody can add to it");
    }
}
