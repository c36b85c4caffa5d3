//! Where CUDA toolkits are installed, and the libraries and programs in them.

use std::path::{Path, PathBuf};

use runtime_core::backend::{find_in_path, find_library, find_program, trusted_variable};

/// Environment variables with the folder of a toolkit. A process with elevated privileges ignores them.
const VARIABLES: [&str; 2] = ["CUDA_HOME", "CUDA_PATH"];
/// Default installation folder.
const DEFAULT: &str = "/usr/local/cuda";
/// Where a toolkit has its libraries.
const LIBRARY_FOLDERS: [&str; 4] = ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];

/// The folders of toolkits: those that are set, then the default one.
pub(crate) fn folders() -> Vec<PathBuf> {
    let set = VARIABLES.into_iter().filter_map(trusted_variable).map(PathBuf::from);
    set.chain([PathBuf::from(DEFAULT)]).filter(|toolkit| toolkit.is_absolute()).collect()
}

/// The libraries of these names that exist: those in the loader's paths, then those of the toolkits.
pub(crate) fn library_files(names: &[&str]) -> Vec<PathBuf> {
    let mut files: Vec<_> = names.iter().filter_map(|name| find_library(Path::new(name))).collect();
    let folders = folders();
    let folders = folders.iter().flat_map(|toolkit| LIBRARY_FOLDERS.map(|folder| toolkit.join(folder)));
    files.extend(folders.flat_map(|folder| files_in(&folder, names)));
    files
}

/// The files of these names in a folder.
pub(crate) fn files_in(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect()
}

/// A program in the folders of `PATH`, then in those of the toolkits.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let installed = || find_program(name, folders().into_iter().map(|toolkit| toolkit.join("bin")));
    find_in_path(name).or_else(installed)
}
