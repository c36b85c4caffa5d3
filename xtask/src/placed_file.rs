//! Files that a task writes outside the build directory: all of them beside their destinations first, then renamed, so that a
//! failure leaves every destination as it was.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use crate::process::{Failure, Outcome, quiet};

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedFile {
    pub(crate) content: Content,
    pub(crate) to: PathBuf,
}

/// Where the bytes of a [`PlacedFile`] come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// An executable, to be stripped.
    Program(PathBuf),
    /// A dynamic library, to be stripped.
    Library(PathBuf),
    /// A file to copy.
    Copy(PathBuf),
    /// The bytes themselves.
    Text(String),
}

impl PlacedFile {
    pub(crate) fn new(content: Content, to: PathBuf) -> Self {
        Self { content, to }
    }
}

/// Writes all files, replacing those of an earlier run. Directories are created with mode 0755, whatever the umask: backends in a
/// world-writable one are not loaded.
pub(crate) fn write_all(files: &[PlacedFile]) -> Outcome {
    let beside: Vec<_> = files.iter().map(Beside::write).collect::<Outcome<_>>()?;
    beside.into_iter().try_for_each(Beside::publish)
}

/// Fails if `directory` cannot be created or written to; leaves nothing behind.
pub(crate) fn check_writable(directory: &Path) -> Outcome {
    let existing = directory.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(directory);
    if !existing.is_dir() {
        return Err(Failure::new(format!(
            "cannot write below `{}`: it is not a directory; choose another one",
            existing.display()
        )));
    }
    let probe = existing.join(format!(".xtask-{}", process::id()));
    let outcome = fs::write(&probe, "");
    let _ = fs::remove_file(&probe);
    outcome.map_err(|error| not_written(existing, &error))
}

/// The files below `folder`, each copied to the same place below `to`.
pub(crate) fn folder(folder: &Path, to: &Path) -> Outcome<Vec<PlacedFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files.extend(self::folder(&entry.path(), &to)?);
        } else {
            files.push(PlacedFile::new(Content::Copy(entry.path()), to));
        }
    }
    Ok(files)
}

/// A file written beside its destination. Removed when dropped.
struct Beside<'a> {
    path: PathBuf,
    to: &'a Path,
}

impl<'a> Beside<'a> {
    fn write(file: &'a PlacedFile) -> Outcome<Self> {
        let (folder, name) = (file.to.parent().unwrap_or(Path::new("/")), file.to.file_name());
        // The suffix keeps the loader from taking it for a backend.
        let name = format!(".{}.{}", name.unwrap_or_default().to_string_lossy(), process::id());
        let beside = Self { path: folder.join(name), to: &file.to };
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)
            .map_err(|error| not_written(folder, &error))?;
        beside.fill(&file.content)?;
        Ok(beside)
    }

    fn fill(&self, content: &Content) -> Outcome {
        match content {
            Content::Program(from) | Content::Library(from) => {
                quiet(Command::new("strip").arg("-o").arg(&self.path).arg(from)).map_err(|failure| {
                    Failure::new(format!("cannot write `{}`: {failure}", self.to.display()))
                })?;
            }
            Content::Copy(from) => {
                fs::copy(from, &self.path).map_err(|error| not_written(self.to, &error))?;
            }
            Content::Text(text) => {
                fs::write(&self.path, text).map_err(|error| not_written(self.to, &error))?;
            }
        }
        let executable = match content {
            Content::Program(_) => true,
            Content::Library(_) | Content::Text(_) => false,
            Content::Copy(from) => from.metadata()?.permissions().mode() & 0o100 != 0,
        };
        let mode = if executable { 0o755 } else { 0o644 };
        fs::set_permissions(&self.path, fs::Permissions::from_mode(mode))
            .map_err(|error| not_written(self.to, &error))
    }

    fn publish(self) -> Outcome {
        fs::rename(&self.path, self.to).map_err(|error| not_written(self.to, &error))
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        // Gone already if it was published.
        let _ = fs::remove_file(&self.path);
    }
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose another directory, or run the task as a user who may write there"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and try again: nothing was replaced"
        }
        _ => "",
    };
    Failure::new(format!("cannot write `{}`: {error}{remedy}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of a test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(folder: &Folder, name: &str, text: &str) -> PlacedFile {
        PlacedFile::new(Content::Text(text.to_owned()), folder.0.join(name))
    }

    #[test]
    fn a_failure_replaces_no_file_and_leaves_none_behind() {
        let folder = Folder::new("failure");
        write_all(&[text(&folder, "first", "old")]).unwrap();
        let no_program = folder.0.join("first");
        let files = [
            text(&folder, "first", "new"),
            PlacedFile::new(Content::Program(no_program), folder.0.join("second")),
        ];
        let failure = write_all(&files).unwrap_err().to_string();
        assert!(failure.contains("second") && failure.contains("strip"), "{failure}");
        assert_eq!(fs::read_to_string(folder.0.join("first")).unwrap(), "old");
        assert_eq!(folder.names(), ["first"]);
    }

    #[test]
    fn programs_can_be_run_and_the_rest_cannot() {
        let folder = Folder::new("modes");
        let program = Content::Program(std::env::current_exe().unwrap());
        let files = [PlacedFile::new(program, folder.0.join("sub/program")), text(&folder, "header", "text")];
        write_all(&files).unwrap();
        let mode = |name: &str| folder.0.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("sub/program"), mode("header")), (0o755, 0o644));
        assert_eq!(folder.names(), ["header", "sub"]);
        let files = self::folder(&folder.0, Path::new("/to")).unwrap();
        assert!(files.iter().any(|file| file.to == Path::new("/to/sub/program")), "{files:?}");
    }

    #[test]
    fn what_cannot_be_written_is_named_before_anything_is_written() {
        let folder = Folder::new("unwritable");
        write_all(&[text(&folder, "file", "")]).unwrap();
        let failure = check_writable(&folder.0.join("file/lib")).unwrap_err().to_string();
        assert!(failure.contains("file`: it is not a directory"), "{failure}");
        // Nobody creates files there, not even the superuser.
        assert!(check_writable(Path::new("/proc/self")).is_err());
        check_writable(&folder.0.join("missing/lib")).unwrap();
        assert_eq!(folder.names(), ["file"]);
    }

    #[test]
    fn errors_name_the_remedy() {
        let failure = |kind: io::ErrorKind| not_written(Path::new("/x"), &kind.into()).to_string();
        assert!(failure(io::ErrorKind::PermissionDenied).contains("choose another directory"));
        assert!(failure(io::ErrorKind::StorageFull).contains("free some space"));
    }
}
