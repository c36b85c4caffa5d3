//! Checks that binary code is complete before the driver reads it: `cuModuleLoadDataEx` takes an address without a length.
//!
//! The parser of the fat-binary header is handwritten: no crate parses that format.

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use runtime_core::{Error, ErrorKind, Result};

use super::architecture::{Architecture, Variant};

/// Magic number of a fat binary.
const FATBIN_MAGIC: u32 = 0xba55_ed50;
/// Size of the fixed fields of an entry's header in a fat binary.
const FATBIN_ENTRY_BYTES: usize = 32;
/// Kinds of entries of a fat binary.
const FATBIN_PTX: u16 = 1;
const FATBIN_ELF: u16 = 2;
/// `EI_ABIVERSION` from which on the layout of a cubin's flags is the second one.
const ABI_VERSION_2: u8 = 8;
/// Flags of code for one architecture only, in both layouts (LLVM's `EF_CUDA_ACCELERATORS_V1` and `EF_CUDA_ACCELERATORS`).
const ACCELERATED_1: u32 = 0x800;
const ACCELERATED_2: u32 = 0x8;
/// Section with properties of the code, and the property of code for one architecture only (seen in the output of NVRTC
/// 13.5, which no longer sets the flag).
const COMPATIBILITY_SECTION: &[u8] = b".nv.compat";
const COMPATIBILITY_SPECIFIC: u8 = 9;
/// Format of a property with a value of a size of its own.
const COMPATIBILITY_SIZED: u8 = 4;

/// A part of a fat binary, and the compute capability that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FatbinEntry {
    Binary { compute: u32 },
    Ptx { compute: u32 },
}

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

/// The architecture of a cubin; `None` if it is not complete.
pub(crate) fn cubin_architecture(code: &[u8]) -> Option<Architecture> {
    if !is_complete_elf(code).unwrap_or(false) {
        return None;
    }
    let header = FileHeader64::<LittleEndian>::parse(code).ok()?;
    let endian = header.endian().ok()?;
    let flags = header.e_flags(endian);
    let (compute, is_specific) = match header.e_ident.abi_version >= ABI_VERSION_2 {
        true => {
            (flags >> 8 & 0xff, flags & ACCELERATED_2 != 0 || has_specific_property(code).unwrap_or(false))
        }
        false => (flags & 0xff, flags & ACCELERATED_1 != 0),
    };
    let variant = if is_specific { Variant::Specific } else { Variant::Portable };
    Some(Architecture { compute, variant, is_virtual: false })
}

/// Whether the section of properties says that the code is for one architecture only; `None` without that section.
fn has_specific_property(code: &[u8]) -> Option<bool> {
    let header = FileHeader64::<LittleEndian>::parse(code).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, code).ok()?;
    let (_, section) = sections.section_by_name(endian, COMPATIBILITY_SECTION)?;
    specific_property(section.data(endian, code).ok()?)
}

/// The property of code for one architecture only, in a list of properties.
fn specific_property(mut rest: &[u8]) -> Option<bool> {
    while let Some((&[format, property, low, high], behind)) = rest.split_first_chunk() {
        let value = u16::from_le_bytes([low, high]);
        if property == COMPATIBILITY_SPECIFIC {
            return Some(value != 0);
        }
        rest = if format == COMPATIBILITY_SIZED { behind.get(usize::from(value)..)? } else { behind };
    }
    None
}

/// The complete parts of a fat binary.
pub(crate) fn fatbin_entries(code: &[u8]) -> Vec<FatbinEntry> {
    let mut entries = Vec::new();
    if check_fatbin(code).is_err() {
        return entries;
    }
    let mut at = usize::from(u16_at(code, 6).unwrap_or(0));
    while let Some((entry, bytes)) = fatbin_entry(code, at) {
        entries.extend(entry);
        at += bytes;
    }
    entries
}

