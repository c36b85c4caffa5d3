//! The link through a debugger: it writes the image, and accesses memory while the target is stopped at `runtime_park`.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use runtime_core::code::Register;
use runtime_core::{Error, ErrorKind, Result};

use super::flash_constants::Constant;
use super::link::{Link, PREPARE_DEADLINE, before_run};
use super::mailbox::Header;
use super::program::Program;
use super::surroundings::Surroundings;
use super::trace::{self, Counts, Pipe, Window};
use super::{emulator, registers, server};
use crate::boards::{Board, Processor};
use crate::gdb::{Client, Deadlines, GdbError, GdbErrorKind, Transport};
use crate::image::Image;

/// The number of xPSR where the server describes no registers.
const USUAL_XPSR: u32 = 25;
/// Bytes of a breakpoint instruction: compressed, or Thumb.
const BREAKPOINT_BYTES: u8 = 2;
/// QEMU's command that resets the processor and its devices.
const RESET_EMULATOR: &str = "system_reset";

/// A target behind a debugger.
#[derive(Debug)]
pub(super) struct DebugLink {
    processor: Processor,
    client: Client<Connection>,
    image: Arc<Image>,
    /// The monitor's command that resets and stops the target, if there is one.
    reset: Option<String>,
    /// The number of xPSR, once it was asked for.
    xpsr: Option<u32>,
    /// Where the breakpoint is.
    breakpoint: Option<u64>,
    /// The emulator, or the server if we have started it.
    program: Option<Program>,
}

/// The connection to the stub of an emulator, or to the server of a debug probe.
#[derive(Debug)]
enum Connection {
    Stub(UnixStream),
    Server(TcpStream),
}

impl Transport for Connection {
    fn send(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        match self {
            Self::Stub(stream) => stream.send(bytes, deadline),
            Self::Server(stream) => stream.send(bytes, deadline),
        }
    }

    fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        match self {
            Self::Stub(stream) => stream.receive(buffer, deadline),
            Self::Server(stream) => stream.receive(buffer, deadline),
        }
    }
}

