//! The manifest section of an ELF file, read without loading the file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_RISCV, EM_X86_64, ET_DYN, FileHeader64, PT_LOAD, SHT_DYNSYM, STT_OBJECT,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{Endianness, ReadCache, ReadRef};

use crate::abi::{ENTRY_SYMBOL, MANIFEST_SECTION};
use crate::{Error, ErrorKind, Result};

/// Machines by their number in an ELF header and their name in a target triple.
const MACHINES: [(u16, &str); 5] =
    [(EM_X86_64, "x86_64"), (EM_AARCH64, "aarch64"), (EM_RISCV, "riscv64"), (EM_386, "x86"), (EM_ARM, "arm")];

/// Reads the manifest section of a shared library that fits this process.
///
/// # Errors
/// `Io` if the file cannot be read; `AbiMismatch` for a file of another kind or machine, a truncated one, or one
/// without the section.
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
        return Err(mismatch(format!("`{ENTRY_SYMBOL}` is a variable of it, and not a function")));
    }
    let Some((_, section)) = sections.section_by_name(endian, MANIFEST_SECTION.as_bytes()) else {
        return Err(mismatch(format!(
            "not a backend of this project: it has no section {MANIFEST_SECTION}; if it should be one, export it with `export_backend!`"
        )));
    };
    section.data(endian, data).map(<[u8]>::to_vec).map_err(broken)
}

/// Checks that a file is a shared library that this process can load, and whole: the system maps a truncated one, and the
/// process ends when it is touched.
///
/// # Errors
/// `Io` if the file cannot be read; else as [`check_library`].
pub(crate) fn check_library_file(path: &Path) -> Result<()> {
    library_header(&ReadCache::new(open(path)?)).map(drop)
}

/// Checks the bytes of a shared library, as [`check_library_file`].
///
/// # Errors
/// `AbiMismatch` for a file of another kind or machine, or a truncated one.
pub(crate) fn check_library(code: &[u8]) -> Result<()> {
    library_header(code).map(drop)
}

/// Opens a file; one that opens and cannot be read is no broken library.
fn open(path: &Path) -> Result<File> {
    let file = File::open(path)?;
    match file.read_exact_at(&mut [0], 0) {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(error.into()),
        _ => Ok(file),
    }
}

fn broken(error: object::Error) -> Error {
    mismatch(format!("damaged or truncated file ({error}); build or copy it again"))
}

/// The header of a shared library that fits this process, and is whole.
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

/// Checks the first bytes, which say what the file is, whatever the rest holds.
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
            "built for {theirs}, this program runs on {ours}; take that for {ours}"
        )));
    }
    if start[4] != 2 || little != cfg!(target_endian = "little") {
        return Err(mismatch(format!("built for another word size or byte order; take that for {ours}")));
    }
    Ok(())
}

/// Checks that the file holds all that its headers promise: mapping a truncated one would end in `SIGBUS`.
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
