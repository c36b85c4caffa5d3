//! Boards, as data: a TOML file each.

use std::ops::Range;
use std::path::{Path, PathBuf};

use runtime_core::backend::{read_trusted, trusted_file, trusted_folder};
use runtime_core::{Error, ErrorKind, Result};
use serde::Deserialize;

/// The boards that this library knows, in the order of their indices.
const KNOWN: [(&str, &str); 5] = [
    ("riscv64-virt.toml", include_str!("riscv64-virt.toml")),
    ("riscv32-virt.toml", include_str!("riscv32-virt.toml")),
    ("mps2-an385.toml", include_str!("mps2-an385.toml")),
    ("mps2-an500.toml", include_str!("mps2-an500.toml")),
    ("mps3-an547.toml", include_str!("mps3-an547.toml")),
];

/// UART drivers of the firmware.
pub(crate) const DRIVERS: [&str; 2] = ["cmsdk", "ns16550"];

/// The largest board file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The largest page of an emulated processor.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// A board: its processor, its memory, how images are built for it, and how it is started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Board {
    /// Device name, unique among the boards.
    pub(crate) name: String,
    /// One sentence for `runtime devices`.
    pub(crate) description: String,
    pub(crate) processor: Processor,
    pub(crate) stack_bytes: u64,
    /// Where code and constants are.
    pub(crate) flash: Region,
    pub(crate) ram: Region,
    pub(crate) toolchain: Toolchain,
    pub(crate) counter: Counter,
    /// How the host communicates with the firmware.
    #[serde(default)]
    pub(crate) link: LinkKind,
    pub(crate) emulator: Option<Emulator>,
    pub(crate) server: Option<Server>,
    pub(crate) uart: Option<Uart>,
}

/// How the host communicates with the firmware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LinkKind {
    /// GDB's remote protocol, to the stub of an emulator or to the server of a debug probe.
    #[default]
    Debugger,
    /// The firmware answers over a serial port.
    Uart,
}

/// The family of a processor, which decides on start-up code, registers and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Processor {
    Riscv64,
    Riscv32,
    CortexM,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Region {
    pub(crate) origin: u64,
    pub(crate) bytes: u64,
}

/// The compiler for a board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Toolchain {
    /// Prefix of the names of the tools, e.g. `arm-none-eabi-`.
    pub(crate) prefix: String,
    /// Debian packages with the tools and the C library.
    pub(crate) packages: String,
    /// Flags for the instruction set and the calling convention.
    pub(crate) flags: Vec<String>,
}

/// What the counter of the board counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counter {
    /// `target-cycles` or `target-instructions`.
    pub(crate) clock: String,
    /// The count is the number of ticks, times the first number, divided by the second one.
    #[serde(default = "one_per_tick")]
    pub(crate) per_ticks: [u32; 2],
}

const fn one_per_tick() -> [u32; 2] {
    [1, 1]
}

/// How an emulated board is started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Emulator {
    pub(crate) program: String,
    /// Debian packages with the program.
    pub(crate) packages: String,
    pub(crate) arguments: Vec<String>,
}

/// The server of a debug probe, which speaks GDB's remote protocol.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// Host and port.
    pub(crate) address: String,
    /// Starts the server; empty if it runs already.
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// Command of the server's monitor that resets and stops the target.
    #[serde(default)]
    pub(crate) reset: String,
}

/// The serial port of a board.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Uart {
    /// A driver of the firmware, or the path of a C file.
    pub(crate) driver: String,
    /// Address of its registers.
    #[serde(default)]
    pub(crate) address: u64,
    /// Where the host reaches it, without an emulator.
    #[serde(default)]
    pub(crate) port: String,
    #[serde(default = "usual_baud")]
    pub(crate) baud: u32,
    /// Flashes the image `{elf}`.
    #[serde(default)]
    pub(crate) flash: Vec<String>,
    /// Resets the board.
    #[serde(default)]
    pub(crate) reset: Vec<String>,
}

