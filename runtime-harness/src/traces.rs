//! Trace files that an evaluation leaves: those that appear or change in the folders where a device puts them.
//!
//! A device whose property `trace_folder` is a path leaves traces there; one that is opened with the option `work_dir`, in the
//! folder `traces` below it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use runtime_core::{DeviceInfo, Options};

/// The property that names a folder.
const FOLDER: &str = "trace_folder";
/// The option that names the folder of `TRACES`.
const WORK_DIR: &str = "work_dir";
const TRACES: &str = "traces";
/// Upper limit for the files and folders inspected: a user's folder may hold any number.
const MAX_FILES: usize = 10_000;

/// The folders of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceFolders(Vec<PathBuf>);

/// Files with the time of their last change and their size.
pub(crate) type Files = BTreeMap<PathBuf, (SystemTime, u64)>;

/// Why new files are not known: a folder has too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TooMany(PathBuf);

impl fmt::Display for TooMany {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "traces are not listed, because there are more than {MAX_FILES} files in the folders where they may appear; empty {}, or run \
             in another folder",
            self.0.display()
        )
    }
}

impl TraceFolders {
    /// The folders of a device that is opened with `options`; none for most devices.
    pub(crate) fn of(info: &DeviceInfo, options: &Options) -> Self {
        let property = info.properties.text(FOLDER).map(PathBuf::from);
        let given = options.text(WORK_DIR).filter(|folder| !folder.is_empty());
        let mut folders: Vec<_> = property.into_iter().collect();
        folders.extend(given.map(|folder| Path::new(folder).join(TRACES)));
        folders.dedup();
        Self(folders)
    }

    /// The files in them, and one level below.
    ///
    /// # Errors
    /// There are too many to tell which are new.
    pub(crate) fn files(&self) -> Result<Files, TooMany> {
        self.files_within(MAX_FILES)
    }

    fn files_within(&self, limit: usize) -> Result<Files, TooMany> {
        let mut files = Files::new();
        let mut left = limit;
        for folder in &self.0 {
            for path in entries(folder, &mut left)? {
                if path.is_dir() {
                    entries(&path, &mut left)?.iter().for_each(|path| add(&mut files, path));
                } else {
                    add(&mut files, &path);
                }
            }
        }
        Ok(files)
    }

    /// The paths of the files that were not there, or not the same, before.
    ///
    /// # Errors
    /// As [`TraceFolders::files`], now or before.
    pub(crate) fn new_since(&self, before: &Result<Files, TooMany>) -> Result<Vec<String>, TooMany> {
        let before = before.as_ref().map_err(Clone::clone)?;
        let files = self.files()?;
        let new = files.iter().filter(|(path, state)| before.get(*path) != Some(*state));
        Ok(new.map(|(path, _)| path.display().to_string()).collect())
    }
}

/// The entries of a folder; none if it cannot be read. Subtracts their number from what is `left`.
fn entries(folder: &Path, left: &mut usize) -> Result<Vec<PathBuf>, TooMany> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(left.saturating_add(1));
    let paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    *left = left.checked_sub(paths.len()).ok_or_else(|| TooMany(folder.to_owned()))?;
    Ok(paths)
}

fn add(files: &mut Files, path: &Path) {
    if let Ok(metadata) = path.symlink_metadata()
        && metadata.is_file()
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
        let folders = TraceFolders::of(&info, &options);
        assert_eq!(folders.new_since(&Ok(Files::new())), Ok(Vec::new()), "no folder, no file");
        write("traces/old", "old");
        write("not/a/trace", "x");
        let growing = write("traces/run1/growing", "x");
        let before = folders.files();
        assert_eq!(before.as_ref().map(Files::len), Ok(2));
        let expected = [write("elsewhere/new", ""), growing, write("traces/run2/new", "new")];
        write("traces/run1/growing", "more");
        write("not/a/trace", "more");
        assert_eq!(folders.new_since(&before), Ok(expected.to_vec()));
        assert_eq!(TraceFolders::default().files(), Ok(Files::new()));
    }

    /// A cut list would make files that were there look new.
    #[test]
    fn too_many_files_are_no_traces() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        std::fs::create_dir(&run).unwrap();
        (0..3).for_each(|index| std::fs::write(run.join(index.to_string()), "").unwrap());
        let folders = TraceFolders(vec![folder.path().to_owned()]);
        assert_eq!(folders.files_within(4).map(|files| files.len()), Ok(3), "a folder and its files");
        let error = folders.files_within(3).unwrap_err();
        assert_eq!(error, TooMany(run));
        assert!(error.to_string().contains("traces are not listed"), "{error}");
        assert_eq!(folders.new_since(&Err(error.clone())), Err(error));
    }
}
