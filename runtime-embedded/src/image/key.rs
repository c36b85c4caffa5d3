//! What an image is made from, as a key under which it is kept.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtime_core::backend::{Source, find_in_path, included_files};

use super::compiler::{FIRMWARE, FLAGS, KERNEL_FLAGS};
use super::entry::Parameter;
use super::{tool, uart};
use crate::boards::Board;

/// Raised when the same inputs make another image.
const FORMAT: u32 = 2;
/// Variables that name further folders and files to the compiler.
const VARIABLES: [&str; 6] =
    ["CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "DEPENDENCIES_OUTPUT"];
/// The only flags that may be followed by other text; any other could name a file.
const PLAIN_FLAGS: [&str; 7] = ["-O", "-D", "-U", "-f", "-m", "-W", "-std="];
/// Plain flags that name files nevertheless.
const FILE_FLAGS: [&str; 7] = ["-fplugin", "-fprofile", "-fauto", "-fdump", "-Wl,", "-Wa,", "-Wp,"];

/// A hash of everything that an image depends on.
pub(super) type Key = [u8; 32];

/// The key of an image in this process, where the toolchain stays the same; `None` if the files that it is made from cannot be
/// known.
pub(super) fn of_image(
    board: &Board,
    source: &Source<'_>,
    code: &[u8],
    parameters: &[Parameter],
) -> Option<Key> {
    let files = match source.format {
        "c" => included_by_kernel(board, source, code)?,
        _ => String::new(),
    };
    // Some options are those of a run, not of the image.
    let options: Vec<_> = source
        .options
        .iter()
        .filter(|(name, _)| !["calls", "functions", "executed"].contains(name))
        .collect();
    let description = format!(
        "{} {:?} {options:?} {parameters:?} {FLAGS:?} {KERNEL_FLAGS:?} {files}",
        source.format, source.path
    );
    Some(hash(&[&of_firmware(board)?, description.as_bytes(), code]))
}

/// The key of a board's firmware; `None` if the files that the user's driver is made from cannot be known.
pub(super) fn of_firmware(board: &Board) -> Option<Key> {
    let texts = FIRMWARE.map(|(name, text)| format!("{name}\n{text}\n")).concat();
    let version = env!("CARGO_PKG_VERSION");
    let description = format!("{FORMAT} {version} {board:?} {FLAGS:?}");
    let driver = uart::own_driver(board);
    // It is compiled as a copy, beside the firmware.
    let files = match driver.is_empty() {
        true => String::new(),
        false => included(&driver, None, &board_folders(board)?)?,
    };
    Some(hash(&[description.as_bytes(), texts.as_bytes(), &driver, files.as_bytes()]))
}

/// The key on disk: as in this process, with the toolchain.
pub(super) fn on_disk(key: &Key, toolchain: &str, part: &str) -> Key {
    hash(&[key, toolchain.as_bytes(), part.as_bytes()])
}

/// Identifies the compiler and the C library of a board; `None` if they cannot be found.
pub(super) fn toolchain(board: &Board, folder: &Path) -> Option<String> {
    let name = format!("{}gcc", board.toolchain.prefix);
    let compiler = find_in_path(&name)?;
    let mut command = Command::new(&compiler);
    // A file of the library's package, whose time is that of its version.
    command.arg("-print-file-name=picolibc.specs");
    let (succeeded, library) = tool::run(&mut command, folder).ok()?;
    let library = succeeded.then(|| PathBuf::from(library.trim()))?;
    Some(format!("{}\n{}", state(&compiler)?, state(&library)?))
}

/// Path, size and time of a file, which change with its content.
fn state(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let metadata = fs::metadata(&path).ok()?;
    Some(format!("{path:?} {} {}.{:09}", metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

/// Describes the files that a kernel includes; `None` if they cannot be known.
fn included_by_kernel(board: &Board, source: &Source<'_>, code: &[u8]) -> Option<String> {
    let own_flags = folders(source.options.texts("flags").flat_map(str::split_whitespace))?;
    let folders = [board_folders(board)?, own_flags].concat();
    let own = Path::new(source.path).parent().filter(|folder| folder.is_absolute());
    included(code, own, &folders)
}

/// Describes the files that code includes; `None` if they cannot be known.
fn included(code: &[u8], own: Option<&Path>, folders: &[PathBuf]) -> Option<String> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if VARIABLES.iter().any(is_set) {
        return None;
    }
    included_files(&String::from_utf8_lossy(code), own, folders)
}

/// The folders of the board file's flags; `None` if one of these may name a file.
fn board_folders(board: &Board) -> Option<Vec<PathBuf>> {
    folders(board.toolchain.flags.iter().map(String::as_str))
}

/// The folders that flags add to the search for included files; `None` if a flag may name a file.
fn folders<'f>(flags: impl Iterator<Item = &'f str>) -> Option<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for flag in flags {
        let folder = flag.strip_prefix("-I").map(PathBuf::from);
        let is_plain = PLAIN_FLAGS.iter().any(|plain| flag.starts_with(plain))
            && !FILE_FLAGS.iter().any(|file| flag.starts_with(file))
            || flag == "-g";
        match folder {
            Some(folder) if folder.is_absolute() => folders.push(folder),
            None if is_plain => {}
            _ => return None,
        }
    }
    Some(folders)
}

/// A hash of several texts, which keeps their borders.
fn hash(parts: &[&[u8]]) -> Key {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_may_name_files_are_recognised() {
        let folders = |flags: &'static str| folders(flags.split_whitespace());
        assert_eq!(folders("-O3 -DN=4 -fno-inline -Wextra -std=c99 -g"), Some(Vec::new()));
        assert_eq!(folders("-I/a -O1 -I/b"), Some(vec!["/a".into(), "/b".into()]));
        for flag in ["-include x.h", "-Ix", "-I /a", "@file", "-L/a", "other.c", "-Wl,-Tx", "-fplugin=x"] {
            assert_eq!(folders(flag), None, "{flag}");
        }
    }

    #[test]
    fn the_borders_of_parts_matter() {
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
    }
}