const fn usual_baud() -> u32 {
    115_200
}

impl Uart {
    /// The C file of the user's driver; `None` if the driver is one of the firmware.
    pub(crate) fn own_driver(&self) -> Option<&Path> {
        let is_known = DRIVERS.contains(&self.driver.as_str());
        (!is_known).then_some(Path::new(&self.driver))
    }
}

impl Region {
    pub(crate) const fn end(self) -> u64 {
        self.origin.saturating_add(self.bytes)
    }

    pub(crate) const fn contains(self, address: u64, bytes: u64) -> bool {
        address >= self.origin && address.saturating_add(bytes) <= self.end()
    }
}

impl Processor {
    /// Bytes of a register.
    pub(crate) const fn word_bytes(self) -> usize {
        match self {
            Self::Riscv64 => 8,
            Self::Riscv32 | Self::CortexM => 4,
        }
    }

    /// The address of code from that in a symbol, where bit 0 marks Thumb code.
    pub(crate) const fn code_address(self, symbol: u64) -> u64 {
        match self {
            Self::CortexM => symbol & !1,
            Self::Riscv64 | Self::Riscv32 => symbol,
        }
    }
}

impl Board {
    /// Reads a board file.
    ///
    /// # Errors
    /// `InvalidArgument`, with the file, the line and the reason.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self> {
        let invalid = |reason: String| Error::invalid(format!("board file {file}: {reason}"));
        let board: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if board.name.is_empty() || !board.name.chars().all(is_plain) {
            return Err(invalid(format!("`name` is \"{}\"; use letters, digits, - and _", board.name)));
        }
        let has_end = |region: Region| region.origin.checked_add(region.bytes).is_some();
        if !has_end(board.flash) || !has_end(board.ram) {
            return Err(invalid(
                "`flash` and `ram`: `origin` + `bytes` must be an address of 64 bits".to_owned(),
            ));
        }
        // The guard below the stack is 256 bytes, aligned to its size.
        let overlap = board.flash.origin < board.ram.end() && board.ram.origin < board.flash.end();
        if overlap || !board.ram.origin.is_multiple_of(256) || !board.stack_bytes.is_multiple_of(16) {
            return Err(invalid(
                "`flash` and `ram` must not overlap, `ram.origin` must be a multiple of 256 and `stack_bytes` of 16"
                    .to_owned(),
            ));
        }
        // Vector tables are aligned, and the code at the end of flash is, too.
        if !board.flash.origin.is_multiple_of(256) || !board.flash.bytes.is_multiple_of(4) {
            return Err(invalid(
                "`flash.origin` must be a multiple of 256 and `flash.bytes` of 4".to_owned(),
            ));
        }
        if board.stack_bytes < 1024 || board.stack_bytes > board.ram.bytes / 2 {
            return Err(invalid("`stack_bytes` must be from 1024 to half of the RAM".to_owned()));
        }
        if board.emulator.is_some() && board.flash.bytes <= PAGE_BYTES {
            return Err(invalid(format!(
                "`flash.bytes` must be more than {PAGE_BYTES} on an emulated board, whose last page is for the breakpoint"
            )));
        }
        if board.processor.word_bytes() == 4 && board.flash.end().max(board.ram.end()) >= 1 << 32 {
            return Err(invalid(
                "`flash` and `ram` must end below 4 GiB: their ends are addresses of 32 bits, too".to_owned(),
            ));
        }
        if board.uart.as_ref().is_some_and(|uart| board.protected().contains(&uart.address)) {
            let Range { start, end } = board.protected();
            return Err(invalid(format!(
                "`uart.address` must not be in {start:#x}..{end:#x}: on RISC-V, twice the stack below the RAM cannot be written"
            )));
        }
        let [numerator, denominator] = board.counter.per_ticks;
        let clocks = ["target-cycles", "target-instructions"];
        if numerator == 0 || denominator == 0 || !clocks.contains(&&*board.counter.clock) {
            return Err(invalid(format!(
                "`counter.clock` must be {}, with positive `per_ticks`",
                clocks.join(" or ")
            )));
        }
        board.check_link().map_err(|reason| invalid(reason.to_owned()))?;
        Ok(board)
    }

    /// The addresses below the RAM that the firmware protects from large frames, as `firmware/link.ld` does.
    const fn protected(&self) -> Range<u64> {
        match self.processor {
            Processor::Riscv64 | Processor::Riscv32 => {
                self.ram.origin.saturating_sub(2 * self.stack_bytes)..self.ram.origin
            }
            Processor::CortexM => 0..0,
        }
    }

    /// The board, reached over another link.
    ///
    /// # Errors
    /// `InvalidArgument` if its file does not describe that link.
    pub(crate) fn with_link(&self, link: LinkKind) -> Result<Self> {
        let board = Self { link, ..self.clone() };
        board.check_link().map_err(|reason| Error::invalid(format!("board {}: {reason}", self.name)))?;
        Ok(board)
    }

    /// The files in `folder` that are compiled or run with it: its driver, and what its commands name.
    fn own_files(&self, folder: &Path) -> Vec<PathBuf> {
        let folder = folder.display().to_string();
        let server = self.server.iter().map(|server| &server.command);
        let uart = self.uart.iter().flat_map(|uart| [&uart.flash, &uart.reset]);
        let words = server.chain(uart).flatten();
        let named = words.filter_map(|word| Some(PathBuf::from(&word[word.find(&folder)?..])));
        let driver = self.uart.iter().filter_map(Uart::own_driver).map(Path::to_owned);
        named.chain(driver).filter(|path| path.is_file()).collect()
    }

    /// Makes the paths in its file those of a file in `folder`.
    fn locate(&mut self, folder: &Path) {
        let server = self.server.iter_mut().map(|server| &mut server.command);
        let uart = self.uart.iter_mut().flat_map(|uart| {
            if let Some(driver) = uart.own_driver() {
                uart.driver = folder.join(driver).display().to_string();
            }
            [&mut uart.flash, &mut uart.reset]
        });
        for word in server.chain(uart).flatten() {
            *word = word.replace("{folder}", &folder.display().to_string());
        }
    }

    fn check_link(&self) -> Result<(), &'static str> {
        let has_port = self.uart.as_ref().is_some_and(|uart| !uart.port.is_empty());
        match self.link {
            _ if self.emulator.is_some() && (self.server.is_some() || has_port) => {
                Err("an emulated board has neither `server` nor `uart.port`")
            }
            _ if self.uart.as_ref().is_some_and(|uart| uart.baud == 0) => Err("`uart.baud` must be positive"),
            LinkKind::Debugger if self.emulator.is_none() && self.server.is_none() => {
                Err("the link \"debugger\" needs `emulator` or `server`")
            }
            LinkKind::Uart if self.uart.is_none() => Err("the link \"uart\" needs `uart`"),
            LinkKind::Uart if self.emulator.is_none() && !has_port => {
                Err("the link \"uart\" needs `emulator` or `uart.port`")
            }
            _ => Ok(()),
        }
    }

    /// Why the board cannot be used on this machine, with the remedy; `None` if it can.
    pub(crate) fn unavailable_reason(&self, find: impl Fn(&str) -> bool) -> Option<String> {
        let compiler = format!("{}gcc", self.toolchain.prefix);
        let mut needed = Vec::new();
        if let Some(emulator) = &self.emulator {
            needed.push((&emulator.program, &emulator.packages, "the emulator"));
        }
        needed.push((&compiler, &self.toolchain.packages, "the C compiler"));
        if let Some((program, packages, what)) = needed.into_iter().find(|(program, ..)| !find(program)) {
            return Some(format!("{what}, {program}, is not in PATH; on Debian: apt-get install {packages}"));
        }
        let programs = self.programs();
        let program = programs.iter().find(|program| !find(program))?;
        Some(format!("{program}, a program of the board file, is not installed"))
    }

    /// The programs of its command templates.
    fn programs(&self) -> Vec<&String> {
        let server = self.server.iter().map(|server| &server.command);
        let uart = self.uart.iter().flat_map(|uart| [&uart.flash, &uart.reset]);
        server.chain(uart).filter_map(|command| command.first()).collect()
    }
}

