//! The session with the firmware of a target: flash, prepare, run, read.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::code::Register;
use runtime_core::{Error, ErrorKind, Result};

use super::debug_link::DebugLink;
use super::fault;
use super::flash_constants::Constant;
use super::function_trace::FunctionTrace;
use super::link::{Link, PREPARE_DEADLINE, before_run};
use super::mailbox::{
    self, ALIGNMENT, CONSTANT, FaultRecord, GUARD_BYTES, Header, KEEP, State, TensorRecord,
};
use super::registers;
use super::surroundings::Surroundings;
use super::uart_link::UartLink;
use crate::boards::{Board, LinkKind, Processor};
use crate::image::Image;
use crate::uart::crc32;

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) exit_code: i32,
    /// Ticks of the counter for all calls.
    pub(crate) ticks: u64,
    /// Ticks between two readings of the counter, which are part of `ticks`.
    pub(crate) overhead_ticks: u64,
    pub(crate) stack_used: u64,
}

/// A target with a flashed image.
#[derive(Debug)]
pub(crate) struct Session {
    processor: Processor,
    link: Box<dyn Link>,
    image: Arc<Image>,
    tensors: Vec<TensorRecord>,
    /// Stack and memory for tensors, as the firmware has reported them after its start.
    memory: [Range<u64>; 2],
    /// The checksums of the constants, by tensor.
    constants: Vec<(usize, u32)>,
    /// What the firmware has recorded of the program's crash.
    fault: Option<FaultRecord>,
    /// Whether the program has run since the image was flashed.
    has_run: bool,
}

impl Session {
    /// Starts a target and flashes an image with constants.
    ///
    /// # Errors
    /// `Unavailable` if the emulator does not start; `Timeout` or `Io` if it does not answer; `InvalidArgument` for an image
    /// that does not follow the protocol.
    pub(crate) fn start(
        board: &Board,
        image: &Arc<Image>,
        constants: &[Constant<'_>],
        around: &Surroundings,
    ) -> Result<Self> {
        // A UART takes no constants.
        let link: Box<dyn Link> = match board.link {
            LinkKind::Debugger => Box::new(DebugLink::start(board, image, constants, around)?),
            LinkKind::Uart => Box::new(UartLink::start(board, image, around)?),
        };
        let mut session = Self {
            processor: board.processor,
            link,
            image: Arc::clone(image),
            tensors: Vec::new(),
            memory: [0..0, 0..0],
            constants: Vec::new(),
            fault: None,
            has_run: false,
        };
        session.check_ready()?;
        Ok(session)
    }

    /// Replaces the image of a target whose firmware waits.
    ///
    /// # Errors
    /// As for [`Session::start`].
    pub(crate) fn flash(&mut self, image: &Arc<Image>, constants: &[Constant<'_>]) -> Result<()> {
        self.link.flash(image, constants)?;
        self.image = Arc::clone(image);
        self.tensors.clear();
        self.constants.clear();
        self.fault = None;
        self.has_run = false;
        self.check_ready()
    }

    fn check_ready(&mut self) -> Result<()> {
        let header = self.header()?;
        self.memory = header.memory();
        match header.state {
            State::Ready => Ok(()),
            other => Err(Error::new(ErrorKind::Io, format!("the firmware is {other:?} after its start"))),
        }
    }

    /// Places tensors other than constants in memory, and lets the firmware create their contents. Returns
    /// the addresses of all.
    ///
    /// # Errors
    /// `OutOfMemory`, with the figures; `Timeout` or `Io`.
    pub(crate) fn prepare(
        &mut self,
        mut tensors: Vec<TensorRecord>,
        data: &[Option<&[u8]>],
    ) -> Result<Vec<u64>> {
        place(&mut tensors, self.memory[1].clone())?;
        let records: Vec<u8> = tensors.iter().flat_map(|tensor| tensor.to_bytes()).collect();
        self.write_mailbox(mailbox::TENSORS, &records)?;
        let mut sent = Vec::new();
        for (index, (tensor, data)) in tensors.iter().zip(data).enumerate() {
            let Some(data) = data.filter(|_| [KEEP, CONSTANT].contains(&tensor.content)) else { continue };
            sent.push((index, crc32(data)));
            match tensor.content {
                KEEP => self.link.write(tensor.address, data)?,
                _ => self.constants.extend(sent.last()),
            }
        }
        let until = Instant::now() + PREPARE_DEADLINE;
        let prepared = self.command((mailbox::PREPARE, tensors.len(), 0), |link| link.execute(until));
        prepared.map_err(before_run)?;
        let addresses = tensors.iter().map(|tensor| tensor.address).collect();
        self.tensors = tensors;
        for (index, checksum) in sent {
            self.check_arrival(index, checksum)?;
        }
        Ok(addresses)
    }

    /// Compares the checksum of data with the one that the target has made of it.
    fn check_arrival(&mut self, index: usize, checksum: u32) -> Result<()> {
        match self.checksum_and_damage(index)?.0 == checksum {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Io,
                format!("tensor {index} was damaged on its way: its checksum differs from the target's"),
            )),
        }
    }

