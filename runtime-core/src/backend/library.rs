//! Opens driver libraries, checking each file before it is loaded.

use std::path::{Component, Path, PathBuf};

use crate::platform::{self, trust};
use crate::{Error, ErrorKind, Result};

/// Checks that `code` is a complete shared library for this machine. Accessing a truncated one would kill the
/// process with `SIGBUS`.
///
/// # Errors
/// `AbiMismatch`, with the reason.
pub fn check_library(code: &[u8]) -> Result<()> {
    platform::check_library(code)
}

/// The file that [`open_library`] most likely opens for a library's name: the first one in the loader's folders that is for
/// this machine. The system's loader may know further folders.
#[must_use]
pub fn find_library(name: &Path) -> Option<PathBuf> {
    let paths = platform::library_directories().into_iter().map(|directory| directory.join(name));
    let mut found = paths.filter(|path| path.is_absolute() && path.is_file());
    found.find(|path| check(path).is_ok())
}

/// Opens a library by its path, or by a name for the system's loader to resolve; `open` loads it.
///
/// # Errors
/// `Unavailable` if the library is missing, truncated, built for another machine, or cannot be loaded; the
/// message includes that of the loader.
pub fn open_library<T, E: std::error::Error>(
    name: &Path,
    open: impl FnOnce(&Path) -> std::result::Result<T, E>,
) -> Result<T> {
    open_in(name, platform::library_directories(), open)
}

fn check(library: &Path) -> Result<()> {
    trust::check_installed(library)?;
    platform::check_library_file(library)
}

fn open_in<T, E: std::error::Error>(
    name: &Path,
    directories: Vec<PathBuf>,
    open: impl FnOnce(&Path) -> std::result::Result<T, E>,
) -> Result<T> {
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message);
    let by_name = matches!(name.components().next(), Some(Component::Normal(_)))
        && name.parent() == Some(Path::new(""));
    let mut foreign = None;
    let found = directories.into_iter().map(|directory| directory.join(name)).filter(|path| path.is_file());
    let candidates: Vec<_> = if by_name { found.collect() } else { vec![name.to_owned()] };
    for path in candidates.iter().filter(|path| path.is_file()) {
        match check(path) {
            Ok(()) => break,
            // The loader skips a library for another machine and continues its search.
            Err(error) if by_name && error.message().starts_with("built for") => {
                foreign.get_or_insert_with(|| format!("{}: {}", path.display(), error.message()));
            }
            Err(error) => return Err(unavailable(format!("{}: {}", path.display(), error.message()))),
        }
    }
    open(name).map_err(|error| {
        let message = root_cause(&error);
        unavailable(foreign.map_or(message.clone(), |foreign| format!("{message}; {foreign}")))
    })
}

/// The message of the innermost error: the outer messages say only that there is one.
fn root_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), root_cause)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// The message with which opening `name` in one folder fails; `None` if the loader was reached.
    fn refusal(name: &Path, folder: &Path) -> Option<String> {
        let open = |_: &Path| -> io::Result<()> { Err(io::Error::other("the loader's message")) };
        let message = open_in(name, vec![folder.to_owned()], open).unwrap_err().message().to_owned();
        (message != "the loader's message").then_some(message)
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs Linux files")]
    fn a_broken_library_is_rejected_before_loading() {
        let folder = tempfile::tempdir().unwrap();
        let (name, path) = (Path::new("libx.so.1"), folder.path().join("libx.so.1"));
        assert_eq!(refusal(name, folder.path()), None, "a missing file is reported by the loader");
        let whole = std::fs::read("/proc/self/exe").unwrap();
        for (bytes, reason) in
            [(&whole[..4096], "truncated file"), (b"text", "not an ELF file"), (b"", "not an ELF file")]
        {
            std::fs::write(&path, bytes).unwrap();
            for asked in [name, &*path] {
                let refused = refusal(asked, folder.path()).unwrap();
                assert!(refused.starts_with(&format!("{}: {reason}", path.display())), "{refused}");
            }
            assert!(check_library(bytes).unwrap_err().message().starts_with(reason));
        }
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(refusal(name, folder.path()), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs Linux files")]
    fn a_library_for_another_machine_is_reported_if_there_is_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libx.so.1");
        let mut foreign = std::fs::read("/proc/self/exe").unwrap();
        foreign[18] = if cfg!(target_arch = "aarch64") { 62 } else { 0xb7 };
        std::fs::write(&path, &foreign).unwrap();
        let refused = refusal(Path::new("libx.so.1"), folder.path()).unwrap();
        let expected = format!("the loader's message; {}: built for ", path.display());
        assert!(refused.starts_with(&expected), "{refused}");
        let opened = open_in(Path::new("libx.so.1"), vec![folder.path().to_owned()], |_| io::Result::Ok(7));
        assert_eq!(opened.unwrap(), 7, "the loader found another");
    }
}
