//! Checks shared objects, and reads their symbols, before the dynamic loader maps them.
//!
//! The dynamic loader trusts its input: a truncated file kills the process with `SIGBUS`, a file for another machine is
//! reported as missing, and the address of a variable looks like that of a function.

use std::path::PathBuf;

use object::elf::{
    DT_NEEDED, Dyn64, EM_AARCH64, EM_X86_64, ET_CORE, ET_DYN, ET_EXEC, ET_REL, FileHeader64,
    GNU_PROPERTY_X86_ISA_1_NEEDED, PT_LOAD,
};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use runtime_core::{Error, ErrorKind, Result};

/// The symbols that a shared object exports; empty if its format is unknown.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// Sorted; `None` if the format is unknown.
    functions: Option<Vec<String>>,
    data: Vec<String>,
}

impl Symbols {
    /// Reads the symbols of `code`.
    pub(crate) fn of(code: &[u8]) -> Self {
        let Ok(file) = object::File::parse(code) else { return Self::default() };
        let (mut functions, mut data) = (Vec::new(), Vec::new());
        for symbol in file.dynamic_symbols().filter(|symbol| !symbol.is_undefined()) {
            let Ok(name) = symbol.name() else { continue };
            match is_function(&file, &symbol) {
                true if !matches!(name, "_init" | "_fini") => functions.push(name.to_owned()),
                true => {}
                false => data.push(name.to_owned()),
            }
        }
        functions.sort_unstable();
        Self { functions: Some(functions), data }
    }

    /// The exported functions.
    pub(crate) fn functions(&self) -> &[String] {
        self.functions.as_deref().unwrap_or_default()
    }

    /// Whether `name` is an exported function, or the format is unknown.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.functions.as_ref().is_none_or(|functions| functions.iter().any(|function| function == name))
    }

    /// Whether `name` is an exported variable.
    pub(crate) fn is_data(&self, name: &str) -> bool {
        self.data.iter().any(|data| data == name)
    }
}

/// Whether the symbol is code. Symbols of assembly code often have no type.
fn is_function<'data>(file: &object::File<'data>, symbol: &impl ObjectSymbol<'data>) -> bool {
    let is_in_code = || {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        section.is_some_and(|section| section.kind() == SectionKind::Text)
    };
    match symbol.kind() {
        SymbolKind::Text => true,
        SymbolKind::Unknown | SymbolKind::Label => is_in_code(),
        _ => false,
    }
}

/// Checks that the file is a complete shared object for `machine`, as [`std::env::consts::ARCH`] names it.
///
/// # Errors
/// `CompileFailed`, which says what the file is instead.
pub(crate) fn check_for(code: &[u8], name: &str, machine: &str) -> Result<()> {
    let wrong = |what: String| Error::new(ErrorKind::CompileFailed, format!("\"{name}\" {what}"));
    check_identity(code, machine).map_err(wrong)?;
    check_complete(code).map_err(wrong)
}

/// Checks the ELF header: class, byte order, machine and type.
fn check_identity(code: &[u8], wanted: &str) -> Result<(), String> {
    const WIDE: u8 = 2;
    let little = u8::from(cfg!(target_endian = "big")) + 1;
    let Some(start) = code.first_chunk::<20>().filter(|start| start.starts_with(b"\x7fELF")) else {
        return Err("is not a shared object: it does not begin with an ELF header".to_owned());
    };
    let number = |at: usize| match start[5] {
        1 => u16::from_le_bytes([start[at], start[at + 1]]),
        _ => u16::from_be_bytes([start[at], start[at + 1]]),
    };
    let ours = match wanted {
        "x86_64" => Some(EM_X86_64),
        "aarch64" => Some(EM_AARCH64),
        _ => None,
    };
    if start[4] != WIDE || start[5] != little || ours.is_some_and(|ours| ours != number(18)) {
        let built_for = machine(number(18), start[4] == WIDE);
        return Err(match wanted == std::env::consts::ARCH {
            true => {
                format!("is built for {built_for}, but this machine is {wanted}; build it for this machine")
            }
            false => format!("is built for {built_for}, not for {wanted}"),
        });
    }
    match number(16) {
        ET_DYN => Ok(()),
        ET_REL => {
            Err("is an object file; load it with format \"object\", or link it with -shared".to_owned())
        }
        ET_EXEC => Err("is an executable; link it with -shared -fPIC".to_owned()),
        ET_CORE => Err("is a core dump, not a shared object".to_owned()),
        other => Err(format!("is not a shared object: its ELF type is {other}")),
    }
}

fn machine(number: u16, wide: bool) -> String {
    use object::elf::{EM_386, EM_ARM, EM_PPC64, EM_RISCV, EM_S390};
    let known = [
        (EM_X86_64, "x86_64"),
        (EM_AARCH64, "aarch64"),
        (EM_386, "x86"),
        (EM_ARM, "arm"),
        (EM_RISCV, "riscv"),
        (EM_PPC64, "ppc64"),
        (EM_S390, "s390"),
    ];
    let name = known.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_owned());
    let name = name.unwrap_or_else(|| format!("machine {number}"));
    if wide { name } else { format!("{name} (32 bits)") }
}

