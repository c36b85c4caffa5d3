//! Files that a backend keeps from one program to the next.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// What the names of files that are not whole yet begin with.
const UNFINISHED_PREFIX: &str = ".new-";
/// Whoever began to write a file so long ago was killed before its end.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// Writes a file whole or not at all, whoever else writes it at the same time; its bytes are those of all parts.
///
/// What writers that were killed have left in its folder is removed.
///
/// # Errors
/// Whatever the system says; then the file is what it was, and nothing is left beside it.
pub fn keep_file(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    remove_stale(folder);
    // A random name: the number of a process may be another one's, too, in a container with the same folder.
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
    fn a_file_is_whole_or_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        keep_file(&path, &[b"one", b"two"]).unwrap();
        keep_file(&path, &[b"other"]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"other");
        let taken = folder.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(keep_file(&taken, &[b"x"]).is_err(), "a folder has its name");
        assert_eq!(names(folder.path()), ["file", "taken"], "nothing is left");
        assert!(keep_file(&folder.path().join("no/file"), &[b"x"]).is_err());
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn what_killed_writers_left_goes_after_an_hour() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, age: Duration| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        make(".new-old", STALE_AFTER * 2);
        make(".new-young", STALE_AFTER / 2);
        make("old", STALE_AFTER * 2);
        keep_file(&folder.path().join("file"), &[]).unwrap();
        assert_eq!(names(folder.path()), [".new-young", "file", "old"]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn many_may_write_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::thread::scope(|scope| {
            for byte in 0..8_u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        keep_file(path, &[&[byte; 1000], &[byte; 1000]]).unwrap();
                        let read = fs::read(path).unwrap();
                        assert!(read.len() == 2000 && read.iter().all(|other| *other == read[0]));
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["file"]);
    }
}
