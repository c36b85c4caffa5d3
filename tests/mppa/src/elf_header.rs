//! The header of a whole program, for tools that do not execute it.

/// The processing elements of a program, as its header names them.
pub const KV3_1: u8 = 0x13;
/// As [`KV3_1`].
pub const KV3_2: u8 = 0x23;
/// Where they are in a header.
pub(crate) const CORE: usize = 49;

/// The header of an ELF file of 64 bits.
#[must_use]
pub fn elf_header(core: u8) -> [u8; 64] {
    let mut code = [0; 64];
    code[..5].copy_from_slice(b"\x7fELF\x02");
    code[CORE] = core;
    code
}
