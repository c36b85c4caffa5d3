//! The content of a package as files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runtime_core::{Error, ErrorKind, Result};

use crate::manifest::{MANIFEST, PackagedKernel};
use crate::package::Package;

impl Package {
    /// Writes the manifest and the code to a folder, which is created, or empty. Returns the files. Every name stays in the
    /// folder; what the manifest does not name is not written.
    ///
    /// # Errors
    /// `InvalidArgument` for a folder that is not empty, or a damaged package; `Io`.
    pub fn extract(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let io = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| {
                Error::new(ErrorKind::Io, format!("cannot write {path}: {error}")).with_source(error)
            }
        };
        fs::create_dir_all(folder).map_err(io(folder))?;
        // In an empty folder, no link leads out of it.
        if fs::read_dir(folder).map_err(io(folder))?.next().is_some() {
            let message = format!("{} is not empty; give a new folder", folder.display());
            return Err(Error::invalid(message));
        }
        let write = |name: &str, content: &[u8]| {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(io(parent))?;
            fs::write(&path, content).map_err(io(&path))?;
            Ok::<_, Error>(path)
        };
        let mut written = Vec::new();
        for file in self.kernels().iter().flat_map(PackagedKernel::files) {
            written.push(write(&file.name, &self.read_file(file)?)?);
        }
        written.push(write(MANIFEST, self.manifest().to_json()?.as_bytes())?);
        Ok(written)
    }
}
