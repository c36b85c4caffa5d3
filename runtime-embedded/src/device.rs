//! The device list, and opened devices.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::{Allocate, Device, Level, Log, NoGraph, Program, Source, is_privileged};
use runtime_core::code::{ImageSizes, Register, RunReport};
use runtime_core::device::{Limits, MemorySpace};
use runtime_core::{DeviceInfo, DeviceKind, Error, ErrorKind, Options, QueueOptions, Result};

use crate::absent::Absent;
use crate::boards::{Board, LinkKind, Processor};
use crate::convert;
use crate::image::{Builder, Image, is_installed};
use crate::module;
use crate::target::{Constant, FunctionTrace, Outcome, Session, Surroundings, place_constants};
use crate::timer;

/// Describes a board, with the reason if it cannot be used here.
pub(crate) fn describe(board: &Board, index: u32) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Embedded, index, &board.name);
    info.arch = Some(
        match board.processor {
            Processor::Riscv64 => "riscv64",
            Processor::Riscv32 => "riscv32",
            Processor::CortexM => "cortex-m",
        }
        .to_owned(),
    );
    info.driver_version = Some(concat!("firmware ", env!("CARGO_PKG_VERSION")).to_owned());
    // DLPack's kDLExtDev: a device type that DLPack does not define.
    info.dlpack_type = 12;
    info.compute_units = Some(1);
    info.formats = module::FORMATS.map(Into::into).to_vec();
    info.spaces = vec![MemorySpace {
        name: "device".to_owned(),
        total_bytes: Some(board.ram.bytes),
        alignment_bytes: 64,
        host_visible: false,
        kernel_visible: true,
    }];
    // Work-group memory is on the stack.
    info.limits = Limits {
        groups: [u64::from(u32::MAX), 1 << 16, 1 << 16],
        group_size: [1024; 3],
        group_items: 1024,
        shared_bytes: board.stack_bytes / 2,
        allocation_bytes: Some(board.ram.bytes),
    };
    let flash_bytes = i64::try_from(board.flash.bytes).unwrap_or(i64::MAX);
    info.properties = Options::new()
        .with("description", board.description.as_str())
        .with("counter", board.counter.clock.as_str())
        .with("emulator", board.emulator.as_ref().map_or("", |emulator| emulator.program.as_str()))
        .with("flash_bytes", flash_bytes)
        .with("stack_bytes", i64::try_from(board.stack_bytes).unwrap_or(i64::MAX));
    info.unavailable_reason = match is_privileged() {
        true => Some("a program with raised privileges runs no compiler and no emulator".to_owned()),
        false => board.unavailable_reason(is_installed),
    };
    info
}

/// An opened board. Its emulator starts with the first flash.
#[derive(Debug)]
pub struct EmbeddedBoard {
    board: Board,
    builder: Arc<Builder>,
    around: Surroundings,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Nothing runs, with the reason.
    Empty(String),
    Flashed(Box<Flashed>),
    /// The last run failed, with the reason. The target can be inspected, and starts again with the next flash.
    Stopped(Box<Flashed>, String),
}

#[derive(Debug)]
struct Flashed {
    session: Session,
    /// Calls of the kernel per run.
    calls: u32,
    /// Sizes of the image, with the constants.
    sizes: ImageSizes,
    /// What a run counts.
    counts: Counts,
}

/// What a run counts.
#[derive(Debug)]
enum Counts {
    /// What the board's counter says.
    Counter,
    /// The same, and the instructions of each function, for a file.
    Functions(PathBuf, FunctionTrace),
    /// All instructions from the start of the counter until the firmware waits again.
    Executed(FunctionTrace),
}

impl EmbeddedBoard {
    pub(crate) fn new(board: Board, builder: Arc<Builder>, log: Log) -> Self {
        let state = Mutex::new(State::Empty("nothing is flashed; call flash first".to_owned()));
        let around = Surroundings { folder: builder.folder().to_owned(), log };
        Self { board, builder, around, state }
    }

    /// Flashes an image on the target, which is started if it does not run.
    fn flash_image(
        &self,
        state: &mut State,
        image: &Arc<Image>,
        constants: &[Constant<'_>],
    ) -> Result<Session> {
        let empty = State::Empty("the last flash failed; flash again".to_owned());
        if let State::Flashed(mut flashed) = std::mem::replace(state, empty)
            && flashed.session.is_usable()
        {
            flashed.session.flash(image, constants)?;
            return Ok(flashed.session);
        }
        Session::start(&self.board, image, constants, &self.around)
    }

    /// What the options ask to count.
    fn counts(&self, options: &Options, image: &Image) -> Result<Counts> {
        let file = options.text("functions").filter(|path| !path.is_empty()).map(PathBuf::from);
        let trace = || FunctionTrace::new(&self.board, image);
        match (file, options.flag("executed")) {
            (None, false) => Ok(Counts::Counter),
            (Some(file), false) => Ok(Counts::Functions(file, trace()?)),
            (None, true) => Ok(Counts::Executed(trace()?)),
            (Some(_), true) => {
                Err(Error::invalid("options \"functions\" and \"executed\" exclude each other"))
            }
        }
    }

    /// Where constants may be: behind an image whose firmware is ours, if the link can write them.
    fn room_for_constants(&self, format: &str, image: &Image) -> Range<u64> {
        match format == "c" && self.board.link == LinkKind::Debugger {
            true => image.free_flash(),
            false => Range::default(),
        }
    }

    /// Adds why data that is only read takes RAM.
    fn explain_memory(&self, error: Error) -> Error {
        match (error.kind(), self.board.link) {
            (ErrorKind::OutOfMemory, LinkKind::Uart) => error.with_note(
                "over a UART, data that the kernel only reads is in RAM too; define it as constants in the code",
            ),
            _ => error,
        }
    }

    fn report(&self, message: &str) {
        self.around.log.write(Level::Debug, "embedded", &format!("{}: {message}", self.board.name));
    }
}

impl Device for EmbeddedBoard {
    type Buffer = Absent;
    type Module = Absent;
    type Queue = Absent;
    type Graph = NoGraph<Absent>;

