//! Reads images.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf::{EM_ARM, EM_RISCV, ET_EXEC};
use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SectionKind, SymbolKind,
};
use runtime_core::code::ImageSizes;
use runtime_core::{Error, ErrorKind, Result};

use super::tool;
use crate::boards::{Board, LinkKind, Processor, Region};

/// Bytes of the mailbox.
pub(crate) const MAILBOX_BYTES: u64 = 2184;

/// Bytes to write to the target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Segment {
    const fn overlaps(&self, address: u64, bytes: u64) -> bool {
        address < self.address.saturating_add(self.bytes.len() as u64)
            && self.address < address.saturating_add(bytes)
    }
}

/// The addresses that the protocol needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbols {
    pub(crate) start: u64,
    /// Where the firmware waits for the host.
    pub(crate) park: u64,
    pub(crate) resume: u64,
    pub(crate) mailbox: u64,
}

/// A checked image for a board.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) segments: Vec<Segment>,
    pub(crate) symbols: Symbols,
    pub(crate) sizes: ImageSizes,
    file: PathBuf,
    addr2line: String,
    flash: Region,
}

impl Image {
    /// Checks an ELF image against a board; `file` is a copy of it on disk.
    ///
    /// # Errors
    /// `InvalidArgument` for a file that is no image of the board's architecture or lacks the protocol; `OutOfResources`, with
    /// the figures, if it does not fit.
    pub(crate) fn parse(board: &Board, elf: &[u8], file: &Path) -> Result<Self> {
        let refused = |reason: &str| Error::invalid(format!("the image is not for {}: {reason}", board.name));
        let object = object::File::parse(elf).map_err(|error| refused(&error.to_string()))?;
        check_architecture(board, &object).map_err(|reason| refused(&reason))?;
        let mut image = Self {
            segments: Vec::new(),
            symbols: symbols(board.link, &object).map_err(|reason| refused(&reason))?,
            sizes: sizes(&object),
            file: file.to_owned(),
            addr2line: format!("{}addr2line", board.toolchain.prefix),
            flash: board.flash,
        };
        for address in [&mut image.symbols.start, &mut image.symbols.park, &mut image.symbols.resume] {
            *address = board.processor.code_address(*address);
            if ![board.flash, board.ram].iter().any(|region| region.contains(*address, 2)) {
                let reason = format!("its code at {address:#x} is neither in flash nor in RAM");
                return Err(refused(&reason));
            }
        }
        if !board.ram.contains(image.symbols.mailbox, MAILBOX_BYTES) {
            return Err(refused(&format!("its mailbox, at {:#x}, is not in RAM", image.symbols.mailbox)));
        }
        image.segments = segments(board, elf, &object)?;
        Ok(image)
    }

    /// An image of these segments, without a file.
    #[cfg(test)]
    pub(crate) fn with(board: &Board, symbols: Symbols, segments: &[(u64, &[u8])]) -> Self {
        let segment = |&(address, bytes): &(u64, &[u8])| Segment { address, bytes: bytes.to_vec() };
        Self {
            segments: segments.iter().map(segment).collect(),
            symbols,
            sizes: ImageSizes::default(),
            file: PathBuf::new(),
            addr2line: String::new(),
            flash: board.flash,
        }
    }

    /// Its file on disk.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the address is in the code of the image.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.flash.contains(address, 1)
    }

    /// The largest part of flash that the image leaves free.
    pub(crate) fn free_flash(&self) -> Range<u64> {
        let mut used: Vec<_> =
            self.segments.iter().filter(|segment| self.contains(segment.address)).collect();
        used.sort_unstable_by_key(|segment| segment.address);
        let begins = used.iter().map(|segment| segment.address).chain([self.flash.end()]);
        let ends = used.iter().map(|segment| segment.address + segment.bytes.len() as u64);
        let gaps = [self.flash.origin].into_iter().chain(ends).zip(begins).map(|(begin, end)| begin..end);
        gaps.max_by_key(|gap| gap.end.saturating_sub(gap.start)).unwrap_or_default()
    }

    /// The function and the line of an address, or the address alone if they are unknown.
    pub(crate) fn locate(&self, address: u64) -> String {
        let found = self.addr2line(address).unwrap_or_default();
        let mut lines = found.lines().map(str::trim);
        match (lines.next(), lines.next()) {
            (Some(function), Some(line)) if function != "??" => match line.rsplit('/').next() {
                Some(line) if !line.starts_with("??") => format!("`{function}` ({line}) at {address:#x}"),
                _ => format!("`{function}` at {address:#x}"),
            },
            _ => format!("unknown code at {address:#x}"),
        }
    }

    /// Removes the folder of its file.
    pub(super) fn remove_files(&self) -> std::io::Result<()> {
        self.file.parent().map_or(Ok(()), std::fs::remove_dir_all)
    }

    fn addr2line(&self, address: u64) -> Option<String> {
        let mut command = Command::new(&self.addr2line);
        command.arg("-f").arg("-e").arg(&self.file).arg(format!("{address:#x}"));
        let (succeeded, text) = tool::run(&mut command, self.file.parent()?).ok()?;
        succeeded.then_some(text)
    }
}

