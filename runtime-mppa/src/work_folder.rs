//! The folder of an opened device: private, or below the configured one.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use runtime_core::backend::TemporaryFolder;
use runtime_core::{Error, ErrorKind, Result};

use crate::config::MppaConfig;
use crate::process;

/// A folder for the files of a device.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    /// Removes the folder.
    _private: Option<TemporaryFolder>,
}

impl WorkFolder {
    /// Creates the folder that the configuration asks for. Devices never share one.
    ///
    /// # Errors
    /// `Io`, with the remedy.
    pub(crate) fn create(config: &MppaConfig) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("mppa-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = match &config.work_dir {
            None if config.clean_work_dir => {
                let folder = process::folder("runtime-mppa-")?;
                return Ok(Self { path: folder.path().to_owned(), _private: Some(folder) });
            }
            None => std::env::temp_dir().join(format!("runtime-kept-{name}")),
            Some(parent) => parent.join(name),
        };
        let created = std::fs::create_dir_all(path.parent().unwrap_or(&path))
            // Not one that exists: it might belong to another user.
            .and_then(|()| DirBuilder::new().mode(0o700).create(&path));
        created.map_err(|error| {
            let message = format!(
                "{}: {error}; set option \"work_dir\" to a folder that you can write",
                path.display()
            );
            Error::new(ErrorKind::Io, message).with_source(error)
        })?;
        Ok(Self { path, _private: None })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeRoot;
    use runtime_core::Options;

    fn config(root: &FakeRoot, options: &Options) -> MppaConfig {
        MppaConfig::resolve(&root.environment(&[]), options).unwrap()
    }

    #[test]
    fn a_private_folder_is_removed_and_a_given_one_stays() {
        let root = FakeRoot::new();
        let folder = WorkFolder::create(&config(&root, &Options::new())).unwrap();
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        let given = Options::new().with("work_dir", root.path().to_str().unwrap());
        let (first, second) = (
            WorkFolder::create(&config(&root, &given)).unwrap(),
            WorkFolder::create(&config(&root, &given)).unwrap(),
        );
        assert!(first.path().starts_with(root.path()) && first.path() != second.path());
        let path = first.path().to_owned();
        drop(first);
        assert!(path.is_dir());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_with_the_remedy() {
        let root = FakeRoot::new();
        root.write("file", "");
        let given = Options::new().with("work_dir", root.path().join("file").to_str().unwrap());
        let error = WorkFolder::create(&config(&root, &given)).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("work_dir"), "{error}");
    }
}