    /// Writes the arguments of the kernel.
    ///
    /// # Errors
    /// `Timeout` or `Io`.
    pub(crate) fn write_args(&mut self, args: &[u64]) -> Result<()> {
        let args: Vec<u8> = args.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write_mailbox(mailbox::ARGS, &args)
    }

    /// Calls the kernel `calls` times.
    ///
    /// # Errors
    /// `Timeout`, with the place where the kernel was; `Crashed` for a fault; `Failed` for a write outside a tensor.
    pub(crate) fn run(&mut self, calls: u32, deadline: Duration) -> Result<Outcome> {
        Ok(self.run_with(calls, deadline, |link, until| link.execute(until))?.0)
    }

    /// As [`Session::run`], and returns the instructions of each function, the largest count first. The sum is the count of the run.
    ///
    /// # Errors
    /// As for [`Session::run`].
    pub(crate) fn run_traced(
        &mut self,
        trace: &FunctionTrace,
        calls: u32,
        deadline: Duration,
    ) -> Result<(Outcome, Vec<(String, u64)>)> {
        let (outcome, counts) =
            self.run_with(calls, deadline, |link, until| link.trace(trace.window, until))?;
        Ok((outcome, trace.sum(counts)))
    }

    /// As [`Session::run`], and returns how many instructions the target has executed since the firmware started the counter, its own
    /// included.
    ///
    /// # Errors
    /// As for [`Session::run`].
    pub(crate) fn run_counted(
        &mut self,
        trace: &FunctionTrace,
        calls: u32,
        deadline: Duration,
    ) -> Result<(Outcome, u64)> {
        self.run_with(calls, deadline, |link, until| link.execute_counted(trace.window.begin, until))
    }

    /// Calls the kernel `calls` times; `execute` lets the target execute the command until a time.
    fn run_with<T>(
        &mut self,
        calls: u32,
        deadline: Duration,
        execute: impl FnOnce(&mut dyn Link, Instant) -> Result<T>,
    ) -> Result<(Outcome, T)> {
        let until = Instant::now() + deadline;
        let command = (mailbox::RUN, self.tensors.len(), calls);
        let ran = self.command(command, |link| execute(link, until));
        let (header, result) = ran.map_err(|error| after(deadline, error))?;
        Ok((self.outcome(&header)?, result))
    }

    /// The result of a run, unless it has written outside its tensors.
    fn outcome(&mut self, header: &Header) -> Result<Outcome> {
        for index in 0..self.tensors.len() {
            let (checksum, damaged) = self.checksum_and_damage(index)?;
            let is_changed = self.constants.iter().any(|&(at, known)| at == index && known != checksum);
            let verb = match damaged {
                0 if is_changed => "changed",
                0 => continue,
                1 => "wrote before",
                _ => "wrote beyond",
            };
            let message =
                format!("the kernel {verb} tensor {index}, which has {} bytes", self.tensors[index].bytes);
            let note = if is_changed { " and is only read" } else { "" };
            return Err(Error::new(ErrorKind::Failed, message + note));
        }
        Ok(Outcome {
            exit_code: header.exit_code,
            ticks: header.count,
            overhead_ticks: header.overhead,
            stack_used: header.stack_used,
        })
    }

    /// Reads bytes of a tensor. A whole tensor is compared with the checksum that the target has made of it.
    ///
    /// # Errors
    /// `InvalidArgument` for a range outside the tensor; `Io` if the checksum differs; `Timeout`.
    pub(crate) fn read(&mut self, index: usize, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let tensor = self.tensors.get(index).copied().ok_or_else(|| {
            Error::invalid(format!("tensor {index} does not exist; the program has {}", self.tensors.len()))
        })?;
        runtime_core::backend::check_range("read", offset, bytes.len() as u64, tensor.bytes)?;
        self.link.read(tensor.address + offset, bytes)?;
        match bytes.len() as u64 == tensor.bytes {
            true => self.check_arrival(index, crc32(bytes)),
            false => Ok(()),
        }
    }

    /// Reads memory of a target that has stopped.
    ///
    /// # Errors
    /// `Driver` for an address without memory; `Timeout` or `Io`.
    pub(crate) fn read_memory(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        // Debuggers and firmware would drop the bits beyond an address, and wrap around at its end.
        let bits = self.processor.word_bytes() * 8;
        if u128::from(address) + bytes.len() as u128 > 1 << bits {
            let reason =
                format!("{} bytes at {address:#x} reach beyond the {bits}-bit address space", bytes.len());
            return Err(Error::new(ErrorKind::Driver, reason));
        }
        self.link.read(address, bytes)
    }

    /// The registers of a target that has stopped: after a crash, those that the firmware has recorded of the program.
    ///
    /// # Errors
    /// `Unsupported` without a debugger; `Timeout` or `Io`.
    pub(crate) fn registers(&mut self) -> Result<Vec<Register>> {
        match &self.fault {
            Some(fault) => Ok(registers::of_fault(self.processor, fault)),
            None => self.link.registers(),
        }
    }

