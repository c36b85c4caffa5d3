//! Trace files that an evaluation leaves: those that appear or change in the folders where a device puts them.
//!
//! A device whose property `trace_folder` is a path leaves traces there; one that is opened with the option `work_dir`, in the
//! folder `traces` below it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use runtime_core::{DeviceInfo, Options};

/// The property that names a folder.
const FOLDER: &str = "trace_folder";
/// The option that names the folder of `TRACES`.
const WORK_DIR: &str = "work_dir";
const TRACES: &str = "traces";
/// Files that are looked at; a folder of the user's may have any number.
const MAX_FILES: usize = 10_000;

/// The folders of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceFolders(Vec<PathBuf>);

/// Files with the time of their last change and their size.
pub(crate) type Files = BTreeMap<PathBuf, (SystemTime, u64)>;

impl TraceFolders {
    /// The folders of a device that is opened with `options`; none for most devices.
    pub(crate) fn of(info: Option<&DeviceInfo>, options: &Options) -> Self {
        let property = info.and_then(|info| info.properties.text(FOLDER)).map(PathBuf::from);
        let given = options.text(WORK_DIR).filter(|folder| !folder.is_empty());
        let mut folders: Vec<_> = property.into_iter().collect();
        folders.extend(given.map(|folder| Path::new(folder).join(TRACES)));
        folders.dedup();
        Self(folders)
    }

    /// The files in them, and one level below.
    pub(crate) fn files(&self) -> Files {
        let mut files = Files::new();
        for folder in &self.0 {
            for path in entries(folder) {
                match path.is_dir() {
                    true => entries(&path).iter().for_each(|path| add(&mut files, path)),
                    false => add(&mut files, &path),
                }
            }
        }
        files
    }

    /// The paths of the files that were not there, or not the same, before.
    pub(crate) fn new_since(&self, before: &Files) -> Vec<String> {
        let files = self.files();
        let new = files.iter().filter(|(path, state)| before.get(*path) != Some(*state));
        new.map(|(path, _)| path.display().to_string()).collect()
    }
}

/// The entries of a folder; none if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MAX_FILES);
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn add(files: &mut Files, path: &Path) {
    if let Ok(metadata) = path.symlink_metadata()
        && metadata.is_file()
        && files.len() < MAX_FILES
    {
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        files.insert(path.to_owned(), (modified, metadata.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::DeviceKind;

    #[test]
    fn files_that_appear_or_grow_are_traces() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let options = Options::new().with(WORK_DIR, folder.path().to_str().unwrap());
        let mut info = DeviceInfo::new(DeviceKind::Embedded, 0, "d");
        info.properties.push(FOLDER, folder.path().join("elsewhere").to_str().unwrap());
        let folders = TraceFolders::of(Some(&info), &options);
        assert!(folders.new_since(&Files::new()).is_empty(), "no folder, no file");
        write("traces/old", "old");
        write("not/a/trace", "x");
        let growing = write("traces/run1/growing", "x");
        let before = folders.files();
        assert_eq!(before.len(), 2);
        let expected = [write("elsewhere/new", ""), growing, write("traces/run2/new", "new")];
        write("traces/run1/growing", "more");
        write("not/a/trace", "more");
        assert_eq!(folders.new_since(&before), expected);
        assert!(TraceFolders::of(None, &Options::new()).files().is_empty());
    }
}