/// Checks that the file is as long as its headers say: accessing a mapped page beyond the end raises `SIGBUS`.
fn check_complete(code: &[u8]) -> Result<(), String> {
    let damaged = |error: object::Error| format!("is damaged or truncated ({error}); build or copy it again");
    let header = FileHeader64::<Endianness>::parse(code).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    let segments = header.program_headers(endian, code).map_err(damaged)?;
    let loaded = segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    let ends = loaded.map(|segment| segment.p_offset(endian).saturating_add(segment.p_filesz(endian)));
    let promised = ends.max().ok_or("is not a shared object: it has nothing to load")?;
    let sections = header.section_headers(endian, code).map_err(damaged)?;
    let files = sections.iter().filter_map(|section| section.file_range(endian));
    let promised = files.map(|(offset, size)| offset.saturating_add(size)).fold(promised, u64::max);
    match promised > code.len() as u64 {
        true => {
            Err(format!("is truncated: it has {} of {promised} bytes; build or copy it again", code.len()))
        }
        false => Ok(()),
    }
}

/// The level of x86-64 that a shared object states to need, as an index; most state none.
pub(crate) fn needed_level(code: &[u8]) -> Option<usize> {
    let elf = ElfFile64::<Endianness>::parse(code).ok()?;
    let (endian, sections) = (elf.endian(), elf.elf_section_table());
    let (_, section) = sections.section_by_name(endian, b".note.gnu.property")?;
    let mut notes = section.notes(endian, code).ok()??;
    while let Ok(Some(note)) = notes.next() {
        let Some(mut properties) = note.gnu_properties(endian) else { continue };
        while let Ok(Some(property)) = properties.next() {
            let needed = property.data_u32(endian).ok().filter(|bits| *bits != 0);
            if property.pr_type() == GNU_PROPERTY_X86_ISA_1_NEEDED
                && let Some(highest) = needed.and_then(u32::checked_ilog2)
            {
                return usize::try_from(highest).ok();
            }
        }
    }
    None
}

/// The dependencies that a shared object names; none if its format is unknown.
pub(crate) fn needed(code: &[u8]) -> Vec<PathBuf> {
    let names = || {
        let elf = ElfFile64::<Endianness>::parse(code).ok()?;
        let (endian, sections) = (elf.endian(), elf.elf_section_table());
        let (entries, link) = sections.dynamic(endian, code).ok()??;
        let strings = sections.strings(endian, code, link).ok()?;
        let name = |entry: &Dyn64<Endianness>| {
            let offset = (entry.tag32(endian)? == DT_NEEDED).then(|| entry.val32(endian))??;
            Some(PathBuf::from(String::from_utf8_lossy(strings.get(offset).ok()?).into_owned()))
        };
        Some(entries.iter().filter_map(name).collect())
    };
    names().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::build_folder::private_folder;

    fn check(code: &[u8], name: &str) -> Result<()> {
        check_for(code, name, std::env::consts::ARCH)
    }

    fn compiled(folder: &Path, arguments: &[&str], code: &str) -> Vec<u8> {
        let (text, out) = (folder.join("k.c"), folder.join("out"));
        std::fs::write(&text, code).unwrap();
        let status = std::process::Command::new("cc").args(arguments).arg("-o").args([&out, &text]).status();
        assert!(status.unwrap().success());
        std::fs::read(&out).unwrap()
    }

    #[test]
    fn truncation_is_detected_before_the_file_is_mapped() {
        let folder = private_folder().unwrap();
        let whole = compiled(folder.path(), &["-shared", "-fPIC"], "int data = 7; void f(void) {}");
        check(&whole, "k.so").unwrap();
        for length in (0..whole.len()).step_by(7) {
            let error = check(&whole[..length], "k.so").unwrap_err();
            assert!(error.message().starts_with("\"k.so\" is "), "{length}: {error}");
        }
    }

    #[test]
    fn errors_say_what_a_wrong_file_is() {
        let folder = private_folder().unwrap();
        let whole = compiled(folder.path(), &["-shared", "-fPIC"], "void f(void) {}");
        let changed = |at: usize, byte: u8| {
            let mut code = whole.clone();
            code[at] = byte;
            check(&code, "k.so").unwrap_err().message().to_owned()
        };
        let other = if cfg!(target_arch = "x86_64") { 0xb7 } else { 62 };
        assert!(changed(18, other).contains("is built for"), "{}", changed(18, other));
        assert!(changed(4, 1).contains("32 bits"), "{}", changed(4, 1));
        assert!(changed(16, 4).contains("core dump"), "{}", changed(16, 4));
        assert!(changed(0, 0).contains("does not begin with an ELF header"), "{}", changed(0, 0));
        let object = compiled(folder.path(), &["-c"], "void f(void) {}");
        assert!(check(&object, "k.so").unwrap_err().message().contains("format \"object\""));
        // Damage to any byte of the headers is an error or harmless, never a crash here.
        for at in 0..64 {
            let mut code = whole.clone();
            code[at] ^= 0xff;
            let _ = check(&code, "k.so").map(|()| needed(&code));
            let _ = Symbols::of(&code);
        }
    }

    #[test]
    fn variables_are_not_functions() {
        let folder = private_folder().unwrap();
        let assembly = "int data = 7; void f(void) {}\n\
            __asm__(\".globl bare\\nbare: ret\\n\");\n\
            static void chosen(void) {} static void (*choose(void))(void) { return chosen; }\n\
            void picked(void) __attribute__((ifunc(\"choose\")));";
        let symbols = Symbols::of(&compiled(folder.path(), &["-shared", "-fPIC"], assembly));
        assert_eq!(symbols.functions(), ["bare", "f", "picked"]);
        assert!(symbols.is_data("data") && !symbols.may_have("data"));
        let only_data = Symbols::of(&compiled(folder.path(), &["-shared", "-fPIC"], "int data = 7;"));
        assert!(only_data.functions().is_empty() && !only_data.may_have("data"));
        assert!(Symbols::of(b"another format").may_have("anything"));
    }
}
