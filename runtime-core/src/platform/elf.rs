//! Checks ELF libraries and reads their manifest section, without loading them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64, ET_DYN, FileHeader64, PT_LOAD, SHT_DYNSYM, STT_OBJECT,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, ReadCache, ReadRef};

use super::open_regular_file;
use crate::abi::{ENTRY_SYMBOL, MANIFEST_SECTION};
use crate::{Error, ErrorKind, Result};

/// Machine numbers in ELF headers, and the architecture names in target triples.
const MACHINES: [(u16, &str); 5] =
    [(EM_X86_64, "x86_64"), (EM_AARCH64, "aarch64"), (EM_RISCV, "riscv64"), (EM_386, "x86"), (EM_ARM, "arm")];

/// Reads the manifest section of a shared library for this machine.
///
/// # Errors
/// `Io` if the file cannot be read; `AbiMismatch` if it is not a shared library for this machine, is
/// truncated, or lacks the section.
pub(crate) fn manifest_section(path: &Path) -> Result<Vec<u8>> {
    let data = &ReadCache::new(open(path)?);
    let (header, endian) = library_header(data)?;
    let sections = header.sections(endian, data).map_err(broken)?;
    if let Ok(symbols) = sections.symbols(endian, data, SHT_DYNSYM)
        && symbols.iter().any(|symbol| {
            let named = symbol.name(endian, symbols.strings()) == Ok(ENTRY_SYMBOL.as_bytes());
            named && symbol.st_type() == STT_OBJECT && !symbol.is_undefined(endian)
        })
    {
        return Err(mismatch(format!("`{ENTRY_SYMBOL}` is a variable, not a function")));
    }
    let Some((_, section)) = sections.section_by_name(endian, MANIFEST_SECTION.as_bytes()) else {
        return Err(mismatch(format!(
            "not a backend of this project: it has no section {MANIFEST_SECTION}; if it is meant to be one, export it with `export_backend!`"
        )));
    };
    section.data(endian, data).map(<[u8]>::to_vec).map_err(broken)
}

/// Checks that a file is a complete shared library for this machine. The system would map a truncated one,
/// and accessing it would kill the process.
///
/// # Errors
/// `Io` if the file cannot be read; otherwise like [`check_library`].
pub(crate) fn check_library_file(path: &Path) -> Result<()> {
    library_header(&ReadCache::new(open(path)?)).map(drop)
}

/// Checks the bytes of a shared library, like [`check_library_file`].
///
/// # Errors
/// `AbiMismatch` if it is not a shared library for this machine, or is truncated.
pub(crate) fn check_library(code: &[u8]) -> Result<()> {
    library_header(code).map(drop)
}

/// Opens a file. Reports a file that opens but cannot be read as an I/O error, not as a damaged library.
fn open(path: &Path) -> Result<File> {
    let file = open_regular_file(path)?;
    match file.read_exact_at(&mut [0], 0) {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(error.into()),
        _ => Ok(file),
    }
}

fn broken(error: object::Error) -> Error {
    mismatch(format!("damaged or truncated file ({error}); build or copy it again"))
}

/// The header of a complete shared library for this machine.
fn library_header<'data, R: ReadRef<'data>>(
    data: R,
) -> Result<(&'data FileHeader64<Endianness>, Endianness)> {
    check_identity(data)?;
    let header = FileHeader64::<Endianness>::parse(data).map_err(broken)?;
    let endian = header.endian().map_err(broken)?;
    if header.e_type(endian) != ET_DYN {
        return Err(mismatch(
            "not a shared library; link it with `-shared` (Rust: `crate-type = [\"cdylib\"]`)",
        ));
    }
    check_complete(header, endian, data)?;
    Ok((header, endian))
}

/// Checks the first bytes, which identify the file type and machine.
fn check_identity<'data, R: ReadRef<'data>>(data: R) -> Result<()> {
    let start = match data.read_bytes_at(0, 20) {
        Ok(start) if start[..4] == *b"\x7fELF" => start,
        _ => return Err(mismatch("not an ELF file")),
    };
    let little = start[5] == 1;
    let machine = if little {
        u16::from_le_bytes([start[18], start[19]])
    } else {
        u16::from_be_bytes([start[18], start[19]])
    };
    let name = MACHINES.iter().find(|(number, _)| *number == machine).map(|(_, name)| *name);
    let ours = std::env::consts::ARCH;
    if name != Some(ours) && MACHINES.iter().any(|(_, name)| *name == ours) {
        let theirs = name.map_or_else(|| format!("machine {machine}"), str::to_owned);
        return Err(mismatch(format!(
            "built for {theirs}, this program runs on {ours}; use the build for {ours}"
        )));
    }
    if start[4] != 2 || little != cfg!(target_endian = "little") {
        return Err(mismatch(format!("built for another word size or byte order; use the build for {ours}")));
    }
    Ok(())
}

/// Checks that the file contains every segment in its headers: accessing a truncated mapping raises `SIGBUS`.
fn check_complete<'data, R: ReadRef<'data>>(
    header: &FileHeader64<Endianness>,
    endian: Endianness,
    data: R,
) -> Result<()> {
    let truncated = |what: String| mismatch(format!("truncated file: {what}; build or copy it again"));
    let segments = header.program_headers(endian, data).map_err(|error| truncated(error.to_string()))?;
    let promised = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD)
        .map(|segment| segment.p_offset(endian).saturating_add(segment.p_filesz(endian)))
        .max()
        .unwrap_or(0);
    let bytes = data.len().map_err(|()| truncated("its length is unknown".to_owned()))?;
    if promised > bytes {
        return Err(truncated(format!("it has {bytes} of at least {promised} bytes")));
    }
    Ok(())
}

fn mismatch(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::AbiMismatch, message)
}
