//! The kernels of the suite from a folder (`--kernels DIR`), for formats in which the suite has no sources.
//! `docs/backends.md` specifies what each kernel does, and its arguments.

use std::path::{Path, PathBuf};

use runtime_core::backend::did_you_mean;
use runtime_core::{DeviceInfo, Error, ErrorKind, Result};

use super::{ALL, FormatKernels};

/// Passes the folder of kernels to child processes.
pub(crate) const FOLDER_VARIABLE: &str = "RUNTIME_CONFORMANCE_KERNELS";
/// Stem of the file with all kernels of a format.
const MODULE_STEM: &str = "suite";
/// Stem of the file with invalid code; by default, a line of text is used.
const BROKEN_STEM: &str = "broken";

/// The kernels of one folder.
#[derive(Debug)]
pub(crate) struct KernelFolder {
    pub(crate) path: PathBuf,
    formats: Vec<FormatKernels>,
}

impl KernelFolder {
    /// Reads the files `suite.FORMAT`, `broken.FORMAT` and `KERNEL.FORMAT` of a folder. They are never freed: a run has at
    /// most one folder.
    ///
    /// # Errors
    /// `Io` if a file cannot be read; `InvalidArgument` for a folder without kernels.
    pub(crate) fn read(folder: &Path) -> Result<&'static Self> {
        let cannot = |path: &Path, error: &std::io::Error| {
            Error::new(ErrorKind::Io, format!("--kernels: {}: {error}", path.display()))
        };
        // Worker processes may run in another folder.
        let folder = folder.canonicalize().map_err(|error| cannot(folder, &error))?;
        let entries = std::fs::read_dir(&folder).map_err(|error| cannot(&folder, &error))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| cannot(&folder, &error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some((stem, format)) = name.split_once('.').filter(|(stem, _)| !stem.is_empty()) else {
                continue;
            };
            if [MODULE_STEM, BROKEN_STEM].contains(&stem) || ALL.contains(&stem) {
                let code = std::fs::read(&path).map_err(|error| cannot(&path, &error))?;
                files.push((stem.to_owned(), format.to_owned(), code));
            }
        }
        files.sort();
        let formats = formats(files);
        if formats.is_empty() {
            return Err(Error::invalid(format!(
                "--kernels: no file suite.FORMAT (or, for embedded devices, KERNEL.FORMAT) in {}; see docs/backends.md for \
                 their contents",
                folder.display()
            )));
        }
        Ok(Box::leak(Box::new(Self { path: folder, formats })))
    }

    /// The folder that the parent process passed on.
    pub(crate) fn from_environment() -> Option<&'static Self> {
        Self::read(Path::new(&std::env::var_os(FOLDER_VARIABLE)?)).ok()
    }

    /// The kernels in the first format of the device for which there are files.
    pub(super) fn choose(&'static self, device: &DeviceInfo) -> Option<&'static FormatKernels> {
        device
            .formats
            .iter()
            .find_map(|format| self.formats.iter().find(|kernels| *format == *kernels.format))
    }

    /// Whether there are files in a format of the device.
    pub(crate) fn supports(&'static self, device: &DeviceInfo) -> bool {
        self.choose(device).is_some()
    }

    /// The error for a folder in no format of the tested devices, which accept `taken`.
    pub(crate) fn unused(&self, taken: &[&str]) -> String {
        let mine: Vec<_> = self.formats.iter().map(|kernels| kernels.format).collect();
        let hint = mine.first().map(|format| did_you_mean(format, taken)).unwrap_or_default();
        format!("--kernels {}: no tested device accepts {}; {hint}", self.path.display(), mine.join(" or "),)
    }
}

/// Groups files by their format.
fn formats(files: Vec<(String, String, Vec<u8>)>) -> Vec<FormatKernels> {
    let mut formats: Vec<FormatKernels> = Vec::new();
    for (stem, format, code) in files {
        let at = formats.iter().position(|kernels| kernels.format == format).unwrap_or_else(|| {
            formats.push(FormatKernels::from_folder(format.leak()));
            formats.len() - 1
        });
        let (kernels, code) = (&mut formats[at], &*code.leak());
        match stem.as_str() {
            MODULE_STEM => kernels.source = code,
            BROKEN_STEM => kernels.broken = code,
            _ => kernels.programs.push((stem.leak(), code)),
        }
    }
    // A format with only broken code has no kernels.
    formats.retain(|kernels| !kernels.source.is_empty() || !kernels.programs.is_empty());
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_grouped_by_format() {
        let file = |stem: &str, format: &str| (stem.to_owned(), format.to_owned(), stem.as_bytes().to_vec());
        let files =
            vec![file("broken", "a"), file("suite", "a"), file("scale_f32", "b.2"), file("broken", "c")];
        let formats = formats(files);
        let names: Vec<_> = formats.iter().map(|kernels| kernels.format).collect();
        assert_eq!(names, ["a", "b.2"], "a format with only broken code has no kernels");
        assert_eq!((formats[0].source, formats[0].broken), (&b"suite"[..], &b"broken"[..]));
        assert_eq!(formats[1].programs, [("scale_f32", &b"scale_f32"[..])]);
    }

    #[test]
    fn a_folder_without_kernels_is_an_error() {
        let folder = std::env::temp_dir().join(format!("runtime-conformance-given-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let error = KernelFolder::read(&folder).unwrap_err().to_string();
        std::fs::write(folder.join("README.md"), "no kernel").unwrap();
        let other = KernelFolder::read(&folder).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("suite.FORMAT"), "{error}");
        assert_eq!(other.kind(), ErrorKind::InvalidArgument, "{other}");
        assert_eq!(KernelFolder::read(&folder).unwrap_err().kind(), ErrorKind::Io, "it is gone");
    }
}
