//! What the loader was told of drivers, for the error that it has found none.

use std::path::{Path, PathBuf};

/// Where loaders look for drivers, unless the environment says otherwise.
const FOLDER: &str = "/etc/OpenCL/vendors";
/// Names another folder, or one driver.
const VARIABLE: &str = "OCL_ICD_VENDORS";

/// A sentence about the drivers that the loader was told of.
pub(crate) fn explain() -> String {
    let place = std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(FOLDER), PathBuf::from);
    match drivers(&place) {
        Some(drivers) if !drivers.is_empty() => format!(
            "{} names {}: see that they load (`ldd`), and what `clinfo -l` says",
            place.display(),
            drivers.join(", ")
        ),
        _ => format!(
            "{} names no driver; install one (Debian, for the processor: pocl-opencl-icd) or set {VARIABLE}",
            place.display()
        ),
    }
}

/// The libraries that the files of a folder name, in order.
fn drivers(folder: &Path) -> Option<Vec<String>> {
    if folder.is_file() {
        return Some(vec![folder.display().to_string()]);
    }
    let files = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "icd")).collect();
    files.sort();
    let library =
        |file: &PathBuf| Some(std::fs::read_to_string(file).ok()?.lines().next()?.trim().to_owned());
    Some(files.iter().filter_map(library).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_of_a_folder_are_told() {
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
