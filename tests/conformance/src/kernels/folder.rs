//! The kernels of the suite in code that the suite does not bring: `--kernels DIR`. What each of them does, and its arguments, is
//! in `docs/backends.md`.

use std::path::{Path, PathBuf};

use runtime_core::{DeviceInfo, Error, ErrorKind, Result, suggest};

use super::{ALL, FormatKernels};

/// Names a folder of kernels to the processes that the suite starts.
pub(crate) const FOLDER_VARIABLE: &str = "RUNTIME_CONFORMANCE_KERNELS";
/// The file with all kernels of a format.
const MODULE_STEM: &str = "suite";
/// The file with code that a device must refuse; without it, a line of text.
const BROKEN_STEM: &str = "broken";

/// The kernels of one folder.
#[derive(Debug)]
pub(crate) struct KernelFolder {
    pub(crate) folder: PathBuf,
    formats: Vec<FormatKernels>,
}

impl KernelFolder {
    /// Reads the files `suite.FORMAT`, `broken.FORMAT` and `KERNEL.FORMAT` of a folder. They are never freed: a run has one
    /// folder.
    ///
    /// # Errors
    /// `Io` for what cannot be read; `InvalidArgument` for a folder without kernels, and for a file of a format whose stem is
    /// no kernel.
    pub(crate) fn read(folder: &Path) -> Result<&'static Self> {
        let cannot = |path: &Path, error: &std::io::Error| {
            Error::new(ErrorKind::Io, format!("--kernels: {}: {error}", path.display()))
        };
        // A worker of the suite may be started elsewhere.
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
                "--kernels: no file suite.FORMAT (or, for embedded devices, KERNEL.FORMAT) in {}; docs/backends.md says what \
                 they hold",
                folder.display()
            )));
        }
        Ok(Box::leak(Box::new(Self { folder, formats })))
    }

    /// What the process that started this one was given.
    pub(crate) fn from_environment() -> Option<&'static Self> {
        Self::read(Path::new(&std::env::var_os(FOLDER_VARIABLE)?)).ok()
    }

    /// The first of a device's formats, in its order of preference, of which there are files.
    pub(super) fn choose(&'static self, device: &DeviceInfo) -> Option<&'static FormatKernels> {
        device.formats.iter().find_map(|format| self.formats.iter().find(|kernels| kernels.format == *format))
    }

    /// Whether there are files in a format of the device.
    pub(crate) fn serves(&'static self, device: &DeviceInfo) -> bool {
        self.choose(device).is_some()
    }

    /// Why nothing of it was used by devices that take these formats.
    pub(crate) fn unused(&self, taken: &[String]) -> String {
        let mine: Vec<_> = self.formats.iter().map(|kernels| kernels.format).collect();
        let taken: Vec<_> = taken.iter().map(String::as_str).collect();
        let hint = mine.first().map(|format| suggest(format, &taken)).unwrap_or_default();
        format!("--kernels {}: no tested device takes {}; {hint}", self.folder.display(), mine.join(" or "),)
    }
}

/// Groups files by their format.
fn formats(files: Vec<(String, String, Vec<u8>)>) -> Vec<FormatKernels> {
    let mut formats: Vec<FormatKernels> = Vec::new();
    for (stem, format, code) in files {
        let at = formats.iter().position(|kernels| kernels.format == format).unwrap_or_else(|| {
            formats.push(FormatKernels::given(format.leak()));
            formats.len() - 1
        });
        let (kernels, code) = (&mut formats[at], &*code.leak());
        match stem.as_str() {
            MODULE_STEM => kernels.source = code,
            BROKEN_STEM => kernels.broken = code,
            _ => kernels.programs.push((stem.leak(), code)),
        }
    }
    // Broken code alone is no kernel.
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
        assert_eq!(names, ["a", "b.2"], "broken code alone is no kernel");
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