fn check_architecture(board: &Board, object: &object::File<'_>) -> Result<(), String> {
    let (is_64, machine, kind) = match object {
        object::File::Elf32(elf) => {
            let header = elf.elf_header();
            (false, header.e_machine.get(elf.endian()), header.e_type.get(elf.endian()))
        }
        object::File::Elf64(elf) => {
            let header = elf.elf_header();
            (true, header.e_machine.get(elf.endian()), header.e_type.get(elf.endian()))
        }
        _ => return Err("it is not an ELF file".to_owned()),
    };
    let (wanted, wants_64) = match board.processor {
        Processor::Riscv64 => (EM_RISCV, true),
        Processor::Riscv32 => (EM_RISCV, false),
        Processor::CortexM => (EM_ARM, false),
    };
    if (machine, is_64) != (wanted, wants_64) {
        let bits = |is_64| if is_64 { 64 } else { 32 };
        return Err(format!(
            "it is for ELF machine {machine}, {} bits; the board has machine {wanted}, {} bits",
            bits(is_64),
            bits(wants_64)
        ));
    }
    if kind == ET_EXEC { Ok(()) } else { Err(format!("its ELF type is {kind}, not an executable")) }
}

fn symbols(link: LinkKind, object: &object::File<'_>) -> Result<Symbols, String> {
    let address = |name: &str| {
        let found = object.symbols().find(|symbol| symbol.name() == Ok(name));
        found
            .map(|symbol| symbol.address())
            .ok_or_else(|| format!("it lacks the symbol {name} of the protocol in docs/embedded.md"))
    };
    let (park, resume) = match link {
        LinkKind::Debugger => ("runtime_park", "runtime_resume"),
        LinkKind::Uart => ("runtime_serve", "runtime_serve"),
    };
    Ok(Symbols {
        start: object.entry(),
        park: address(park)?,
        resume: address(resume)?,
        mailbox: address("runtime_mailbox")?,
    })
}

/// The segments by their load addresses.
fn segments(board: &Board, elf: &[u8], object: &object::File<'_>) -> Result<Vec<Segment>> {
    let too_large = |address: u64, bytes: u64| {
        Error::new(
            ErrorKind::OutOfResources,
            format!(
                "the image does not fit {}: it needs {bytes} bytes at {address:#x}; flash is {:#x} to {:#x}, RAM {:#x} to {:#x}",
                board.name,
                board.flash.origin,
                board.flash.end(),
                board.ram.origin,
                board.ram.end()
            ),
        )
    };
    let mut segments = Vec::new();
    for segment in object.segments() {
        let (address, bytes) = (segment.address(), segment.size());
        if ![board.flash, board.ram].iter().any(|region| region.contains(address, bytes)) {
            return Err(too_large(address, bytes));
        }
        let (offset, length) = segment.file_range();
        if length == 0 {
            continue;
        }
        let load = load_address(object, offset, address).unwrap_or(address);
        if ![board.flash, board.ram].iter().any(|region| region.contains(load, length)) {
            return Err(too_large(load, length));
        }
        let data = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
        let data = data.and_then(|(offset, length)| elf.get(offset..offset.checked_add(length)?));
        let data = data.ok_or_else(|| Error::invalid("the image is truncated"))?;
        // This also limits what an image of many segments takes.
        if let Some(other) = segments.iter().find(|other: &&Segment| other.overlaps(load, length)) {
            return Err(Error::invalid(format!(
                "the image's segments {:#x}..{:#x} and {load:#x}..{:#x} overlap",
                other.address,
                other.address.saturating_add(other.bytes.len() as u64),
                load.saturating_add(length)
            )));
        }
        segments.push(Segment { address: load, bytes: data.to_vec() });
    }
    Ok(segments)
}

/// The physical address of the segment at a file offset with a virtual address.
fn load_address(object: &object::File<'_>, offset: u64, address: u64) -> Option<u64> {
    use object::read::elf::ProgramHeader as _;
    match object {
        object::File::Elf32(elf) => {
            let endian = elf.endian();
            let header = elf.elf_program_headers().iter().find(|header| {
                u64::from(header.p_offset(endian)) == offset
                    && u64::from(header.p_vaddr(endian)) == address
                    && header.p_type(endian) == object::elf::PT_LOAD
                    && header.p_filesz(endian) > 0
            })?;
            Some(u64::from(header.p_paddr(endian)))
        }
        object::File::Elf64(elf) => {
            let endian = elf.endian();
            let header = elf.elf_program_headers().iter().find(|header| {
                header.p_offset(endian) == offset
                    && header.p_vaddr(endian) == address
                    && header.p_type(endian) == object::elf::PT_LOAD
                    && header.p_filesz(endian) > 0
            })?;
            Some(header.p_paddr(endian))
        }
        _ => None,
    }
}

fn sizes(object: &object::File<'_>) -> ImageSizes {
    let mut sizes = ImageSizes::default();
    for section in object.sections() {
        let bytes = match section.kind() {
            SectionKind::Text => &mut sizes.code_bytes,
            SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => &mut sizes.constant_bytes,
            SectionKind::Data | SectionKind::Tls => &mut sizes.data_bytes,
            SectionKind::UninitializedData => &mut sizes.zeroed_bytes,
            _ => continue,
        };
        // The section table may lie: only segments are loaded.
        *bytes = bytes.saturating_add(section.size());
    }
    sizes
}

/// The functions that an object file defines for others.
pub(super) fn functions(object: &[u8]) -> Vec<String> {
    let Ok(object) = object::File::parse(object) else { return Vec::new() };
    let defined = object
        .symbols()
        .filter(|symbol| symbol.is_global() && symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    defined.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
}
