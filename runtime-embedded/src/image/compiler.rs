//! Runs the compiler of a board.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtime_core::backend::Source;
use runtime_core::{Error, ErrorKind, Result};

use super::elf::functions;
use super::entry::{self, Parameter};
use super::tool;
use crate::boards::{Board, PAGE_BYTES, Processor};
use crate::module;

/// The files of the firmware.
pub(super) const FIRMWARE: [(&str, &str); 13] = [
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
/// Flags for the firmware and for kernels. Lines and functions are enough to locate faults.
pub(super) const FLAGS: [&str; 4] =
    ["--specs=picolibc.specs", "-g1", "-ffunction-sections", "-fdata-sections"];
/// Flags for kernels. Products are not contracted with sums, so that results agree between processors.
pub(super) const KERNEL_FLAGS: [&str; 4] = ["-O2", "-std=gnu11", "-fno-math-errno", "-ffp-contract=off"];
/// The folder of generated code beside a kernel, whose file may have any name.
const GENERATED: &str = "generated";

/// The compiler of a board, which works in a folder of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compiler<'b> {
    pub(super) board: &'b Board,
    /// The folder with the firmware.
    pub(super) folder: &'b Path,
}

impl Compiler<'_> {
    /// Writes the files of the firmware, and the board's memory for the linker.
    pub(super) fn write_firmware(self) -> Result<()> {
        for (name, text) in FIRMWARE {
            write(&self.folder.join(name), text.as_bytes())?;
        }
        let Board { flash, ram, stack_bytes, .. } = self.board;
        let memory = format!(
            "MEMORY {{\n  FLASH (rx) : ORIGIN = {:#x}, LENGTH = {:#x}\n  RAM (rwx) : ORIGIN = {:#x}, LENGTH = {:#x}\n}}\n\
             STACK_BYTES = {stack_bytes:#x};\n",
            flash.origin, flash.bytes, ram.origin, ram.bytes
        );
        write(&self.folder.join("memory.ld"), memory.as_bytes())
    }

    /// The sources of the board's firmware, without those of its link.
    pub(super) const fn firmware_sources(self) -> &'static [&'static str] {
        match self.board.processor {
            Processor::Riscv64 | Processor::Riscv32 => &["main.c", "data.c", "riscv.c", "riscv.S"],
            Processor::CortexM => &["main.c", "data.c", "cortex_m.c"],
        }
    }

    /// Compiles a source of the firmware.
    pub(super) fn compile_firmware(self, source: &str, flags: &[String], object: &Path) -> Result<()> {
        let mut command = self.gcc();
        command.args(["-Os", "-c", source, "-o"]).arg(object).args(flags);
        self.run(&mut command, self.folder, None)
    }

    /// Compiles a kernel in `folder` and links it with the firmware.
    pub(super) fn build_kernel(
        self,
        folder: &Path,
        (source, code): (&Source<'_>, &[u8]),
        parameters: &[Parameter],
        firmware: &[PathBuf],
    ) -> Result<()> {
        let given = Path::new(source.path).file_name().map(|name| name.to_string_lossy().into_owned());
        let file = given.filter(|name| !name.contains('"')).unwrap_or_else(|| "kernel.c".to_owned());
        let generated = folder.join(GENERATED);
        fs::create_dir(&generated).map_err(|error| io(GENERATED, &error))?;
        write(&folder.join(&file), code)?;
        let kernel = match source.options.text("entry").filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => self.only_function(folder, &file, source)?,
        };
        if !kernel.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Error::invalid(format!("option \"entry\": \"{kernel}\" is no name of a C function")));
        }
        let file = format!("../{file}");
        let call = match module::groups(source.options)? {
            Some(groups) => entry::groups_source(&file, &kernel, parameters.len(), groups),
            None => entry::source(&file, &kernel, parameters),
        };
        write(&generated.join("entry.c"), call.as_bytes())?;
        let mut command = self.kernel_gcc(source)?;
        command
            // Beyond the guard below the stack, some machines ignore accesses.
            .arg(format!("-Werror=frame-larger-than={}", self.board.stack_bytes))
            .args(["generated/entry.c", "-o", "image.elf"])
            .args(firmware)
            .args(["-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-warn-rwx-segments", "-lm", "-T"])
            .arg(self.folder.join("link.ld"))
            .arg("-L")
            .arg(self.folder)
            .args(self.place_breakpoint());
        self.run(&mut command, folder, Some(source))
    }

    /// The linker's flag that keeps the breakpoint of an emulator away from other code.
    fn place_breakpoint(self) -> Option<String> {
        self.board.emulator.as_ref()?;
        Some(format!("-Wl,--section-start=.park={:#x}", self.board.flash.end() - PAGE_BYTES))
    }

    /// The only function that the kernel's file defines for others. Compiles without optimisation, which does not change their
    /// names.
    fn only_function(self, folder: &Path, file: &str, source: &Source<'_>) -> Result<String> {
        let mut command = self.kernel_gcc(source)?;
        command.args(["-O0", "-g0", "-x", "c", "-c", file, "-o", "generated/kernel.o"]);
        self.run(&mut command, folder, Some(source))?;
        let object = folder.join(GENERATED).join("kernel.o");
        let object = fs::read(object).map_err(|error| io("kernel.o", &error))?;
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

    fn gcc(self) -> Command {
        let mut command = Command::new(format!("{}gcc", self.board.toolchain.prefix));
        command.args(&self.board.toolchain.flags).args(FLAGS).arg("-Wall");
        command
    }

    fn kernel_gcc(self, source: &Source<'_>) -> Result<Command> {
        let mut command = self.gcc();
        command.args(KERNEL_FLAGS);
        if let Some(folder) = Path::new(source.path).parent().filter(|folder| folder.is_absolute()) {
            command.arg("-I").arg(folder);
        }
        if source.options.flag("debug") {
            command.args(["-Og", "-g"]);
        }
        command.args(source.options.texts("flags").flat_map(str::split_whitespace));
        command.args(module::defines(source.options)?);
        Ok(command)
    }

    /// Runs a command in `folder`, for the kernel `source` or the firmware.
    fn run(self, command: &mut Command, folder: &Path, source: Option<&Source<'_>>) -> Result<()> {
        let readable = source.into_iter().flat_map(|source| source.options.texts(module::READABLE));
        let readable = readable.filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let readable: Vec<PathBuf> = readable.chain([self.folder.to_owned()]).collect();
        let (succeeded, log) = tool::compile(command, folder, &readable)?;
        // The kernel, as the generated code includes it.
        let log = log.replace("generated/../", "");
        if succeeded {
            return Ok(());
        }
        if let Some(reason) = too_large(&log) {
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

/// What the linker says of an image that is too large, or that reaches the breakpoint at the end of flash.
fn too_large(log: &str) -> Option<&str> {
    let overflows = |line: &&str| line.contains("overflowed by");
    let overlaps = |line: &&str| line.contains("section .park") && line.contains("overlaps section");
    let line = log.lines().find(overflows).or_else(|| log.lines().find(overlaps))?;
    Some(line.rsplit(": ").next().unwrap_or(line))
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|error| io(&path.display().to_string(), &error))
}

pub(super) fn io(what: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what}: {error}"))
}