/// The entry at an offset, if it is of a known kind, and its size; `None` where there is none.
fn fatbin_entry(code: &[u8], at: usize) -> Option<(Option<FatbinEntry>, usize)> {
    let header_bytes = usize::try_from(u32_at(code, at.checked_add(4)?)?).ok()?;
    let payload_bytes = usize::try_from(u64_at(code, at.checked_add(8)?)?).ok()?;
    let compute = u32_at(code, at.checked_add(28)?)?;
    let bytes = header_bytes.checked_add(payload_bytes)?;
    if header_bytes < FATBIN_ENTRY_BYTES || at.checked_add(bytes)? > code.len() {
        return None;
    }
    let entry = match u16_at(code, at)? {
        FATBIN_PTX => Some(FatbinEntry::Ptx { compute }),
        FATBIN_ELF => Some(FatbinEntry::Binary { compute }),
        _ => None,
    };
    Some((entry, bytes))
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

    #[test]
    fn both_layouts_of_flags_have_the_architecture() {
        // Flags of NVRTC 11.8, 12.9 and 13.5.
        let cases = [
            (7, 0x50_0550, 80, Variant::Portable),
            (7, 0x5a_055a, 90, Variant::Portable),
            (7, 0x5a_0d5a, 90, Variant::Specific),
            (8, 0x600_5a04, 90, Variant::Portable),
            (8, 0x600_6402, 100, Variant::Portable),
            (8, 0x600_640a, 100, Variant::Specific),
            (8, 0x600_7902, 121, Variant::Portable),
        ];
        for (version, flags, compute, variant) in cases {
            let mut code = elf();
            code[8] = version;
            code[48..52].copy_from_slice(&u32::to_le_bytes(flags));
            let found = cubin_architecture(&code).map(|found| (found.compute, found.variant));
            assert_eq!(found, Some((compute, variant)), "{flags:#x}");
            assert_eq!(cubin_architecture(&code[..code.len() - 1]), None);
        }
    }

    #[test]
    fn a_property_says_that_code_is_for_one_architecture_only() {
        // The sections of NVRTC 13.5 for sm_90 and sm_90a: the first property differs.
        let rest = [
            2, 12, 0, 0, 2, 2, 1, 0, 3, 13, 1, 1, 2, 3, 0, 0, 4, 11, 8, 0, 0, 9, 1, 0, 0, 0, 0, 0, 3, 14, 64,
            4,
        ];
        let first = |value: u8| [&[2, 9, value, 0][..], &rest].concat();
        assert_eq!(specific_property(&first(0)), Some(false));
        assert_eq!(specific_property(&first(1)), Some(true));
        assert_eq!(specific_property(&rest), None, "the bytes of a sized property are skipped");
        assert_eq!(specific_property(&[&rest[..], &[2, 9, 1, 0]].concat()), Some(true));
        assert_eq!(specific_property(&[4, 11, 255, 255, 2, 9, 1, 0]), None, "not complete");
    }

    /// A fat binary with these kinds and architectures, and payloads of 8 bytes.
    fn fatbin(entries: &[(u16, u32)]) -> Vec<u8> {
        let mut code = vec![0; 16];
        for (kind, compute) in entries {
            let mut entry = [0; 72];
            entry[..2].copy_from_slice(&kind.to_le_bytes());
            entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
            entry[8..16].copy_from_slice(&8_u64.to_le_bytes());
            entry[28..32].copy_from_slice(&compute.to_le_bytes());
            code.extend(entry);
        }
        let payload = code.len() as u64 - 16;
        code[..4].copy_from_slice(&FATBIN_MAGIC.to_le_bytes());
        code[6..8].copy_from_slice(&16_u16.to_le_bytes());
        code[8..16].copy_from_slice(&payload.to_le_bytes());
        code
    }

    #[test]
    fn the_parts_of_a_fat_binary_are_found() {
        let code = fatbin(&[(2, 80), (9, 85), (2, 90), (1, 90)]);
        let (binary, ptx) =
            (|compute| FatbinEntry::Binary { compute }, |compute| FatbinEntry::Ptx { compute });
        assert_eq!(fatbin_entries(&code), [binary(80), binary(90), ptx(90)]);
        for length in 0..code.len() {
            assert_eq!(fatbin_entries(&code[..length]), [], "{length}");
        }
        for at in [16 + 4, 16 + 8] {
            for hostile in [0, u32::MAX] {
                let mut code = code.clone();
                code[at..at + 4].copy_from_slice(&hostile.to_le_bytes());
                assert!(fatbin_entries(&code).len() <= 4, "{at}");
            }
        }
        let mut endless = code;
        endless[16 + 4..16 + 16].fill(0);
        assert_eq!(fatbin_entries(&endless), [], "an entry of no bytes");
    }
}
