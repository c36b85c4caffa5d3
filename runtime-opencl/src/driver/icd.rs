//! The drivers registered with the ICD loader, for the error message when none can be used.

use std::path::{Path, PathBuf};

use runtime_core::backend::{open_regular_file, trusted_variable};

/// Where loaders look for `.icd` files by default.
const FOLDER: &str = "/etc/OpenCL/vendors";
/// Environment variable with another folder, or one driver.
const VARIABLE: &str = "OCL_ICD_VENDORS";

/// A hint about the registered drivers.
pub(crate) fn explain() -> String {
    let path = trusted_variable(VARIABLE).map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    match drivers(&path) {
        Some(drivers) if !drivers.is_empty() => format!(
            "{} registers {}: check that they load (`ldd`), and see `clinfo -l`",
            path.display(),
            drivers.join(", ")
        ),
        _ => format!(
            "{} registers no driver; install one (Debian, for CPUs: pocl-opencl-icd) or set {VARIABLE}",
            path.display()
        ),
    }
}

/// The libraries named by the `.icd` files of a folder, in order.
fn drivers(folder: &Path) -> Option<Vec<String>> {
    if folder.is_file() {
        return Some(vec![folder.display().to_string()]);
    }
    let files = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "icd")).collect();
    files.sort();
    let library = |file: &PathBuf| {
        Some(std::io::read_to_string(open_regular_file(file).ok()?).ok()?.lines().next()?.trim().to_owned())
    };
    Some(files.iter().filter_map(library).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_of_a_folder_are_listed() {
        let folder = std::env::temp_dir().join(format!("vendors-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("b.icd"), "libb.so\n").unwrap();
        std::fs::write(folder.join("a.icd"), "/opt/liba.so").unwrap();
        std::fs::write(folder.join("notes.txt"), "nothing").unwrap();
        assert_eq!(drivers(&folder).unwrap(), ["/opt/liba.so", "libb.so"]);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(drivers(&folder), None);
    }
}