/// All boards: those of this library, then the `.toml` files of `folder` in the order of their names.
///
/// # Errors
/// `Io` for a folder or file that cannot be read, and a file that others may write to; `Unavailable` for such a folder;
/// `InvalidArgument` for an invalid board file, or a name that is taken.
pub(crate) fn all(folder: Option<&Path>) -> Result<Vec<Board>> {
    // Commands run in another folder, where relative paths would not resolve.
    let folder =
        folder.map(|folder| trusted_folder(folder).map_err(|error| untrusted(&error))).transpose()?;
    let mut boards = Vec::new();
    for (file, text) in KNOWN {
        boards.push(Board::parse(file, text)?);
    }
    for file in folder.as_deref().map(files).transpose()?.unwrap_or_default() {
        let mut board = Board::parse(&file.display().to_string(), &read(&file)?)?;
        let folder = file.parent().unwrap_or(&file);
        board.locate(folder);
        board
            .own_files(folder)
            .iter()
            .try_for_each(|file| trusted_file(file).map_err(|error| untrusted(&error)))?;
        if boards.iter().any(|known| known.name == board.name) {
            return Err(Error::invalid(format!(
                "board file {}: there is a board \"{}\" already",
                file.display(),
                board.name
            )));
        }
        boards.push(board);
    }
    Ok(boards)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error| Error::new(ErrorKind::Io, format!("boards: {}: {error}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    Ok(files)
}

/// Reads a board file, whose commands are executed.
fn read(file: &Path) -> Result<String> {
    let bytes = read_trusted(file, MAX_FILE_BYTES).map_err(|error| untrusted(&error))?.unwrap_or_default();
    String::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorKind::Io, format!("boards: {}: it is not UTF-8 text", file.display())))
}

