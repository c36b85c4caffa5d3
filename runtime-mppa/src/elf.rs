//! The architecture of a program for the processing elements.

use runtime_core::{Error, Result};

use crate::config::Arch;

const MAGIC: &[u8] = b"\x7fELF";
/// Offset of the class of a file, and the class of 64-bit files.
const CLASS: (usize, u8) = (4, 2);
/// Offset of the byte of the flags that names the core, the second one, in 64-bit and in 32-bit files.
const CORE: (usize, usize) = (49, 37);
/// The bits of that byte that count.
const CORE_MASK: u8 = 0x7f;
/// The core of each architecture.
const ARCHITECTURES: [(u8, &str); 3] = [(0x13, "kv3-1"), (0x23, "kv3-2"), (0x14, "kv4-1")];

/// A program for the processing elements of an architecture.
#[derive(Clone, Debug)]
pub struct Elf(Vec<u8>);

impl Elf {
    /// Takes an ELF file.
    ///
    /// # Errors
    /// `InvalidArgument` for another file, or another architecture.
    pub fn new(code: Vec<u8>, arch: Arch) -> Result<Self> {
        check(&code, arch).map(|()| Self(code))
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Checks that a program is for the architecture of the device.
///
/// # Errors
/// `InvalidArgument`, which names both.
pub(crate) fn check(code: &[u8], arch: Arch) -> Result<()> {
    if !code.starts_with(MAGIC) {
        return Err(Error::invalid("the program is not an ELF file; link it with Kalray's compiler"));
    }
    let offset = if code.get(CLASS.0) == Some(&CLASS.1) { CORE.0 } else { CORE.1 };
    let core = code
        .get(offset)
        .map(|byte| byte & CORE_MASK)
        .ok_or_else(|| Error::invalid("the program's ELF header is cut off"))?;
    let name = ARCHITECTURES.iter().find(|(byte, _)| *byte == core).map(|(_, name)| *name);
    match name {
        Some(name) if name == arch.name() => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "the program is for {name}, the device is {}; compile it with -march={0}, or set option \"arch\"",
            arch.name()
        ))),
        None => Err(Error::invalid(format!(
            "the program's ELF flags (core {core:#04x}) name no known architecture; compile it with -march={}",
            arch.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(class: u8, core: u8) -> Vec<u8> {
        let mut code = vec![0; 64];
        code[..4].copy_from_slice(MAGIC);
        code[4] = class;
        code[if class == 2 { 49 } else { 37 }] = core;
        code
    }

    #[test]
    fn the_architecture_is_that_of_the_device() {
        for class in [1, 2] {
            check(&program(class, 0x13), Arch::Kv31).unwrap();
            check(&program(class, 0x23), Arch::Kv32).unwrap();
        }
        for (core, arch, words) in [
            (0x13, Arch::Kv32, ["for kv3-1", "is kv3-2"]),
            (0x23, Arch::Kv31, ["for kv3-2", "is kv3-1"]),
            (0x14, Arch::Kv32, ["for kv4-1", "is kv3-2"]),
            (0x3e, Arch::Kv32, ["0x3e", "-march=kv3-2"]),
        ] {
            let error = check(&program(2, core), arch).unwrap_err();
            assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
        }
        assert!(check(b"#!/bin/sh", Arch::Kv32).is_err());
        assert!(check(&program(2, 0x23)[..40], Arch::Kv32).unwrap_err().message().contains("cut off"));
    }
}
