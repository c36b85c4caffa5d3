//! What the driver's compiler has made, kept on disk from one program to the next: a file per device, which the driver
//! alone understands. Before the driver's data it has a digest of them, of the driver and of the device, so that a file of
//! another driver, or a damaged one, is not used, and is written again. Nothing that fails here fails anything else.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use runtime_core::backend::{cache_folder, keep_file};
use sha2::{Digest, Sha256};

use crate::driver::Facts;

/// Bytes of the digest.
const SEAL_BYTES: usize = 32;
/// What is beyond this is not kept.
const MOST_BYTES: usize = 32 << 20;

/// The file of a device.
#[derive(Debug)]
pub(crate) struct CacheFile {
    path: PathBuf,
    /// The device and its driver, in words.
    key: String,
}

impl CacheFile {
    /// The file of a device in the user's cache folder; `None` if there is no such folder.
    pub(crate) fn of(facts: &Facts) -> Option<Self> {
        Some(Self::within(&cache_folder("vulkan")?, facts))
    }

    fn within(folder: &Path, facts: &Facts) -> Self {
        let (id, name, version) = &facts.driver;
        let package = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
        let key = format!("{package} {id} {name} {version} {:?} {:?}", facts.version, facts.cache_uuid);
        let uuid: String = facts.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{:08x}-{:08x}-{uuid}.pipelines", facts.vendor_id, facts.device_id);
        Self { path: folder.join(name), key }
    }

    /// The driver's data; nothing where there are none of this driver.
    pub(crate) fn read(&self) -> Vec<u8> {
        self.try_read().unwrap_or_default()
    }

    fn try_read(&self) -> Option<Vec<u8>> {
        let mut file = Vec::new();
        let most = (SEAL_BYTES + MOST_BYTES) as u64;
        fs::File::open(&self.path).ok()?.take(most).read_to_end(&mut file).ok()?;
        let (seal, data) = file.split_first_chunk::<SEAL_BYTES>()?;
        (self.seal(data) == *seal).then(|| data.to_vec())
    }

    /// Keeps the driver's data; what cannot be kept is made again by the next program. Where they have become too many,
    /// that one starts anew, with no more than it uses itself.
    pub(crate) fn write(&self, data: &[u8]) {
        let _ = match data.len() <= MOST_BYTES {
            true => keep_file(&self.path, &[&self.seal(data), data]),
            false => fs::remove_file(&self.path),
        };
    }

    fn seal(&self, data: &[u8]) -> [u8; SEAL_BYTES] {
        let mut digest = Sha256::new();
        digest.update((self.key.len() as u64).to_le_bytes());
        digest.update(&self.key);
        digest.update(data);
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_come_back_to_the_same_driver_alone() {
        let folder = tempfile::tempdir().unwrap();
        let facts = |version: &str| Facts {
            driver: (1, "driver".to_owned(), version.to_owned()),
            ..Facts::default()
        };
        let file = |version| CacheFile::within(folder.path(), &facts(version));
        assert!(file("1").read().is_empty(), "not there");
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
        assert!(file("2").read().is_empty(), "cut off");
        file("2").write(&vec![0; MOST_BYTES + 1]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "too large: it starts anew");
        file("2").write(b"again");
        assert_eq!(file("2").read(), b"again");
    }
}