    fn allocate(&self, _request: &Allocate<'_, Absent>) -> Result<Absent> {
        Err(Error::unsupported("tensors of an embedded device are described, not allocated"))
    }

    fn load(&self, _source: &Source<'_>) -> Result<Absent> {
        Err(Error::unsupported("an embedded device is flashed; it loads no modules"))
    }

    fn open_queue(&self, _options: &QueueOptions) -> Result<Absent> {
        Err(Error::unsupported("an embedded device has no queues"))
    }

    fn flash(&self, image: &Source<'_>, program: &Program<'_>) -> Result<()> {
        let mut state = self.state.lock();
        let calls = module::calls(image.options)?;
        let parameters = convert::parameters(&program.args)?;
        let options = image.options;
        let mut tensors = program.tensors.iter().map(convert::tensor).collect::<Result<Vec<_>>>()?;
        let data: Vec<_> = program.tensors.iter().map(|tensor| tensor.data).collect();
        let format = image.format;
        let image = self.builder.image(image, &parameters)?;
        let counts = self.counts(options, &image)?;
        let constants = place_constants(&mut tensors, &data, self.room_for_constants(format, &image));
        let mut session = self.flash_image(&mut state, &image, &constants)?;
        let addresses = session.prepare(tensors, &data).map_err(|error| self.explain_memory(error))?;
        session.write_args(&convert::words(&program.args, &addresses)?)?;
        let mut sizes = image.sizes;
        let bytes: u64 = constants.iter().map(|(_, data)| data.len() as u64).sum();
        sizes.constant_bytes = sizes.constant_bytes.saturating_add(bytes);
        self.report(&format!(
            "flashed {} bytes of code, {} of constants, {} of data and {} of zeroed data; flash has {}, RAM {}",
            sizes.code_bytes,
            sizes.constant_bytes,
            sizes.data_bytes,
            sizes.zeroed_bytes,
            self.board.flash.bytes,
            self.board.ram.bytes
        ));
        *state = State::Flashed(Box::new(Flashed { session, calls, sizes, counts }));
        Ok(())
    }

    fn run(&self, deadline: Duration) -> Result<RunReport> {
        let mut state = self.state.lock();
        let flashed = flashed(&mut state)?;
        let began = Instant::now();
        let (outcome, executed) = match flashed.run(deadline) {
            Ok(outcome) => outcome,
            Err(error) => {
                state.stop(&error);
                return Err(error);
            }
        };
        let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.report(&format!("used {} of {} bytes of stack", outcome.stack_used, self.board.stack_bytes));
        if outcome.exit_code != 0 {
            return Err(Error::new(ErrorKind::Failed, format!("the kernel returned {}", outcome.exit_code)));
        }
        let count = |ticks| timer::count(&self.board.counter, ticks);
        Ok(RunReport {
            exit_code: 0,
            cycles: Some(executed.unwrap_or_else(|| count(outcome.ticks))),
            elapsed_ns,
            overhead: count(outcome.overhead_ticks),
            stack_bytes: Some(outcome.stack_used),
            image: Some(flashed.sizes),
        })
    }

    fn read(&self, tensor: u32, offset: u64, destination: &mut [u8]) -> Result<()> {
        flashed(&mut self.state.lock())?.session.read(tensor as usize, offset, destination)
    }

    fn read_memory(&self, address: u64, destination: &mut [u8]) -> Result<()> {
        inspected(&mut self.state.lock())?.read_memory(address, destination)
    }

    fn registers(&self) -> Result<Vec<Register>> {
        inspected(&mut self.state.lock())?.registers()
    }
}

impl State {
    /// Keeps the target of a failed run for inspection, if it still answers. A target that did not stop at `runtime_park` is not
    /// resumed.
    fn stop(&mut self, error: &Error) {
        let reason = format!("the last run failed ({}); flash again", error.message());
        if let Self::Flashed(mut flashed) = std::mem::replace(self, Self::Empty(reason.clone()))
            && flashed.session.is_usable()
        {
            *self = Self::Stopped(flashed, reason);
        }
    }
}

impl Flashed {
    /// The outcome of a run, with the instructions that were executed if these are counted.
    fn run(&mut self, deadline: Duration) -> Result<(Outcome, Option<u64>)> {
        match &self.counts {
            Counts::Counter => Ok((self.session.run(self.calls, deadline)?, None)),
            Counts::Functions(file, trace) => {
                let (outcome, counts) = self.session.run_traced(trace, self.calls, deadline)?;
                let lines: String = counts.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
                std::fs::write(file, lines)
                    .map_err(|error| Error::new(ErrorKind::Io, format!("{}: {error}", file.display())))?;
                Ok((outcome, None))
            }
            Counts::Executed(trace) => {
                let (outcome, executed) = self.session.run_counted(trace, self.calls, deadline)?;
                Ok((outcome, Some(executed)))
            }
        }
    }
}

fn flashed(state: &mut State) -> Result<&mut Flashed> {
    match state {
        State::Flashed(flashed) => Ok(flashed),
        State::Empty(reason) | State::Stopped(_, reason) => Err(Error::invalid(reason.as_str())),
    }
}

fn inspected(state: &mut State) -> Result<&mut Session> {
    match state {
        State::Flashed(flashed) | State::Stopped(flashed, _) => Ok(&mut flashed.session),
        State::Empty(reason) => Err(Error::invalid(reason.as_str())),
    }
}
