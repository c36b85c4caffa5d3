//! Compiles and links images.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{Source, TemporaryFolder};
use runtime_core::{Error, ErrorKind, Result};

use super::elf::{Image, functions};
use super::entry::{self, Parameter};
use super::{tool, uart};
use crate::boards::{Board, Processor};
use crate::module;

/// The files of the firmware.
const FIRMWARE: [(&str, &str); 13] = [
    ("protocol.h", include_str!("../../firmware/protocol.h")),
    ("link.ld", include_str!("../../firmware/link.ld")),
    ("main.c", include_str!("../../firmware/main.c")),
    ("data.c", include_str!("../../firmware/data.c")),
    ("riscv.c", include_str!("../../firmware/riscv.c")),
    ("riscv.S", include_str!("../../firmware/riscv.S")),
    ("cortex_m.c", include_str!("../../firmware/cortex_m.c")),
    ("frame.h", include_str!("../../firmware/frame.h")),
    ("frame.c", include_str!("../../firmware/frame.c")),
    ("uart.h", include_str!("../../firmware/uart.h")),
    ("serve.c", include_str!("../../firmware/serve.c")),
    ("uart_cmsdk.c", include_str!("../../firmware/uart_cmsdk.c")),
    ("uart_ns16550.c", include_str!("../../firmware/uart_ns16550.c")),
];
/// Flags for the firmware and for kernels.
const FLAGS: [&str; 4] = ["--specs=picolibc.specs", "-g", "-ffunction-sections", "-fdata-sections"];
/// Flags for kernels. Products are not contracted with sums, so that results agree between processors.
const KERNEL_FLAGS: [&str; 4] = ["-O2", "-std=gnu11", "-fno-math-errno", "-ffp-contract=off"];
/// Images that are kept for kernels that are flashed again.
const KEPT_IMAGES: usize = 16;

/// Builds the images of a board, in a folder of its own.
#[derive(Debug)]
pub(crate) struct Builder {
    board: Board,
    folder: TemporaryFolder,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The compiled firmware.
    firmware: Option<Vec<PathBuf>>,
    /// Images by everything that they are made from.
    images: Vec<(Key, Arc<Image>)>,
    /// Number of the next image's files.
    next: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    format: String,
    path: String,
    code: Vec<u8>,
    options: Vec<String>,
    parameters: Vec<Parameter>,
}

