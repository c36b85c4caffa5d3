//! The link over a serial port: the firmware accesses memory for the host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::backend::Level;
use runtime_core::{Error, ErrorKind, Result};

use super::emulator;
use super::flash_constants::Constant;
use super::link::Link;
use super::port::Port;
use super::program::Program;
use super::surroundings::Surroundings;
use crate::boards::{Board, Uart};
use crate::image::{Image, run_command};
use crate::uart::{Client, Deadlines, Log, RunState, crc32};

/// What a byte takes at one bit per second, with its start and stop bits.
const BYTE_AT_ONE_BAUD: Duration = Duration::from_secs(10);
/// For a command that writes an image, to flash that may be slow.
const FLASH_DEADLINE: Duration = Duration::from_secs(15 * 60);
/// For a command that resets a board.
const RESET_DEADLINE: Duration = Duration::from_secs(2 * 60);

const EMULATOR_DEADLINES: Deadlines = Deadlines {
    start: Duration::from_secs(60),
    reply: Duration::from_secs(10),
    last_question: Duration::from_secs(1),
    byte: Duration::ZERO,
};

/// A target behind a serial port.
#[derive(Debug)]
pub(super) struct UartLink {
    board: Board,
    around: Surroundings,
    image: Arc<Image>,
    client: Client<Port>,
    emulator: Option<Program>,
}

impl UartLink {
    /// Starts an emulator with the image, or flashes a board, and begins a session with its firmware.
    ///
    /// # Errors
    /// `Unavailable` if the emulator or the port cannot be opened; `Timeout` if the firmware does not answer;
    /// `InvalidArgument` if the board has another image.
    pub(super) fn start(board: &Board, image: &Arc<Image>, around: &Surroundings) -> Result<Self> {
        let uart = board.uart.as_ref().ok_or_else(|| Error::invalid("the board has no `uart`"))?;
        let (port, emulator) = connect(board, uart, image, around)?;
        let mut link = Self {
            board: board.clone(),
            around: around.clone(),
            image: Arc::clone(image),
            client: client(board, uart, around, port),
            emulator,
        };
        link.begin()?;
        Ok(link)
    }

    /// Begins a session with firmware that has just started.
    fn begin(&mut self) -> Result<()> {
        self.greet()?;
        // The firmware of a board may have been running for a while.
        if self.emulator.is_none() {
            self.restart()?;
        }
        self.check_image()
    }

    fn restart(&mut self) -> Result<()> {
        self.client.restart().map_err(|error| self.explain(error))?;
        self.greet()
    }

    fn greet(&mut self) -> Result<()> {
        let greeting = self.client.greet().map_err(|error| self.explain(error))?;
        let mailbox = self.image.symbols.mailbox;
        if greeting.mailbox != mailbox {
            let found = format!("its mailbox is at {:#x}, not at {mailbox:#x}", greeting.mailbox);
            return Err(self.other_image(&found));
        }
        Ok(())
    }

    fn check_image(&mut self) -> Result<()> {
        match self.difference()? {
            Some(range) => Err(self.other_image(&range)),
            None => Ok(()),
        }
    }

    /// Where the board's flash differs from the image.
    fn difference(&mut self) -> Result<Option<String>> {
        let image = Arc::clone(&self.image);
        for segment in image.segments.iter().filter(|segment| image.contains(segment.address)) {
            let found = self.client.checksum(segment.address, segment.bytes.len() as u64);
            if found.map_err(|error| self.explain(error))? != crc32(&segment.bytes) {
                return Ok(Some(format!(
                    "the {} bytes at {:#x} differ",
                    segment.bytes.len(),
                    segment.address
                )));
            }
        }
        Ok(None)
    }

    fn other_image(&self, found: &str) -> Error {
        Error::invalid(format!(
            "board {} runs another image: {found}; flash it, or set `uart.flash` in the board file",
            self.board.name
        ))
    }

