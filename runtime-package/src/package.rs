//! A package: its manifest, and the files that it names.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufReader, Cursor};
use std::path::Path;

use runtime_core::backend::{did_you_mean, open_regular_file};
use runtime_core::{CodeFormat, Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

use crate::archive::{Archive, Reader};
use crate::manifest::{CodeFile, MANIFEST, MAX_BYTES, Manifest, PackagedKernel};

/// An opened package. Its code is read, and checked for damage, when it is asked for.
pub struct Package {
    archive: Archive,
    manifest: Manifest,
    /// Its path, for messages.
    path: String,
}

impl fmt::Debug for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Package")
            .field("path", &self.path)
            .field("manifest", &self.manifest)
            .finish_non_exhaustive()
    }
}

impl Package {
    /// Opens a file, which stays open. Its content is read when it is needed.
    ///
    /// # Errors
    /// `Io`; as [`Package::from_bytes`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = open_regular_file(path).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read {name}: {error}")).with_source(error)
        })?;
        Self::read(Box::new(BufReader::new(file)), name)
    }

    /// Opens a package in memory, such as `include_bytes!("kernels.rtpkg").as_slice()`, which is not copied.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no package, or a damaged one; `Unsupported` if it needs a newer program.
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self> {
        Self::read(Box::new(Cursor::new(bytes.into())), "the package".to_owned())
    }

    fn read(reader: Box<dyn Reader>, path: String) -> Result<Self> {
        let read = || {
            let archive = Archive::open(reader)?;
            let manifest = Manifest::parse(&archive.read(MANIFEST, MAX_BYTES)?)?;
            Ok((archive, manifest))
        };
        let (archive, manifest) = read().map_err(|error: Error| in_package(&error, &path))?;
        Ok(Self { archive, manifest, path })
    }

    /// The whole description.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The kernel files in it.
    #[must_use]
    pub fn kernels(&self) -> &[PackagedKernel] {
        &self.manifest.kernels
    }

    /// Finds a kernel file by its name.
    ///
    /// # Errors
    /// `NotFound`, with the names that exist.
    pub fn kernel(&self, name: &str) -> Result<&PackagedKernel> {
        self.kernels().iter().find(|kernel| kernel.name == name).ok_or_else(|| {
            let names: Vec<_> = self.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
            let message = format!("{} has no kernel \"{name}\"; {}", self.path, did_you_mean(name, &names));
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Reads a file of the package, and checks it for damage.
    ///
    /// # Errors
    /// `InvalidArgument` if it is missing or not what the manifest describes; `Io`.
    pub fn read_file(&self, file: &CodeFile) -> Result<Vec<u8>> {
        let read = || {
            let content = self.archive.read(&file.name, file.bytes)?;
            match content.len() as u64 == file.bytes && sha256(&content) == file.sha256 {
                true => Ok(content),
                false => Err(Error::invalid(format!(
                    "file \"{}\" is damaged: its size or its SHA-256 is not that of the manifest",
                    file.name
                ))),
            }
        };
        read().map_err(|error| in_package(&error, &self.path))
    }

    /// Reads all code, and checks it for damage. Returns the number of files.
    ///
    /// # Errors
    /// As [`Package::read_file`], for the first such file.
    pub fn verify(&self) -> Result<usize> {
        let mut count = 0;
        for file in self.kernels().iter().flat_map(PackagedKernel::files) {
            self.read_file(file)?;
            count += 1;
        }
        Ok(count)
    }

    /// The path, for messages.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// The checksum of a file, as in the manifest.
pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An error about the content of a package.
fn in_package(error: &Error, path: &str) -> Error {
    // A missing file is damage, too: whoever asks for a name that is missing is told by `kernel`.
    let kind = if error.kind() == ErrorKind::NotFound { ErrorKind::InvalidArgument } else { error.kind() };
    Error::new(kind, format!("{path}: {}", error.message()))
}

/// Whether code of this format is portable.
pub(crate) fn is_portable(format: &CodeFormat) -> bool {
    *format == CodeFormat::WGSL
}
