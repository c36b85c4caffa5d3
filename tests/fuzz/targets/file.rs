//! A file that every run overwrites.

use std::cell::OnceCell;
use std::path::Path;

use tempfile::TempDir;

/// Calls `read` with a file that holds `bytes`, in a directory that `prepare` has filled once.
pub(crate) fn with<T>(bytes: &[u8], prepare: impl FnOnce(&Path), read: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    }
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            // In memory if possible, since every run writes it.
            let memory = Path::new("/dev/shm");
            let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
            let folder = tempfile::tempdir_in(parent).expect("a directory for the file");
            prepare(folder.path());
            folder
        });
        let path = folder.path().join("input.bin");
        std::fs::write(&path, bytes).expect("room for the file");
        read(&path)
    })
}
