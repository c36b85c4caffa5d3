//! Texts one after the other, each with its length in front.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Adds a text.
pub(super) fn push(bytes: &mut Vec<u8>, text: &[u8]) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend_from_slice(text);
}

/// Adds the number of paths, and each of them.
pub(super) fn push_paths(bytes: &mut Vec<u8>, paths: &[PathBuf]) {
    push(bytes, paths.len().to_string().as_bytes());
    for path in paths {
        push(bytes, path.as_os_str().as_bytes());
    }
}

/// Reads what [`push`] wrote; `None` at the end.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk::<8>()?;
        let (text, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        self.0 = rest;
        Some(text)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn path(&mut self) -> Option<PathBuf> {
        Some(PathBuf::from(OsStr::from_bytes(self.bytes()?)))
    }

    pub(super) fn paths(&mut self) -> Option<Vec<PathBuf>> {
        let count: usize = self.text()?.parse().ok()?;
        (0..count).map(|_| self.path()).collect()
    }
}
