//! The manifest that core reads from a library before loading it.

use std::env::consts::{ARCH, OS};

use crate::abi::{self, Manifest};

/// The manifest of a backend named `name` (at most 31 bytes) for the current compilation target.
///
/// # Panics
/// If the name is too long; in a constant, this is a compile-time error.
#[must_use]
pub const fn manifest(name: &str) -> Manifest {
    assert!(name.len() < 32, "a backend name has at most 31 bytes");
    #[expect(clippy::cast_possible_truncation, reason = "112 bytes")]
    let struct_size = size_of::<Manifest>() as u32;
    let (name, _) = append([0; 32], 0, name);
    Manifest { magic: abi::MAGIC, struct_size, major: abi::MAJOR, minor: abi::MINOR, name, target: target() }
}

/// The target triple, e.g. `x86_64-unknown-linux-gnu`.
const fn target() -> [u8; 64] {
    let parts = [
        ARCH,
        "-unknown-",
        OS,
        if cfg!(target_env = "gnu") {
            "-gnu"
        } else if cfg!(target_env = "musl") {
            "-musl"
        } else {
            ""
        },
    ];
    let (mut text, mut at, mut part) = ([0; 64], 0, 0);
    while part < parts.len() {
        (text, at) = append(text, at, parts[part]);
        part += 1;
    }
    text
}

const fn append<const N: usize>(mut text: [u8; N], at: usize, more: &str) -> ([u8; N], usize) {
    let mut i = 0;
    while i < more.len() {
        text[at + i] = more.as_bytes()[i];
        i += 1;
    }
    (text, at + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_holds_name_and_target() {
        const MANIFEST: Manifest = manifest("null");
        assert_eq!(&MANIFEST.name[..5], b"null\0");
        let target = std::str::from_utf8(&MANIFEST.target).unwrap().trim_end_matches('\0');
        #[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
        assert_eq!(target, "x86_64-unknown-linux-gnu");
        assert!(target.starts_with(ARCH));
    }
}
