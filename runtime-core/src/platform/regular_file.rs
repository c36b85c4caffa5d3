//! Opening files whose paths come from users.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading. Reading a pipe would wait for a writer, and many a device has no end.
///
/// # Errors
/// The system's error; `Other` for anything that is not a regular file.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    // Opening some devices has an effect already.
    check(&path.metadata()?)?;
    // It may be a pipe by now.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file.
///
/// # Errors
/// As [`open_regular_file`]; the system's error.
pub(crate) fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_regular_file(path)?.read_to_end(&mut content)?;
    Ok(content)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    match metadata.is_file() {
        true => Ok(()),
        false if metadata.is_dir() => Err(io::Error::other("it is a directory, not a regular file")),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "starts a program")]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of coreutils");
        for path in [&file, &link] {
            assert_eq!(io::read_to_string(open_regular_file(path).unwrap()).unwrap(), "text");
        }
        let error = |path: &Path| open_regular_file(path).unwrap_err().to_string();
        for path in [&pipe, Path::new("/dev/zero")] {
            assert_eq!(error(path), "it is not a regular file", "{}", path.display());
        }
        assert_eq!(error(folder.path()), "it is a directory, not a regular file");
        assert_eq!(open_regular_file(&folder.path().join("x")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
