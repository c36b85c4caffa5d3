//! The link through a debugger: it writes the image, and accesses memory while the target is stopped at `runtime_park`.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use runtime_core::{Error, ErrorKind, Result};

use super::emulator::Emulator;
use super::link::{Link, PREPARE_DEADLINE, Surroundings};
use super::mailbox::Header;
use crate::boards::{Board, Processor};
use crate::gdb::{Client, Deadlines, GdbError, GdbErrorKind};
use crate::image::Image;

/// Bytes of a breakpoint instruction: compressed, or Thumb.
const BREAKPOINT_BYTES: u8 = 2;

/// A target behind a debugger.
#[derive(Debug)]
pub(super) struct DebugLink {
    processor: Processor,
    client: Client<UnixStream>,
    image: Arc<Image>,
    emulator: Emulator,
}

impl DebugLink {
    /// Starts a target and flashes an image.
    ///
    /// # Errors
    /// `Unavailable` if the emulator does not start; `Timeout` or `Io` if it does not answer.
    pub(super) fn start(board: &Board, image: &Arc<Image>, around: &Surroundings) -> Result<Self> {
        let settings = board.emulator.as_ref().ok_or_else(|| Error::invalid("the board has no emulator"))?;
        let (mut emulator, stream) = Emulator::start(settings, None, &around.spawner, &around.folder)?;
        let client = Client::connect(stream, Deadlines::default())
            .map_err(|error| from_gdb(&error).with_note(emulator.last_words()))?;
        let mut link = Self { processor: board.processor, client, image: Arc::clone(image), emulator };
        let park = image.symbols.park;
        link.client.insert_breakpoint(park, BREAKPOINT_BYTES).map_err(|error| from_gdb(&error))?;
        link.flash(image)?;
        Ok(link)
    }

    /// Lets the target run until it stops at `runtime_park`.
    fn resume(&mut self, until: Instant, phase: &str) -> Result<()> {
        let stopped = self.client.resume(until);
        if stopped.map_err(|error| from_gdb(&error).with_note(self.emulator.last_words()))?.is_some() {
            let pc = self.pc()?;
            return match pc == self.image.symbols.park {
                true => Ok(()),
                false => Err(Error::new(
                    ErrorKind::Failed,
                    format!("the target stopped in {}", self.image.locate(pc)),
                )),
            };
        }
        let stopped = self.client.interrupt().map_err(|error| from_gdb(&error))?;
        if stopped.is_none() {
            return Err(Error::new(
                ErrorKind::Timeout,
                format!("{phase}: the target runs, and cannot be interrupted"),
            ));
        }
        let pc = self.pc()?;
        Err(Error::new(ErrorKind::Timeout, format!("it was still running, in {}", self.image.locate(pc))))
    }

    /// Sets the registers as after a reset.
    fn set_registers(&mut self) -> Result<()> {
        self.write_register(self.pc_register(), self.image.symbols.start)?;
        if self.processor == Processor::CortexM {
            // xPSR with the Thumb bit; an empty vector table has left it clear.
            self.write_register(25, 1 << 24)?;
        }
        Ok(())
    }

    fn pc(&mut self) -> Result<u64> {
        self.client.read_register(self.pc_register()).map_err(|error| from_gdb(&error))
    }

    fn write_register(&mut self, number: u32, value: u64) -> Result<()> {
        let bytes = self.processor.word_bytes();
        self.client.write_register(number, value, bytes).map_err(|error| from_gdb(&error))
    }

    const fn pc_register(&self) -> u32 {
        match self.processor {
            Processor::Riscv64 | Processor::Riscv32 => 32,
            Processor::CortexM => 15,
        }
    }
}

impl Link for DebugLink {
    fn flash(&mut self, image: &Arc<Image>) -> Result<()> {
        let (old, new) = (self.image.symbols.park, image.symbols.park);
        if old != new {
            self.client.remove_breakpoint(old, BREAKPOINT_BYTES).map_err(|error| from_gdb(&error))?;
            self.client.insert_breakpoint(new, BREAKPOINT_BYTES).map_err(|error| from_gdb(&error))?;
        }
        for segment in &image.segments {
            self.write(segment.address, &segment.bytes)?;
        }
        self.image = Arc::clone(image);
        self.write(image.symbols.mailbox, &[0; Header::BYTES])?;
        self.set_registers()?;
        self.resume(Instant::now() + PREPARE_DEADLINE, "start")
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.client.read_memory(address, bytes).map_err(|error| from_gdb(&error))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.client.write_memory(address, bytes).map_err(|error| from_gdb(&error))
    }

    fn execute(&mut self, until: Instant) -> Result<()> {
        let resume = self.image.symbols.resume;
        self.write_register(self.pc_register(), resume)?;
        self.resume(until, "run")
    }

    fn is_usable(&self) -> bool {
        !self.client.is_broken()
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
