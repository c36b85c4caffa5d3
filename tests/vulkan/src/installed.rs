//! What of Vulkan this machine has.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Where Debian and others put what the loader reads.
const FOLDERS: [&str; 3] = ["/usr/share/vulkan", "/etc/vulkan", "/usr/local/share/vulkan"];

/// A driver: its manifest, which the loader reads, and its library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The manifest.
    pub manifest: PathBuf,
    /// The library: a path, or a name that the system's loader finds.
    pub library: String,
}

/// Mesa's driver for CPUs.
///
/// # Errors
/// It is not installed.
pub fn lavapipe() -> Result<Driver, String> {
    let manifests = FOLDERS.iter().flat_map(|folder| files(&Path::new(folder).join("icd.d")));
    let mut found = manifests.filter(|path| name(path).starts_with("lvp_icd")).filter_map(|manifest| {
        let library = library(&manifest)?;
        Some(Driver { manifest, library })
    });
    found.next().ok_or_else(|| "there is no lavapipe; on Debian: mesa-vulkan-drivers libvulkan1".to_owned())
}

/// Whether the Khronos validation layer is installed.
///
/// # Errors
/// It is not.
pub fn layer() -> Result<(), String> {
    let mut manifests = FOLDERS.iter().flat_map(|folder| files(&Path::new(folder).join("explicit_layer.d")));
    let found = manifests.any(|path| name(&path) == "VkLayer_khronos_validation.json");
    if found {
        Ok(())
    } else {
        Err("there is no validation layer; on Debian: vulkan-validationlayers".to_owned())
    }
}

/// The stub, which cargo builds for the tests of this package, with a manifest in `folder`.
///
/// # Errors
/// It is not there, or its manifest cannot be written.
pub fn stub(folder: &Path) -> Result<Driver, String> {
    let library = beside("libvulkan_stub.so")?.display().to_string();
    let manifest = folder.join("stub_icd.json");
    let text = serde_json::json!({
        "file_format_version": "1.0.0",
        "ICD": { "library_path": library, "api_version": "1.3.0" },
    });
    std::fs::write(&manifest, text.to_string()).map_err(|error| error.to_string())?;
    Ok(Driver { manifest, library })
}

/// A file that cargo built: beside this program, or in the folder above.
///
/// # Errors
/// It is not there.
pub fn beside(file: &str) -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    let folders = executable.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(file)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{file} is not built; run `cargo build --workspace`"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn library(manifest: &Path) -> Option<String> {
    let text = std::fs::read_to_string(manifest).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let path = value["ICD"]["library_path"].as_str()?;
    // A path with folders is relative to the manifest, a mere name is not.
    let is_relative = path.contains('/') && !path.starts_with('/');
    let folder = manifest.parent()?;
    Some(if is_relative { folder.join(path).display().to_string() } else { path.to_owned() })
}
