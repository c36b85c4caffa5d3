//! Atomically written files that a backend caches between runs.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Name prefix of files that are still being written.
const UNFINISHED_PREFIX: &str = ".new-";
/// An unfinished file of this age was left by a writer that was killed.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// Writes the concatenation of `parts` to a file atomically, even with concurrent writers.
///
/// Also removes the unfinished files that killed writers left in the folder.
///
/// # Errors
/// Any I/O error. The file is then unchanged, and no temporary file is left.
pub fn write_atomic(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    remove_stale(folder);
    // A random name, because process IDs are not unique across containers that share the folder.
    let unfinished = folder.join(format!("{UNFINISHED_PREFIX}{:016x}", RandomState::new().hash_one(path)));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    let renamed = written.and_then(|()| fs::rename(&unfinished, path));
    if renamed.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    renamed
}

fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_unfinished = entry.file_name().as_encoded_bytes().starts_with(UNFINISHED_PREFIX.as_bytes());
        let modified = || entry.metadata().and_then(|metadata| metadata.modified()).ok()?.elapsed().ok();
        if is_unfinished && modified().is_some_and(|age| age > STALE_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::SystemTime;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn a_failed_write_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomic(&path, &[b"one", b"two"]).unwrap();
        write_atomic(&path, &[b"other"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"other");
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write_atomic(&taken, &[b"x"]).is_err(), "a folder has that name");
        assert_eq!(names(folder.path()), ["file", "taken"], "no temporary file is left");
        assert!(write_atomic(&folder.path().join("no/file"), &[b"x"]).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn stale_unfinished_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, age: Duration| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        make(".new-old", STALE_AFTER * 2);
        make(".new-young", STALE_AFTER / 2);
        make("old", STALE_AFTER * 2);
        write_atomic(&folder.path().join("file"), &[]).unwrap();
        assert_eq!(names(folder.path()), [".new-young", "file", "old"]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn concurrent_writers_leave_one_complete_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::thread::scope(|scope| {
            for byte in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        write_atomic(path, &[&[byte; 1000], &[byte; 1000]]).unwrap();
                        let read = fs::read(path).unwrap();
                        assert!(read.len() == 2000 && read.iter().all(|other| *other == read[0]));
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["file"]);
    }
}