impl DebugLink {
    /// Starts a target and flashes an image.
    ///
    /// # Errors
    /// `Unavailable` if the emulator or the server does not start; `Timeout` or `Io` if it does not answer.
    pub(super) fn start(
        board: &Board,
        image: &Arc<Image>,
        constants: &[Constant<'_>],
        around: &Surroundings,
    ) -> Result<Self> {
        let (program, connection) = connect(board, around)?;
        Self::begin(board, (image, constants), connection, program)
    }

    /// Resets a target and flashes an image.
    fn begin(
        board: &Board,
        (image, constants): (&Arc<Image>, &[Constant<'_>]),
        connection: Connection,
        mut program: Option<Program>,
    ) -> Result<Self> {
        let client = Client::connect(connection, Deadlines::default())
            .map_err(|error| explain(&error, program.as_mut()))?;
        let mut link = Self {
            processor: board.processor,
            client,
            image: Arc::clone(image),
            reset: board.server.as_ref().map(|server| server.reset.clone()).filter(|reset| !reset.is_empty()),
            xpsr: None,
            breakpoint: None,
            program,
        };
        link.flash(image, constants)?;
        if board.emulator.is_some() {
            link.reset = Some(RESET_EMULATOR.to_owned());
        }
        Ok(link)
    }

    /// A result, whose error has what the program beside the target says.
    fn explained<T>(&mut self, result: Result<T, GdbError>) -> Result<T> {
        result.map_err(|error| explain(&error, self.program.as_mut()))
    }

    /// Sets the target behind `runtime_park`, where it waits for a command.
    fn leave_park(&mut self) -> Result<()> {
        self.write_register(self.pc_register(), self.image.symbols.resume)
    }

    /// Lets the target run until it stops at `runtime_park`.
    ///
    /// # Errors
    /// `Crashed` if it stops elsewhere.
    fn resume(&mut self, until: Instant) -> Result<()> {
        let pc = self.run(until)?;
        match pc == self.image.symbols.park {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Crashed,
                format!("the target stopped in {}", self.image.locate(pc)),
            )),
        }
    }

    /// Lets the target run until it stops, and returns where.
    fn run(&mut self, until: Instant) -> Result<u64> {
        let stopped = self.client.resume(until);
        if self.explained(stopped)?.is_some() {
            return self.pc();
        }
        let stopped = self.client.interrupt();
        if self.explained(stopped)?.is_none() {
            return Err(Error::new(ErrorKind::Timeout, "the target runs, and cannot be interrupted"));
        }
        let pc = self.pc()?;
        Err(Error::new(ErrorKind::Timeout, format!("it was still running, in {}", self.image.locate(pc))))
    }

    /// Lets the target run until it stops at `address`, or at `runtime_park` before. Returns where.
    fn run_to(&mut self, address: u64, until: Instant) -> Result<u64> {
        let done = self.client.insert_breakpoint(address, BREAKPOINT_BYTES);
        self.explained(done)?;
        let stopped = self.run(until);
        let done = self.client.remove_breakpoint(address, BREAKPOINT_BYTES);
        let pc = stopped?;
        self.explained(done)?;
        Ok(pc)
    }

    /// Lets an emulator run one instruction at a time, and returns the counts: between two readings of the counter at `reading`, or all.
    fn logged<T>(
        &mut self,
        reading: Option<u64>,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Counts)> {
        let pipe = Pipe::new()?;
        self.monitor(&[&pipe.command()])?;
        self.monitor(&trace::START)?;
        let counting = pipe.count(reading);
        let ran = counting.and_then(|counting| Ok((run(self)?, counting)));
        let done = self.monitor(&trace::STOP);
        let (result, counting) = ran?;
        done?;
        Ok((result, trace::join(counting)?))
    }

    fn monitor(&mut self, commands: &[&str]) -> Result<()> {
        for command in commands {
            let done = self.client.monitor(command);
            self.explained(done)?;
        }
        Ok(())
    }

    /// Sets the registers as after a reset.
    fn set_registers(&mut self) -> Result<()> {
        self.write_register(self.pc_register(), self.image.symbols.start)?;
        if self.processor == Processor::CortexM {
            // With the Thumb bit; an empty vector table has left it clear.
            let xpsr = self.xpsr()?;
            self.write_register(xpsr, 1 << 24)?;
        }
        Ok(())
    }

    /// The number of xPSR, which differs between servers.
    fn xpsr(&mut self) -> Result<u32> {
        if let Some(number) = self.xpsr {
            return Ok(number);
        }
        let found = self.client.register_number("xpsr");
        let number = self.explained(found)?.unwrap_or(USUAL_XPSR);
        Ok(*self.xpsr.insert(number))
    }

    fn pc(&mut self) -> Result<u64> {
        let pc = self.client.read_register(self.pc_register());
        self.explained(pc)
    }

    fn write_register(&mut self, number: u32, value: u64) -> Result<()> {
        let bytes = self.processor.word_bytes();
        let done = self.client.write_register(number, value, bytes);
        self.explained(done)
    }

    fn pc_register(&self) -> u32 {
        (0..).zip(registers::names(self.processor)).fold(0, |_, (number, _)| number)
    }
}

impl Link for DebugLink {
    fn flash(&mut self, image: &Arc<Image>, constants: &[Constant<'_>]) -> Result<()> {
        // Before the image is written: a breakpoint in memory hides an instruction, which the server would restore later.
        if let Some(old) = self.breakpoint.take() {
            let done = self.client.remove_breakpoint(old, BREAKPOINT_BYTES);
            self.explained(done)?;
        }
        // The last program may have changed the state of the processor and its devices.
        if let Some(reset) = self.reset.clone() {
            self.monitor(&[&reset])?;
        }
        let segments = image.segments.iter().map(|segment| (segment.address, segment.bytes.as_slice()));
        let pieces: Vec<_> = segments.chain(constants.iter().copied()).collect();
        let done = self.client.program(&pieces);
        self.explained(done)?;
        let park = image.symbols.park;
        let done = self.client.insert_breakpoint(park, BREAKPOINT_BYTES);
        self.explained(done)?;
        self.breakpoint = Some(park);
        self.image = Arc::clone(image);
        self.write(image.symbols.mailbox, &[0; Header::BYTES])?;
        self.set_registers()?;
        self.resume(Instant::now() + PREPARE_DEADLINE).map_err(before_run)
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let done = self.client.read_memory(address, bytes);
        self.explained(done)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let done = self.client.write_memory(address, bytes);
        self.explained(done)
    }

    fn execute(&mut self, until: Instant) -> Result<()> {
        self.leave_park()?;
        self.resume(until)
    }

    fn trace(&mut self, window: Window, until: Instant) -> Result<Counts> {
        self.leave_park()?;
        let (park, mut counts) = (self.image.symbols.park, Counts::new());
        let mut pc = self.run_to(window.begin, until)?;
        if pc == window.begin {
            (pc, counts) = self.logged(Some(window.reading), |link| link.run_to(window.end, until))?;
        }
        // A program that crashes is there already.
        if pc != park {
            self.resume(until)?;
        }
        Ok(counts)
    }

    fn execute_counted(&mut self, begin: u64, until: Instant) -> Result<u64> {
        self.leave_park()?;
        if self.run_to(begin, until)? != begin {
            return Ok(0);
        }
        let ((), counts) = self.logged(None, |link| link.resume(until))?;
        Ok(counts.values().sum())
    }

    fn registers(&mut self) -> Result<Vec<Register>> {
        let names = (0..).zip(registers::names(self.processor));
        names
            .map(|(number, name)| {
                let value = self.client.read_register(number);
                Ok(Register { name: (*name).to_owned(), value: self.explained(value)? })
            })
            .collect()
    }

    fn is_usable(&mut self) -> bool {
        !self.client.is_broken() && !self.program.as_mut().is_some_and(Program::has_ended)
    }
}

fn connect(board: &Board, around: &Surroundings) -> Result<(Option<Program>, Connection)> {
    match (&board.emulator, &board.server) {
        (Some(emulator), _) => {
            let (program, stream) = emulator::start(emulator, None, around)?;
            Ok((Some(program), Connection::Stub(stream)))
        }
        (None, Some(server)) => {
            let (program, stream) = server::connect(server, around)?;
            Ok((program, Connection::Server(stream)))
        }
        (None, None) => Err(Error::invalid("the board has neither `emulator` nor `server`")),
    }
}

/// The error, with what the program beside the target says.
fn explain(error: &GdbError, program: Option<&mut Program>) -> Error {
    match program {
        Some(program) => from_gdb(error).with_note(program.last_words()),
        None => from_gdb(error),
    }
}

fn from_gdb(error: &GdbError) -> Error {
    let kind = match error.kind() {
        GdbErrorKind::Timeout => ErrorKind::Timeout,
        GdbErrorKind::Refused => ErrorKind::Driver,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("debugger: {error}")).with_source(error.clone())
}

#[cfg(test)]
mod tests;
