//! Reads files in which Linux describes the machine, such as those below `/sys`.

use std::path::Path;
use std::str::FromStr;

/// The trimmed text of a file; `None` if it cannot be read.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The number that a file contains; `None` if it cannot be read, or contains anything else.
pub(crate) fn number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// The entries of a folder that are `prefix` and a number.
pub(crate) fn numbered(folder: &Path, prefix: &str) -> Vec<String> {
    let names = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok())).collect()
}