    /// Whether the target can take another image as it is.
    pub(crate) fn is_usable(&mut self) -> bool {
        self.link.is_usable()
    }

    fn checksum_and_damage(&mut self, index: usize) -> Result<(u32, u32)> {
        let mut record = [0; mailbox::TENSOR_BYTES];
        let address = self.image.symbols.mailbox + mailbox::TENSORS + (index * mailbox::TENSOR_BYTES) as u64;
        self.link.read(address, &mut record)?;
        mailbox::checksum_and_damage(self.tensors[index], &record).ok_or_else(|| self.overwritten())
    }

    /// Writes a command with its tensors and calls, lets the firmware execute it, and returns its mailbox.
    fn command<T>(
        &mut self,
        (command, tensors, calls): (u32, usize, u32),
        execute: impl FnOnce(&mut dyn Link) -> Result<T>,
    ) -> Result<(Header, T)> {
        self.write_mailbox(mailbox::COMMAND, &mailbox::command(command, tensors, calls))?;
        self.has_run |= command == mailbox::RUN;
        let executed = execute(self.link.as_mut())?;
        let tensors = u32::try_from(tensors).unwrap_or(u32::MAX);
        Ok((self.done([command, tensors, calls])?, executed))
    }

    /// The mailbox after this command, if it has been executed.
    fn done(&mut self, command: [u32; 3]) -> Result<Header> {
        let header = self.header().map_err(|error| match error.kind() {
            ErrorKind::InvalidArgument => self.overwritten(),
            _ => error,
        })?;
        match header.state {
            State::Done if header.command == command && header.memory() == self.memory => Ok(header),
            State::Done => Err(self.overwritten()),
            State::Crashed => Err(self.crash(&header)),
            State::Ready => Err(Error::new(ErrorKind::Io, "the target was reset during the command")),
            State::Invalid if self.has_run => Err(Error::new(
                ErrorKind::Failed,
                "the kernel called runtime_park or runtime_serve; only the firmware may",
            )),
            other => Err(Error::new(ErrorKind::Io, format!("the firmware is {other:?} after a command"))),
        }
    }

    /// The error for a mailbox that is not as host and firmware have left it.
    fn overwritten(&self) -> Error {
        match self.has_run {
            true => Error::new(
                ErrorKind::Failed,
                "the kernel wrote over the mailbox, the firmware's own data; check its bounds",
            ),
            false => Error::new(
                ErrorKind::Io,
                "the mailbox changed before the kernel ran; check the link and the board's RAM",
            ),
        }
    }

    fn crash(&mut self, header: &Header) -> Error {
        let cause = fault::describe(self.processor, &header.fault, &self.memory[0]);
        let fault = &header.fault;
        self.fault = Some(*fault);
        let place = match fault.pc {
            0 => self.image.locate(fault.lr),
            pc => self.image.locate(pc),
        };
        let called = match self.image.contains(fault.pc) {
            true => String::new(),
            false => format!(", called from {}", self.image.locate(fault.lr)),
        };
        Error::new(
            ErrorKind::Crashed,
            format!(
                "the program crashed: {cause}, in {place}{called}; sp {:#x}, lr {:#x}",
                fault.sp, fault.lr
            ),
        )
        .with_driver(
            if cause.starts_with("stack overflow") { "stack-overflow" } else { "fault" },
            fault.cause.cast_signed(),
        )
    }

    fn header(&mut self) -> Result<Header> {
        let mut bytes = [0; Header::BYTES];
        self.link.read(self.image.symbols.mailbox, &mut bytes)?;
        Header::parse(&bytes)
    }

    fn write_mailbox(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let address = self.image.symbols.mailbox + offset;
        self.link.write(address, bytes)
    }
}

/// An error of a run that has ended so long after its begin.
fn after(deadline: Duration, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Timeout => {
            Error::new(ErrorKind::Timeout, format!("after {deadline:?}, {}", error.message()))
        }
        _ => error,
    }
}

/// Gives tensors other than constants their addresses.
fn place(tensors: &mut [TensorRecord], memory: Range<u64>) -> Result<()> {
    // Sums of 64-bit numbers, which do not overflow here.
    let begin = u128::from(memory.start);
    let mut next = begin;
    for tensor in tensors.iter_mut().filter(|tensor| tensor.content != CONSTANT) {
        let address = (next + u128::from(GUARD_BYTES)).next_multiple_of(ALIGNMENT.into());
        next = address + u128::from(tensor.bytes) + u128::from(GUARD_BYTES);
        tensor.address = u64::try_from(address).unwrap_or(u64::MAX);
    }
    if next <= u128::from(memory.end) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::OutOfMemory,
        format!(
            "the tensors need {} bytes with their guards; the board has {} bytes of RAM for them",
            next - begin,
            memory.end - memory.start
        ),
    ))
}

#[cfg(test)]
mod tests;
