//! Notes of backends beside the entries: small results that spare work, and that are found out again without them.

#![allow(unsafe_code, reason = "what is noted decides what code is executed")]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::environment::Settings;
use super::layers::default_folder;
use super::options::{CacheAccess, CacheOptions};
use super::store::create_private;
use crate::platform::trust::{self, Owner};

/// Folder of the notes in that of the cache.
const FOLDER: &str = "notes";
/// The first bytes of a note, with its version.
const MAGIC: &[u8; 8] = b"rtnote1\n";
/// The most bytes of a note. With [`SLOTS`], it bounds the folder.
const MAX_BYTES: u64 = 128 << 10;
/// Number of notes. One of another key takes the place of an older one.
const SLOTS: u16 = 1024;
/// Bytes before the key: the magic number, a hash of what follows it, and the length of the key.
const HEAD_BYTES: usize = 8 + 32 + 8;

/// Small notes that a backend keeps in the folder of the code cache. They are only a help: one may be missing at any time.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The folder; `None` keeps nothing.
    folder: Option<PathBuf>,
    is_writable: bool,
}

impl Notes {
    /// Notes in the folder of the code cache that the environment describes; none if it is off, read only if it is read-only.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::with_options(&Settings::from_environment().options)
    }

    /// Notes in the folder of the code cache with these options.
    pub(super) fn with_options(options: &CacheOptions) -> Self {
        if options.access == CacheAccess::Off || options.recompile {
            return Self::default();
        }
        let folder = options.folder.clone().or_else(default_folder);
        Self { folder, is_writable: options.access == CacheAccess::ReadWrite }
    }

    /// Notes in a folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()), is_writable: true }
    }

    /// The note of a key. One that is damaged, or that other users could have changed, is none.
    #[must_use]
    pub fn read(&self, key: &[u8]) -> Option<Vec<u8>> {
        let path = path_of(&self.trusted_folder()?, key);
        let (file, metadata) = trust::open_file(&path, Owner::User).ok()?;
        let mut bytes = Vec::new();
        if metadata.len() > MAX_BYTES || file.take(MAX_BYTES + 1).read_to_end(&mut bytes).is_err() {
            return None;
        }
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let key_bytes = usize::try_from(u64::from_le_bytes(head[40..].try_into().ok()?)).ok()?;
        let (known, content) = rest.split_at_checked(key_bytes)?;
        let is_intact = head[..8] == *MAGIC && *blake3::hash(&bytes[40..]).as_bytes() == head[8..40];
        if !is_intact {
            tracing::warn!(target: "runtime::cache", file = %path.display(), "a note is damaged, so it is ignored");
        }
        (is_intact && known == key).then(|| content.to_vec())
    }

    /// Keeps a note, unless it is too large or cannot be written.
    ///
    /// # Safety
    /// Notes decide which code is executed, and may be code. `content` is what whoever reads the note of this key would find out
    /// without it.
    pub unsafe fn write(&self, key: &[u8], content: &[u8]) {
        let bytes = HEAD_BYTES as u64 + key.len() as u64 + content.len() as u64;
        if !self.is_writable || bytes > MAX_BYTES {
            return;
        }
        if let Some(folder) = &self.folder
            && trust::create_folder(folder).is_err()
        {
            return;
        }
        if let Some(folder) = self.trusted_folder() {
            // Without it, the work is done again.
            let _ = write(&path_of(&folder, key), key, content);
        }
    }

    fn trusted_folder(&self) -> Option<PathBuf> {
        trust::check_folder(self.folder.as_deref()?, Owner::User).ok()
    }
}

/// Removes all notes of a cache.
pub(super) fn clear(folder: &Path) {
    // They bound themselves.
    let _ = fs::remove_dir_all(folder.join(FOLDER));
}

fn write(path: &Path, key: &[u8], content: &[u8]) -> std::io::Result<()> {
    let mut rest = (key.len() as u64).to_le_bytes().to_vec();
    rest.extend_from_slice(key);
    rest.extend_from_slice(content);
    // A new file has the permissions of the one that it replaces.
    if path.exists() && trust::open_file(path, Owner::User).is_err() {
        fs::remove_file(path)?;
    }
    let mut temporary = create_private(path)?;
    temporary.file.write_all(MAGIC)?;
    temporary.file.write_all(blake3::hash(&rest).as_bytes())?;
    temporary.file.write_all(&rest)?;
    temporary.persist(path)
}

fn path_of(folder: &Path, key: &[u8]) -> PathBuf {
    let hash = blake3::hash(key);
    let slot = u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]]) % SLOTS;
    folder.join(FOLDER).join(format!("{slot:03x}"))
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    fn keep(notes: &Notes, key: &[u8], content: &[u8]) {
        // SAFETY: nobody executes what these tests note.
        unsafe { notes.write(key, content) };
    }

    #[test]
    fn a_note_is_read_by_its_key_only() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::in_folder(&folder.path().join("cache"));
        assert_eq!(notes.read(b"key"), None);
        keep(&notes, b"key", b"content");
        keep(&notes, b"empty", b"");
        assert_eq!(notes.read(b"key").unwrap(), b"content");
        assert_eq!(Notes::in_folder(&folder.path().join("cache")).read(b"empty").unwrap(), b"");
        assert_eq!((notes.read(b"ke"), notes.read(b"keyc")), (None, None));
        keep(&notes, b"key", b"other");
        assert_eq!(notes.read(b"key").unwrap(), b"other");
        keep(&notes, b"large", &vec![0; 1 << 20]);
        assert_eq!(notes.read(b"large"), None);
        clear(&folder.path().join("cache"));
        assert_eq!(notes.read(b"key"), None);
    }

    #[test]
    fn damage_and_files_of_others_are_no_notes() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::in_folder(folder.path());
        keep(&notes, b"key", b"content");
        let path = path_of(folder.path(), b"key");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(notes.read(b"key"), None, "bit flipped at {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(notes.read(b"key"), None, "cut at {at}");
        }
        fs::write(&path, &whole).unwrap();
        assert!(notes.read(b"key").is_some());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(notes.read(b"key"), None);
        // The key of another note in the same place.
        let other = (0u32..).map(u32::to_le_bytes).find(|key| path_of(folder.path(), key) == path).unwrap();
        keep(&notes, &other, b"its");
        assert_eq!((notes.read(b"key"), notes.read(&other).as_deref()), (None, Some(&b"its"[..])));
    }

    #[test]
    fn notes_of_nowhere_keep_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let read_only = Notes { folder: Some(folder.path().to_owned()), is_writable: false };
        for notes in [Notes::default(), read_only] {
            keep(&notes, b"key", b"content");
            assert_eq!(notes.read(b"key"), None);
        }
    }
}
