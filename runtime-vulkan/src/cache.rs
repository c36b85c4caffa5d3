//! The on-disk cache of compiled pipelines: one file per device, which holds a digest and the driver's opaque data.
//!
//! The digest covers the driver, the device and the data, so a file that is damaged or was written by another driver version is
//! ignored and then replaced. An error in this module only means that nothing is cached.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use runtime_core::AtomicFile;
use runtime_core::backend::cache_folder;
use sha2::{Digest, Sha256};

use crate::driver::{DeviceCaps, DriverInfo};

/// Length of the digest (SHA-256).
const DIGEST_BYTES: usize = 32;
/// Longest data that are kept.
const MAX_BYTES: usize = 32 << 20;

/// The cache file of a device.
#[derive(Debug)]
pub(crate) struct CacheFile {
    path: PathBuf,
    /// Identifies the device and its driver.
    key: String,
}

impl CacheFile {
    /// The file of a device in the user's cache folder; `None` without one.
    pub(crate) fn of(caps: &DeviceCaps) -> Option<Self> {
        Some(Self::within(&cache_folder("vulkan")?, caps))
    }

    fn within(folder: &Path, caps: &DeviceCaps) -> Self {
        let DriverInfo { id, name, version } = &caps.driver;
        let package = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
        let key = format!("{package} {id} {name} {version} {:?} {:?}", caps.version, caps.cache_uuid);
        let uuid: String = caps.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{:08x}-{:08x}-{uuid}.pipelines", caps.vendor_id, caps.device_id);
        Self { path: folder.join(name), key }
    }

    /// The driver's data; empty without a valid file of this driver.
    pub(crate) fn read(&self) -> Vec<u8> {
        self.try_read().unwrap_or_default()
    }

    fn try_read(&self) -> Option<Vec<u8>> {
        let mut file = Vec::new();
        let most = (DIGEST_BYTES + MAX_BYTES) as u64;
        fs::File::open(&self.path).ok()?.take(most).read_to_end(&mut file).ok()?;
        let (digest, data) = file.split_first_chunk::<DIGEST_BYTES>()?;
        (self.digest(data) == *digest).then(|| data.to_vec())
    }

    /// Saves the driver's data. If they have grown too large, removes the file instead, so that the next program starts
    /// with an empty cache.
    pub(crate) fn write(&self, data: &[u8]) {
        let _ = match data.len() <= MAX_BYTES {
            true => AtomicFile::new(&self.path).and_then(|file| file.replace(&[&self.digest(data), data])),
            false => fs::remove_file(&self.path),
        };
    }

    fn digest(&self, data: &[u8]) -> [u8; DIGEST_BYTES] {
        let mut hasher = Sha256::new();
        hasher.update((self.key.len() as u64).to_le_bytes());
        hasher.update(&self.key);
        hasher.update(data);
        hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_driver_reads_its_data_back() {
        let folder = tempfile::tempdir().unwrap();
        let caps = |version: &str| DeviceCaps {
            driver: DriverInfo { id: 1, name: "driver".to_owned(), version: version.to_owned() },
            ..DeviceCaps::default()
        };
        let file = |version| CacheFile::within(folder.path(), &caps(version));
        assert!(file("1").read().is_empty(), "no file");
        file("1").write(b"compiled");
        assert_eq!(file("1").read(), b"compiled");
        assert!(file("2").read().is_empty(), "of another driver");
        file("2").write(b"other");
        assert_eq!((file("1").read().len(), &*file("2").read()), (0, &b"other"[..]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a file per device");
        let path = file("2").path;
        let mut damaged = fs::read(&path).unwrap();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(file("2").read().is_empty(), "damaged");
        fs::write(&path, "short").unwrap();
        assert!(file("2").read().is_empty(), "truncated");
        file("2").write(&vec![0; MAX_BYTES + 1]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "too large: the file is removed");
        file("2").write(b"again");
        assert_eq!(file("2").read(), b"again");
    }
}
