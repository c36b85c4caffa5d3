//! Checks that binary code is complete before the driver reads it: `cuModuleLoadDataEx` takes an address without a length.
//!
//! The parser of the fat-binary header is handwritten: no crate parses that format.

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use runtime_core::{Error, ErrorKind, Result};

/// Magic number of a fat binary.
const FATBIN_MAGIC: u32 = 0xba55_ed50;

/// Checks that a cubin is complete.
///
/// # Errors
/// `CompileFailed` if it is not.
pub(crate) fn check_cubin(code: &[u8]) -> Result<()> {
    if is_complete_elf(code).unwrap_or(false) {
        return Ok(());
    }
    Err(invalid("not a complete cubin (an ELF file); pass the whole file, or its actual format"))
}

/// Checks that a fat binary is complete.
///
/// # Errors
/// `CompileFailed` if it is not.
pub(crate) fn check_fatbin(code: &[u8]) -> Result<()> {
    let is_complete = || {
        let header_bytes = u64::from(u16_at(code, 6)?);
        let total = header_bytes.checked_add(u64_at(code, 8)?)?;
        Some(u32_at(code, 0)? == FATBIN_MAGIC && header_bytes >= 16 && total <= code.len() as u64)
    };
    if is_complete().unwrap_or(false) {
        return Ok(());
    }
    Err(invalid("not a complete fat binary; pass the whole file, or its actual format"))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::CompileFailed, format!("the code is {what}"))
}

/// Whether both tables of headers and all sections lie within the file.
fn is_complete_elf(code: &[u8]) -> object::read::Result<bool> {
    let header = FileHeader64::<LittleEndian>::parse(code)?;
    let endian = header.endian()?;
    let (sections, programs) = (header.e_shoff(endian), header.e_phoff(endian));
    // `object` takes a table at offset 0 for none, whatever its length, and looks for no entries anywhere.
    let is_inside = |table: u64, count: u16| table <= code.len() as u64 && (table != 0 || count == 0);
    if !is_inside(sections, header.e_shnum(endian)) || !is_inside(programs, header.e_phnum(endian)) {
        return Ok(false);
    }
    header.program_headers(endian, code)?;
    for section in header.section_headers(endian, code)? {
        section.data(endian, code)?;
    }
    Ok(true)
}

fn bytes<const N: usize>(code: &[u8], at: usize) -> Option<[u8; N]> {
    code.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(code: &[u8], at: usize) -> Option<u16> {
    bytes(code, at).map(u16::from_le_bytes)
}

fn u32_at(code: &[u8], at: usize) -> Option<u32> {
    bytes(code, at).map(u32::from_le_bytes)
}

fn u64_at(code: &[u8], at: usize) -> Option<u64> {
    bytes(code, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf() -> Vec<u8> {
        let mut code = vec![0; 64 + 64 + 16];
        code[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        code[40..48].copy_from_slice(&64_u64.to_le_bytes());
        code[58..60].copy_from_slice(&64_u16.to_le_bytes());
        code[60..62].copy_from_slice(&1_u16.to_le_bytes());
        code[64 + 24..64 + 32].copy_from_slice(&128_u64.to_le_bytes());
        code[64 + 32..64 + 40].copy_from_slice(&16_u64.to_le_bytes());
        code
    }

    #[test]
    fn every_truncated_cubin_is_rejected() {
        let code = elf();
        check_cubin(&code).unwrap();
        for length in 0..code.len() {
            assert_eq!(
                check_cubin(&code[..length]).unwrap_err().kind(),
                ErrorKind::CompileFailed,
                "{length}"
            );
        }
    }

    #[test]
    fn overflowing_offsets_are_rejected() {
        for at in [32, 40, 64 + 24, 64 + 32] {
            let mut code = elf();
            code[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            assert!(check_cubin(&code).is_err(), "{at}");
        }
    }

    #[test]
    fn a_fat_binary_shorter_than_its_header_says_is_rejected() {
        let mut code = vec![0; 32];
        code[..4].copy_from_slice(&FATBIN_MAGIC.to_le_bytes());
        code[6..8].copy_from_slice(&16_u16.to_le_bytes());
        code[8..16].copy_from_slice(&16_u64.to_le_bytes());
        check_fatbin(&code).unwrap();
        assert!(check_fatbin(&code[..31]).is_err());
        code[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(check_fatbin(&code).is_err());
    }
}
