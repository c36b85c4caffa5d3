//! Files that are written as a whole: they replace what was there when they are complete. What is no file is written as
//! it is.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// Writes `path` by `write`: into a temporary file beside it, which takes its place when it is complete. A pipe or a
/// device is written as a stream: it must not be replaced by a file.
///
/// # Errors
/// `Io`; whatever `write` says.
pub(crate) fn write_whole(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    if fs::metadata(path).is_ok_and(|known| !known.is_file() && !known.is_dir()) {
        return write(&mut File::options().write(true).open(path)?);
    }
    let temporary = temporary_beside(path)?;
    let written = File::options().write(true).create_new(true).open(&temporary).map_err(Error::from);
    let written = written.and_then(|mut file| {
        write(&mut file)?;
        // Some file systems tell that they are full only here.
        file.sync_all()?;
        Ok(fs::rename(&temporary, path)?)
    });
    written.inspect_err(|_| {
        // A file that is not there any more, or never was, is what we want.
        let _ = fs::remove_file(&temporary);
    })
}

/// A name in the same folder that nobody else uses.
fn temporary_beside(path: &Path) -> Result<PathBuf> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().ok_or_else(|| Error::invalid("the path has no file name"))?;
    let unique = format!(".{}.{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(unique);
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_complete_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "old").unwrap();
        let broken = write_whole(&path, |file| {
            file.write_all(b"half")?;
            Err(Error::invalid("broken"))
        });
        assert_eq!(broken.unwrap_err().message(), "broken");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_whole(&path, |file| Ok(file.write_all(b"new")?)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        assert!(write_whole(folder.path(), |_| Ok(())).is_err(), "a folder is no file");
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "Miri makes no pipes in the file system")]
    fn a_pipe_is_written_and_stays_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo is of coreutils");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path)
        });
        write_whole(&path, |file| Ok(file.write_all(b"through")?)).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"through");
        assert!(!fs::metadata(&path).unwrap().is_file());
    }
}