    /// Adds what the emulator says, or what to do with a board.
    fn explain(&mut self, error: Error) -> Error {
        let is_silent = error.kind() == ErrorKind::Timeout;
        match &mut self.emulator {
            Some(emulator) => error.with_note(emulator.last_words()),
            None if is_silent => {
                error.with_note("press the board's reset button, or set `uart.reset` in the board file")
            }
            None => error,
        }
    }
}

/// Opens the line to a target that runs the image.
fn connect(
    board: &Board,
    uart: &Uart,
    image: &Image,
    around: &Surroundings,
) -> Result<(Port, Option<Program>)> {
    if let Some(settings) = &board.emulator {
        let (emulator, stream) = emulator::start(settings, Some(image.file()), around)?;
        let port = Port::from_socket(stream)
            .map_err(|error| Error::new(ErrorKind::Io, format!("the emulator's serial port: {error}")))?;
        return Ok((port, Some(emulator)));
    }
    // The port first: some boards start when it is opened.
    let mut port = Port::open(uart).map_err(|error| unavailable(uart, &error))?;
    run_commands(uart, image, around, &mut port)?;
    Ok((port, None))
}

/// Runs the commands of the board file while they may lock the port.
fn run_commands(uart: &Uart, image: &Image, around: &Surroundings, port: &mut Port) -> Result<()> {
    if uart.flash.is_empty() && uart.reset.is_empty() {
        return Ok(());
    }
    port.unlock().map_err(|error| unavailable(uart, &error))?;
    run_command(&uart.flash, image.file(), &around.folder, FLASH_DEADLINE)?;
    run_command(&uart.reset, image.file(), &around.folder, RESET_DEADLINE)?;
    port.lock().map_err(|error| unavailable(uart, &error))
}

fn unavailable(uart: &Uart, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("serial port {}: {error}", uart.port))
}

fn client(board: &Board, uart: &Uart, around: &Surroundings, port: Port) -> Client<Port> {
    let deadlines = match board.emulator {
        // Its line loses nothing, but a busy machine makes it slow.
        Some(_) => EMULATOR_DEADLINES,
        None => Deadlines { byte: BYTE_AT_ONE_BAUD / uart.baud.max(1), ..Deadlines::default() },
    };
    Client::new(port, deadlines, log(board, around))
}

fn log(board: &Board, around: &Surroundings) -> Log {
    let (name, log) = (board.name.clone(), around.log);
    Box::new(move |text| log.write(Level::Info, "embedded", &format!("{name}: {}", text.trim_end())))
}

impl Link for UartLink {
    fn flash(&mut self, image: &Arc<Image>, _constants: &[Constant<'_>]) -> Result<()> {
        let is_same = Arc::ptr_eq(image, &self.image);
        self.image = Arc::clone(image);
        if is_same {
            self.restart()?;
            // A program may have changed its own code, where flash is memory that can be written.
            if self.difference()?.is_none() {
                return Ok(());
            }
        }
        let uart = self.board.uart.as_ref().ok_or_else(|| Error::invalid("the board has no `uart`"))?;
        if self.emulator.is_some() {
            let (port, emulator) = connect(&self.board, uart, image, &self.around)?;
            self.client = client(&self.board, uart, &self.around, port);
            self.emulator = emulator;
        } else {
            run_commands(uart, image, &self.around, self.client.transport())?;
        }
        self.begin()
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.client.read_memory(address, bytes).map_err(|error| self.explain(error))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.client.write_memory(address, bytes).map_err(|error| self.explain(error))
    }

    fn execute(&mut self, until: Instant) -> Result<()> {
        match self.client.run(until).map_err(|error| self.explain(error))? {
            RunState::Done => Ok(()),
            RunState::Running => Err(Error::new(ErrorKind::Timeout, "it was still running")),
        }
    }

    fn is_usable(&mut self) -> bool {
        !self.client.is_broken() && !self.emulator.as_mut().is_some_and(Program::has_ended)
    }
}
