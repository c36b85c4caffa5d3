//! The Vulkan drivers and layers installed on this machine, and the stub driver.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Folders of the loader's manifests.
const FOLDERS: [&str; 3] = ["/usr/share/vulkan", "/etc/vulkan", "/usr/local/share/vulkan"];

/// A driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The manifest that the loader reads.
    pub manifest: PathBuf,
    /// The library: a path, or a name that the dynamic linker resolves.
    pub library: String,
}

/// Mesa's CPU driver.
///
/// # Errors
/// It is not installed.
pub fn lavapipe() -> Result<Driver, String> {
    let manifests = FOLDERS.iter().flat_map(|folder| files(&Path::new(folder).join("icd.d")));
    let mut found = manifests.filter(|path| name(path).starts_with("lvp_icd")).filter_map(|manifest| {
        let library = library(&manifest)?;
        Some(Driver { manifest, library })
    });
    found
        .next()
        .ok_or_else(|| "lavapipe is not installed; on Debian: mesa-vulkan-drivers libvulkan1".to_owned())
}

/// Checks that the Khronos validation layer is installed.
///
/// # Errors
/// It is not.
pub fn validation_layer() -> Result<(), String> {
    let mut manifests = FOLDERS.iter().flat_map(|folder| files(&Path::new(folder).join("explicit_layer.d")));
    let found = manifests.any(|path| name(&path) == "VkLayer_khronos_validation.json");
    if found {
        Ok(())
    } else {
        Err("the validation layer is not installed; on Debian: vulkan-validationlayers".to_owned())
    }
}

/// The stub driver, which cargo builds for these tests; writes a manifest for it to `folder`.
///
/// # Errors
/// It is not built, or its manifest cannot be written.
pub fn install_stub(folder: &Path) -> Result<Driver, String> {
    let library = built_file("libvulkan_stub.so")?.display().to_string();
    let manifest = folder.join("stub_icd.json");
    let text = serde_json::json!({
        "file_format_version": "1.0.0",
        "ICD": { "library_path": library, "api_version": "1.3.0" },
    });
    std::fs::write(&manifest, text.to_string()).map_err(|error| error.to_string())?;
    Ok(Driver { manifest, library })
}

/// A file that cargo built, in the folder of this executable or the one above.
///
/// # Errors
/// It does not exist.
pub fn built_file(file: &str) -> Result<PathBuf, String> {
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
    // A path with a folder is relative to the manifest; a bare name is not.
    let is_relative = path.contains('/') && !path.starts_with('/');
    let folder = manifest.parent()?;
    Some(if is_relative { folder.join(path).display().to_string() } else { path.to_owned() })
}