impl Builder {
    /// Prepares a folder.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn new(board: &Board) -> Result<Self> {
        let folder =
            TemporaryFolder::new("runtime-embedded-").map_err(|error| io("temporary folder", &error))?;
        Ok(Self { board: board.clone(), folder, state: Mutex::default() })
    }

    /// Whether it builds for this board, as its file is now.
    pub(crate) fn is_for(&self, board: &Board) -> bool {
        self.board == *board
    }

    /// The folder for the files of this board.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The image of a program: built from C, or checked as it is.
    ///
    /// # Errors
    /// `CompileFailed` with the log; `OutOfResources` for an image that is too large; `InvalidArgument`, as for
    /// [`Image::parse`]; `Unsupported` for another format.
    pub(crate) fn image(&self, source: &Source<'_>, parameters: &[Parameter]) -> Result<Arc<Image>> {
        let key = Key {
            format: source.format.to_owned(),
            path: source.path.to_owned(),
            code: source.bytes()?.into_owned(),
            options: source.options.iter().map(|(key, value)| format!("{key}={value:?}")).collect(),
            parameters: parameters.to_vec(),
        };
        let mut state = self.state.lock();
        if let Some((_, image)) = state.images.iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(image));
        }
        state.next += 1;
        let folder = self.folder().join(format!("image-{}", state.next));
        fs::create_dir(&folder).map_err(|error| io("image", &error))?;
        let elf = folder.join("image.elf");
        match source.format {
            "elf" => write(&elf, &key.code)?,
            "c" => {
                let firmware = match state.firmware.take() {
                    Some(firmware) => firmware,
                    None => self.build_firmware()?,
                };
                let firmware = state.firmware.insert(firmware);
                self.build_kernel(&folder, &elf, source, &key, firmware)?;
            }
            other => return Err(Error::unsupported(format!("format \"{other}\" is not supported"))),
        }
        let bytes = fs::read(&elf).map_err(|error| io("image", &error))?;
        let image = Arc::new(Image::parse(&self.board, &bytes, &elf)?);
        if state.images.len() == KEPT_IMAGES {
            let (_, oldest) = state.images.remove(0);
            // An image in use still needs its file, to locate faults.
            if Arc::strong_count(&oldest) == 1 {
                let _ = oldest.remove_files();
            }
        }
        state.images.push((key, Arc::clone(&image)));
        Ok(image)
    }

    /// Compiles the firmware once.
    fn build_firmware(&self) -> Result<Vec<PathBuf>> {
        for (name, text) in FIRMWARE {
            write(&self.folder().join(name), text.as_bytes())?;
        }
        let Board { flash, ram, stack_bytes, .. } = &self.board;
        let memory = format!(
            "MEMORY {{\n  FLASH (rx) : ORIGIN = {:#x}, LENGTH = {:#x}\n  RAM (rwx) : ORIGIN = {:#x}, LENGTH = {:#x}\n}}\n\
             STACK_BYTES = {stack_bytes:#x};\n",
            flash.origin, flash.bytes, ram.origin, ram.bytes
        );
        write(&self.folder().join("memory.ld"), memory.as_bytes())?;
        let mut sources = match self.board.processor {
            Processor::Riscv64 | Processor::Riscv32 => vec!["main.c", "data.c", "riscv.c", "riscv.S"],
            Processor::CortexM => vec!["main.c", "data.c", "cortex_m.c"],
        };
        let uart = uart::files(&self.board, self.folder())?;
        sources.extend(uart.sources.iter().map(String::as_str));
        let mut objects = Vec::new();
        for source in sources {
            let object = self.folder().join(format!("{source}.o"));
            let mut command = self.compiler();
            command.args(["-Os", "-c", source, "-o"]).arg(&object).args(&uart.flags);
            self.compile(&mut command, self.folder())?;
            objects.push(object);
        }
        Ok(objects)
    }

    fn build_kernel(
        &self,
        folder: &Path,
        elf: &Path,
        source: &Source<'_>,
        key: &Key,
        firmware: &[PathBuf],
    ) -> Result<()> {
        let given = Path::new(source.path).file_name().map(|name| name.to_string_lossy().into_owned());
        let file = given.filter(|name| !name.contains('"')).unwrap_or_else(|| "kernel.c".to_owned());
        write(&folder.join(&file), &key.code)?;
        let kernel = match source.options.text("entry").filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => self.only_function(folder, &file, source)?,
        };
        if !kernel.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Error::invalid(format!("option \"entry\": \"{kernel}\" is no name of a C function")));
        }
        let call = match module::groups(source.options)? {
            Some(groups) => entry::groups_source(&file, &kernel, key.parameters.len(), groups),
            None => entry::source(&file, &kernel, &key.parameters),
        };
        write(&folder.join("entry.c"), call.as_bytes())?;
        let mut command = self.kernel_compiler(source);
        command
            .args(["entry.c", "-o"])
            .arg(elf)
            .args(firmware)
            .args(["-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-lm", "-T"])
            .arg(self.folder().join("link.ld"))
            .arg("-L")
            .arg(self.folder());
        self.compile(&mut command, folder)
    }

    /// The only function that the kernel's file defines for others.
    fn only_function(&self, folder: &Path, file: &str, source: &Source<'_>) -> Result<String> {
        let mut command = self.kernel_compiler(source);
        command.args(["-c", file, "-o", "kernel.o"]);
        self.compile(&mut command, folder)?;
        let object = fs::read(folder.join("kernel.o")).map_err(|error| io("kernel.o", &error))?;
        let mut found = functions(&object);
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(Error::invalid("the code defines no function that is not static")),
            _ => Err(Error::invalid(format!(
                "the code defines several functions: {}; choose one with the option \"entry\"",
                found.join(", ")
            ))),
        }
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new(format!("{}gcc", self.board.toolchain.prefix));
        command.args(&self.board.toolchain.flags).args(FLAGS).arg("-Wall");
        command
    }

    fn kernel_compiler(&self, source: &Source<'_>) -> Command {
        let mut command = self.compiler();
        command.args(KERNEL_FLAGS);
        if let Some(folder) = Path::new(source.path).parent().filter(|folder| folder.is_absolute()) {
            command.arg("-I").arg(folder);
        }
        if source.options.flag("debug") {
            command.arg("-Og");
        }
        command.args(source.options.texts("flags").flat_map(str::split_whitespace));
        command
    }

    fn compile(&self, command: &mut Command, folder: &Path) -> Result<()> {
        let (succeeded, log) = tool::run(command, folder)?;
        if succeeded {
            return Ok(());
        }
        if let Some(line) = log.lines().find(|line| line.contains("overflowed by")) {
            let reason = line.rsplit(": ").next().unwrap_or(line);
            let mut message = format!("the image does not fit {}: {reason}", self.board.name);
            let _ = write!(
                message,
                "; the board has {} bytes of flash and {} of RAM",
                self.board.flash.bytes, self.board.ram.bytes
            );
            return Err(Error::new(ErrorKind::OutOfResources, message));
        }
        Err(Error::new(ErrorKind::CompileFailed, log))
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|error| io(&path.display().to_string(), &error))
}

fn io(what: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what}: {error}"))
}
