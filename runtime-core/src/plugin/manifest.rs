//! Reads and checks the manifest of a backend library, before the library is loaded.

use std::mem::offset_of;
use std::path::Path;

use crate::abi::{self, Manifest};
use crate::platform;
use crate::{Error, ErrorKind, Result};

/// The decoded manifest of a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LibraryManifest {
    pub(crate) name: String,
    pub(crate) minor: u16,
    /// Target triple of the library.
    pub(crate) target: String,
}

/// Reads and checks the manifest of the library at `path`.
///
/// # Errors
/// `Io` if the file cannot be read; `AbiMismatch` if the library is incompatible with this program.
pub(crate) fn read(path: &Path) -> Result<LibraryManifest> {
    parse(&platform::manifest_section(path)?)
}

fn parse(section: &[u8]) -> Result<LibraryManifest> {
    let abi_mismatch = |message: String| Error::new(ErrorKind::AbiMismatch, message);
    if section.len() < size_of::<Manifest>() {
        return Err(abi_mismatch(format!(
            "the manifest has {} bytes; expected at least {}",
            section.len(),
            size_of::<Manifest>()
        )));
    }
    let magic = u64::from_ne_bytes(field(section, offset_of!(Manifest, magic)));
    if magic != abi::MAGIC {
        return Err(abi_mismatch(format!(
            "the manifest has the wrong magic {magic:#018x}: not a backend of this project"
        )));
    }
    let major = u16::from_ne_bytes(field(section, offset_of!(Manifest, major)));
    if major != abi::MAJOR {
        return Err(abi_mismatch(format!(
            "built for ABI major {major}, this program has {}; rebuild the backend",
            abi::MAJOR
        )));
    }
    let manifest = LibraryManifest {
        name: text(&field::<32>(section, offset_of!(Manifest, name))),
        minor: u16::from_ne_bytes(field(section, offset_of!(Manifest, minor))),
        target: text(&field::<64>(section, offset_of!(Manifest, target))),
    };
    check_name(&manifest.name)?;
    let arch = manifest.target.split('-').next().unwrap_or_default();
    if !arch.is_empty() && arch != std::env::consts::ARCH {
        return Err(abi_mismatch(format!(
            "built for {}, this program runs on {}",
            manifest.target,
            std::env::consts::ARCH
        )));
    }
    Ok(manifest)
}

/// Checks that `name` is valid in a device string.
///
/// # Errors
/// `AbiMismatch` for an invalid name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(valid) {
        return Err(Error::new(
            ErrorKind::AbiMismatch,
            format!("invalid backend name {name:?}; use only a-z, 0-9, _ and -"),
        ));
    }
    Ok(())
}

fn field<const N: usize>(section: &[u8], offset: usize) -> [u8; N] {
    std::array::from_fn(|i| section[offset + i])
}

fn text(padded: &[u8]) -> String {
    let end = padded.iter().position(|&byte| byte == 0).unwrap_or(padded.len());
    String::from_utf8_lossy(&padded[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(magic: u64, major: u16, name: &str, target: &str) -> Vec<u8> {
        let mut bytes = magic.to_ne_bytes().to_vec();
        bytes.extend(112u32.to_ne_bytes());
        bytes.extend(major.to_ne_bytes());
        bytes.extend(3u16.to_ne_bytes());
        bytes.extend(name.bytes().chain(std::iter::repeat(0)).take(32));
        bytes.extend(target.bytes().chain(std::iter::repeat(0)).take(64));
        bytes
    }

    fn here() -> String {
        format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
    }

    #[test]
    fn bytes_after_the_manifest_are_ignored() {
        let mut bytes = section(abi::MAGIC, abi::MAJOR, "null", &here());
        bytes.extend([0xff; 16]);
        assert_eq!(parse(&bytes).unwrap(), LibraryManifest { name: "null".into(), minor: 3, target: here() });
    }

    #[test]
    fn an_incompatible_manifest_is_rejected_with_the_reason() {
        let reason = |bytes: &[u8]| {
            let error = parse(bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AbiMismatch);
            error.message().to_owned()
        };
        assert!(reason(&section(abi::MAGIC, 1, "null", &here())[..100]).contains("100 bytes"));
        assert!(reason(&section(7, 1, "null", &here())).contains("wrong magic"));
        assert!(reason(&section(abi::MAGIC, 9, "null", &here())).contains("ABI major 9"));
        assert!(reason(&section(abi::MAGIC, 1, "nu:ll", &here())).contains("\"nu:ll\""));
        assert!(reason(&section(abi::MAGIC, 1, "", &here())).contains("\"\""));
        assert!(reason(&section(abi::MAGIC, 1, "null", "pdp11-dec-unix")).contains("pdp11-dec-unix"));
    }

    #[test]
    fn each_kind_of_invalid_file_has_its_own_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libruntime_x.so");
        assert_eq!(read(&path).unwrap_err().kind(), ErrorKind::Io);
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(&path).unwrap_err().message(), "not an ELF file");
        std::fs::write(&path, "#!/bin/sh\necho this is not a library\n").unwrap();
        assert_eq!(read(&path).unwrap_err().message(), "not an ELF file");
        let executable = std::fs::read("/proc/self/exe").unwrap();
        let mut foreign = executable.clone();
        foreign[18] = 0xb7 - if cfg!(target_arch = "aarch64") { 0xb7 - 62 } else { 0 };
        std::fs::write(&path, &foreign[..4096]).unwrap();
        assert!(read(&path).unwrap_err().message().starts_with("built for "));
        std::fs::write(&path, &executable[..4096]).unwrap();
        assert!(read(&path).unwrap_err().message().starts_with("truncated file: it has 4096 of"));
        std::fs::write(&path, &executable).unwrap();
        assert!(read(&path).unwrap_err().message().contains("no section .runtime_manifest"));
    }
}
