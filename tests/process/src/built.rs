//! What cargo has built already, for tests that build packages elsewhere.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Files that compilers replace and never change, so that links to them are safe.
const REPLACED: [&str; 3] = ["rlib", "rmeta", "so"];

/// Puts what cargo has built for this program and its workspace into another target directory. A build there compiles only what
/// is new or has other features; anything else takes minutes.
///
/// # Errors
/// If a file cannot be copied.
pub fn copy_built(target: &Path) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let profile = program.parent().and_then(Path::parent).ok_or(io::ErrorKind::NotFound)?;
    let name = profile.file_name().ok_or(io::ErrorKind::NotFound)?;
    for part in [".fingerprint", "build", "deps"] {
        copy_folder(&profile.join(part), &target.join(name).join(part), part == "deps")?;
    }
    Ok(())
}

/// Without programs, if they are not wanted: those of the workspace take gigabytes.
fn copy_folder(from: &Path, to: &Path, without_programs: bool) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let extension = from.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if entry.file_type()?.is_dir() {
            copy_folder(&from, &to, without_programs)?;
        } else if REPLACED.contains(&extension) {
            fs::hard_link(&from, &to)?;
        } else if !without_programs || extension == "d" {
            copy_file(&from, &to)?;
        }
    }
    Ok(())
}

/// Copies a file with its time, by which cargo sees whether it has changed.
///
/// # Errors
/// If it cannot be copied.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    copy_time(from, to)
}

/// Gives a file or a folder the time of another.
///
/// # Errors
/// If it cannot be changed.
pub fn copy_time(from: &Path, to: &Path) -> io::Result<()> {
    File::open(to)?.set_modified(fs::metadata(from)?.modified()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn libraries_are_linked_records_copied_and_programs_left_out() {
        let folder = std::env::temp_dir().join(format!("copy-built-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(&from).unwrap();
        for name in ["a.rlib", "a.d", "program"] {
            File::create(from.join(name)).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        copy_folder(&from, &to, true).unwrap();
        let number = |path: &Path| fs::metadata(path).map(|data| (data.ino(), data.mtime())).ok();
        assert_eq!(number(&to.join("a.rlib")), number(&from.join("a.rlib")));
        assert_ne!(number(&to.join("a.d")), number(&from.join("a.d")));
        assert_eq!(number(&to.join("a.d")).map(|(_, time)| time), Some(0));
        assert_eq!(number(&to.join("program")), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