fn untrusted(error: &Error) -> Error {
    Error::new(error.kind(), format!("boards: {}", error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_board_is_valid_and_named_like_its_file() {
        let boards = all(None).unwrap();
        for (board, (file, _)) in boards.iter().zip(KNOWN) {
            assert_eq!(format!("{}.toml", board.name), file);
        }
        assert!(boards.iter().any(|board| board.processor == Processor::CortexM));
        assert!(boards.iter().all(|board| board.link == LinkKind::Debugger));
        assert!(boards.iter().all(|board| board.with_link(LinkKind::Uart).is_ok()));
    }

    #[test]
    fn a_mistake_in_a_board_file_is_named() {
        let (_, text) = KNOWN[0];
        let wrong = [
            ("name = \"riscv64-virt\"", "name = \"a b\"", "`name`"),
            ("stack_bytes = 0x1_0000", "stack_bytes = 8", "stack_bytes"),
            ("origin = 0x8040_0000", "origin = 0x8000_0000", "overlap"),
            ("[counter]", "[counter]\nspeed = 1", "speed"),
            ("\"target-instructions\"", "\"time\"", "clock"),
            ("bytes = 0x40_0000", "bytes = 0x1000", "flash.bytes"),
            ("bytes = 0x40_0000", "bytes = 0x3f_fffd", "flash.bytes"),
            ("bytes = 0x40_0000", "bytes = -1", "bytes"),
            ("bytes = 0x40_0000", "bytes = 0xffff_ffff_ffff_ffff", "64 bits"),
            ("origin = 0x8000_0000", "origin = 0x7fff_fff2", "flash.origin"),
            ("stack_bytes = 0x1_0000", "stack_bytes = 0x7fff_ffff_ffff_fff0", "half of the RAM"),
        ];
        for (from, to, word) in wrong {
            let error = Board::parse("x.toml", &text.replacen(from, to, 1)).unwrap_err();
            assert!(error.message().contains("x.toml") && error.message().contains(word), "{error}");
        }
    }

    #[test]
    fn the_memory_of_32_bits_ends_below_4_gib() {
        let (_, text) = KNOWN[1];
        let at = |origin: &str| Board::parse("x.toml", &text.replace("0x8040_0000", origin));
        assert!(at("0xffbf_ff00").is_ok());
        assert!(at("0xffc0_0000").unwrap_err().message().contains("4 GiB"));
    }

    /// From twice the stack below the RAM, for RISC-V.
    #[test]
    fn a_serial_port_in_protected_memory_is_refused() {
        let at = |(_, text): (&str, &str), address: &str, ram: &str| {
            let text = text.replace(ram, "0x9000_0000");
            let (first, rest) = text.split_once("[uart]").unwrap();
            let (_, rest) = rest.split_once("address = ").unwrap();
            let (_, rest) = rest.split_once('\n').unwrap();
            Board::parse("x.toml", &format!("{first}[uart]\ndriver = \"cmsdk\"\naddress = {address}\n{rest}"))
        };
        for known in [KNOWN[0], KNOWN[1]] {
            for address in ["0x8ffd_ffff", "0x9000_0000"] {
                at(known, address, "0x8040_0000").unwrap();
            }
            for address in ["0x8ffe_0000", "0x8fff_ffff"] {
                let error = at(known, address, "0x8040_0000").unwrap_err();
                assert!(error.message().contains("0x8ffe0000..0x90000000"), "{error}");
            }
        }
        at(KNOWN[2], "0x8fff_ffff", "0x2000_0000").unwrap();
    }

    /// A board file with other tables in place of the emulator and its serial port.
    fn with_tables(first: &str, tables: &str) -> Result<Board> {
        let (common, _) = KNOWN[0].1.split_once("[uart]").unwrap();
        Board::parse("x.toml", &format!("{first}\n{}\n{tables}", common.replace("riscv64-virt", "mine")))
    }

    #[test]
    fn a_board_needs_what_its_link_uses() {
        let server = "[server]\naddress = \"localhost:3333\"\ncommand = [\"probe\", \"{folder}/a.cfg\"]";
        let port = "[uart]\ndriver = \"driver.c\"\nport = \"/dev/ttyUSB0\"";
        let mut probed = with_tables("", server).unwrap();
        probed.locate(Path::new("/boards"));
        assert_eq!(probed.server.as_ref().unwrap().command[1], "/boards/a.cfg");
        let reason = probed.unavailable_reason(|program| program != "probe").unwrap();
        assert!(reason.contains("probe"), "{reason}");
        let mut wired = with_tables("link = \"uart\"", port).unwrap();
        wired.locate(Path::new("/boards"));
        assert_eq!(wired.uart.unwrap().driver, "/boards/driver.c");
        let wrong = [
            ("", ""),
            ("", port),
            ("link = \"uart\"", server),
            ("link = \"uart\"", "[uart]\ndriver = \"cmsdk\""),
        ];
        for (link, tables) in wrong {
            let error = with_tables(link, tables).unwrap_err();
            assert!(error.message().contains("the link \""), "{error}");
        }
        let both = KNOWN[0].1.replace("driver =", "port = \"/dev/ttyUSB0\"\ndriver =");
        assert!(Board::parse("x.toml", &both).unwrap_err().message().contains("an emulated board"));
        let still = with_tables("link = \"uart\"", &format!("{port}\nbaud = 0")).unwrap_err();
        assert!(still.message().contains("`uart.baud`"), "{still}");
        assert!(probed.with_link(LinkKind::Uart).unwrap_err().message().contains("mine"));
    }

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let board = &all(None).unwrap()[0];
        assert_eq!(board.unavailable_reason(|_| true), None);
        let no_emulator = board.unavailable_reason(|program| !program.contains("qemu")).unwrap();
        assert!(no_emulator.contains("apt-get install qemu-system-misc"), "{no_emulator}");
        let no_compiler = board.unavailable_reason(|program| !program.contains("gcc")).unwrap();
        assert!(no_compiler.contains("picolibc-riscv64-unknown-elf"), "{no_compiler}");
    }

    #[test]
    fn the_board_of_the_documentation_is_valid() {
        let page = include_str!("../../../docs/embedded.md");
        let block = page.split("```toml").nth(1).unwrap().split("```").next().unwrap();
        assert_eq!(Board::parse("docs/embedded.md", block).unwrap().name, "my-board");
    }

    #[test]
    fn a_relative_folder_has_absolute_paths() {
        let folder = tempfile::tempdir().unwrap();
        let text = KNOWN[2].1.replace("mps2-an385", "mine").replace("\"cmsdk\"", "\"own.c\"");
        std::fs::write(folder.path().join("mine.toml"), text).unwrap();
        let current = std::env::current_dir().unwrap();
        let up: PathBuf = current.components().skip(1).map(|_| "..").collect();
        let boards = all(Some(&up.join(folder.path().strip_prefix("/").unwrap()))).unwrap();
        let driver = &boards[KNOWN.len()].uart.as_ref().unwrap().driver;
        assert!(driver.starts_with('/') && driver.ends_with("/own.c"), "{driver}");
    }

    #[test]
    fn boards_of_a_folder_follow_the_known_ones() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.toml"), KNOWN[2].1.replace("mps2-an385", "mine")).unwrap();
        std::fs::write(folder.path().join("notes.txt"), "no board").unwrap();
        let boards = all(Some(folder.path())).unwrap();
        assert_eq!(boards[KNOWN.len()].name, "mine");
        std::fs::write(folder.path().join("again.toml"), KNOWN[2].1).unwrap();
        assert!(all(Some(folder.path())).unwrap_err().message().contains("already"));
    }

    #[test]
    fn what_others_can_change_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let text = KNOWN[2].1.replace("mps2-an385", "mine").replace("\"cmsdk\"", "\"parts/own.c\"");
        let flash = "[uart]\nflash = [\"{folder}/tools/flash\", \"{elf}\"]";
        std::fs::write(folder.path().join("mine.toml"), text.replace("[uart]", flash)).unwrap();
        for (place, file) in [("parts", "own.c"), ("tools", "flash")] {
            std::fs::create_dir(folder.path().join(place)).unwrap();
            std::fs::write(folder.path().join(place).join(file), "").unwrap();
        }
        for place in ["", "mine.toml", "parts", "parts/own.c", "tools", "tools/flash"] {
            all(Some(folder.path())).unwrap();
            let path = folder.path().join(place);
            let before = path.metadata().unwrap().permissions();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
            let error = all(Some(folder.path())).unwrap_err();
            assert!(error.message().contains("other users may write to"), "{place}: {error}");
            std::fs::set_permissions(&path, before).unwrap();
        }
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let refused = || all(Some(folder.path())).unwrap_err().message().contains("regular file");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success() && refused(), "a pipe without a writer");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(refused(), "a device");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(refused(), "a folder");
        std::fs::remove_dir(&path).unwrap();
        std::fs::File::create(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(refused(), "a large file");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let text = KNOWN[0].1.replace("[uart]", &format!("[uart]\nflash = {}", "[".repeat(1 << 18)));
        assert!(Board::parse("x.toml", &text).unwrap_err().message().contains("x.toml"));
    }
}
