//! Writes code to files for a look at it, and reads code that replaces an entry's.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;

use super::code::CachedCode;
use super::options::{DumpOptions, DumpStage};
use crate::atomic_file::write_atomic;
use crate::platform::program::{find_in_path, run_program};
use crate::platform::trust::{self, Owner};
use crate::{CodeFormat, Error, ErrorKind, Result};

/// How long a disassembler may take.
const DISASSEMBLER_TIMEOUT: Duration = Duration::from_secs(30);
/// Of a longer listing, the middle is left out.
const MAX_LISTING_BYTES: usize = 256 << 20;

/// Writes the stages that were asked for, once per entry and process.
#[derive(Debug)]
pub(super) struct Dump {
    options: DumpOptions,
    written: Mutex<HashSet<PathBuf>>,
}

impl Dump {
    pub(super) fn new(options: DumpOptions) -> Self {
        Self { options, written: Mutex::default() }
    }

    pub(super) fn wants(&self, stage: DumpStage) -> bool {
        self.options.stages.contains(&stage)
    }

    /// Writes code of a stage to `<name>.lowered.<extension>` or, for other stages, `<name>.<extension>`.
    ///
    /// # Errors
    /// `Io`, with the path.
    pub(super) fn write(&self, name: &str, stage: DumpStage, extension: &str, bytes: &[u8]) -> Result<()> {
        let infix = if stage == DumpStage::Lowered { ".lowered" } else { "" };
        self.write_stage(stage, &format!("{name}{infix}.{extension}"), bytes)
    }

    /// Writes the text that was lowered, under the name that a debugger looks for.
    ///
    /// # Errors
    /// `Io`, with the path.
    pub(super) fn write_source(&self, file: &str, text: &[u8]) -> Result<()> {
        self.write_stage(DumpStage::Lowered, file, text)
    }

    fn write_stage(&self, stage: DumpStage, file: &str, bytes: &[u8]) -> Result<()> {
        let path = self.options.folder.join(file);
        if !self.wants(stage) || !self.written.lock().insert(path.clone()) {
            return Ok(());
        }
        trust::create_folder(&self.options.folder)?;
        write_file(&path, bytes)
    }

    /// Writes native code, and its disassembly.
    ///
    /// # Errors
    /// `Io`, with the path.
    pub(super) fn write_native(&self, name: &str, code: &CachedCode) -> Result<()> {
        let extension = code.format.extension();
        self.write(name, DumpStage::Binary, extension, &code.code)?;
        let path = self.options.folder.join(format!("{name}.asm"));
        if !self.wants(DumpStage::Asm) || !self.written.lock().insert(path.clone()) {
            return Ok(());
        }
        trust::create_folder(&self.options.folder)?;
        let Some(command) = disassembler(&code.format) else { return write_file(&path, &code.code) };
        let binary = self.options.folder.join(format!(".{name}.{extension}"));
        write_file(&binary, &code.code)?;
        let listing = disassemble(&command, &binary);
        // Best effort: a file that stays is harmless.
        let _ = fs::remove_file(&binary);
        match listing {
            Ok(text) => write_file(&path, &text),
            Err(reason) => write_file(&path.with_extension("asm.note"), format!("{reason}\n").as_bytes()),
        }
    }
}

/// The command that disassembles a file of this format; `None` for text, which is readable as it is.
fn disassembler(format: &CodeFormat) -> Option<Vec<&'static str>> {
    match format.as_str() {
        "cubin" => Some(vec!["nvdisasm", "-c"]),
        "fatbin" => Some(vec!["cuobjdump", "-sass"]),
        "shared-object" | "object" | "archive" | "elf" => Some(vec!["objdump", "-d", "-C"]),
        "spirv-kernel" | "spirv-shader" => Some(vec!["spirv-dis", "--no-color"]),
        _ => None,
    }
}

/// Runs a disassembler on a file. Returns its output, or why there is none.
fn disassemble(command: &[&str], file: &Path) -> Result<Vec<u8>, String> {
    let tool = command[0];
    let missing = || format!("`{tool}` is not in PATH; install it for a disassembly");
    let mut process = Command::new(find_in_path(tool).ok_or_else(missing)?);
    process.args(&command[1..]).arg(file);
    match run_program(&mut process, DISASSEMBLER_TIMEOUT, MAX_LISTING_BYTES) {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(_) => Err(format!("`{tool}` failed on this code")),
        Err(error) => Err(error.message().to_owned()),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = write_atomic(path, |file| Ok(file.write_all(bytes)?));
    written.map_err(|error| Error::new(ErrorKind::Io, format!("{}: {}", path.display(), error.message())))
}

/// The code that replaces an entry's; `None` if there is none. The folder and the file must be trusted as the cache's
/// are, and may also belong to root.
///
/// # Errors
/// As [`trust::check_folder`]; `Io` for a file that cannot be used.
pub(super) fn read_override(folder: &Path, name: &str, format: &CodeFormat) -> Result<Option<Vec<u8>>> {
    let folder = trust::check_folder(folder, Owner::UserOrRoot)?;
    for path in [folder.join(name), folder.join(format!("{name}.{}", format.extension()))] {
        if let Some(code) = trust::read_file(&path, Owner::UserOrRoot, u64::MAX)? {
            return Ok(Some(code));
        }
    }
    Ok(None)
}
