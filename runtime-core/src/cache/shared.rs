//! Stores that several users or machines share.

#![allow(unsafe_code, reason = "guarantees that a folder is a store")]

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use super::store::path_of;
use crate::Result;
use crate::platform::trust::{self, Owner};

/// A second store behind the local one, for example of a team.
///
/// What it returns is checked like a local file: its length, its hash and its key. That finds damage, not malice:
/// **whoever can write to the store can run code in every process that reads from it.**
///
/// # Safety
/// `get` returns only what `put` was given for this name by a code cache, in this process or another, or nothing.
pub unsafe trait SharedStore: Debug + Send + Sync {
    /// What messages call it, such as its path or address.
    fn location(&self) -> String;

    /// The entry with this name, 64 hexadecimal digits; `None` if there is none.
    ///
    /// # Errors
    /// Any. The store is then not used again by this process.
    fn get(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Stores an entry. A read-only store ignores it.
    ///
    /// # Errors
    /// Any. The store is then not used again by this process.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()>;
}

/// A folder with the layout of a cache folder, which is only read. It and all folders above it must belong to this
/// user or root, and only they may write to them.
#[derive(Debug)]
pub(super) struct SharedFolder {
    path: PathBuf,
    /// The largest entry that is read.
    max_bytes: u64,
}

impl SharedFolder {
    pub(super) fn new(path: &Path, max_bytes: u64) -> Self {
        Self { path: path.to_owned(), max_bytes }
    }
}

// SAFETY: it is read only if none but this user and root, who are trusted with code, can write to it.
unsafe impl SharedStore for SharedFolder {
    fn location(&self) -> String {
        self.path.display().to_string()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let folder = trust::check_folder(&self.path, Owner::UserOrRoot)?;
        trust::read_file(&path_of(&folder, name), Owner::UserOrRoot, self.max_bytes)
    }

    fn put(&self, _name: &str, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}
