//! The runner: loads a candidate's code, and calls it when the judge says so.

#![allow(unsafe_code, reason = "runs a candidate's code")]

use std::fs::File;
use std::io::{self, BufReader};

use runtime_core::backend::start_no_processes;
use runtime_core::code::Record;
use runtime_core::{
    Access, Arg, CodeFormat, DType, Device, Error, ErrorKind, Kernel, LaunchConfig, ModuleSource, Queue,
    Result, Runtime, Tensor,
};

use super::memory::SharedMemory;
use super::protocol::{self, Answer, Load, Order, Parameter, Region};
use crate::job::signed;
use crate::platform;

/// Characters of an error.
const MAX_TEXT: usize = 2000;

/// Obeys a judge, whose channel is standard input; the tensors' memory is standard output.
///
/// # Errors
/// `Io` if the streams cannot be used; `Unsupported` if the system cannot keep the process from starting others.
///
/// # Safety
/// The judge names the code that is run.
pub unsafe fn run() -> Result<()> {
    platform::die_with_parent();
    let (channel, file) = platform::take_standard_streams().map_err(|error| io_error(&error))?;
    let memory = SharedMemory::of(&file).map_err(|error| io_error(&error))?;
    // Foreign code could change its size.
    drop(file);
    let mut judge = Channel {
        input: BufReader::new(channel.try_clone().map_err(|error| io_error(&error))?),
        output: channel,
    };
    judge.answer(&Answer::Hello)?;
    let load = loop {
        match judge.next()? {
            Some(Order::Load(load)) => break load,
            // How long an order and its answer take.
            Some(Order::Call { window, .. }) => judge.answer(&Answer::Done(window))?,
            None => return Ok(()),
        }
    };
    if !load.is_trusted {
        start_no_processes()?;
    }
    let candidate = match Candidate::load(&load, &memory) {
        Ok(candidate) => candidate,
        Err(error) => return judge.answer(&failed(&error)),
    };
    judge.answer(&Answer::Loaded)?;
    while let Some(order) = judge.next()? {
        let Order::Call { window, set, number } = order else { break };
        let called = (0..number).try_for_each(|_| candidate.call(set));
        let answer = called.map_or_else(|error| failed(&error), |()| Answer::Done(window));
        judge.answer(&answer)?;
    }
    Ok(())
}

/// The text of an error, of which the judge reads no more.
fn failed(error: &Error) -> Answer {
    Answer::Failed(error.to_string().chars().take(MAX_TEXT).collect())
}

fn io_error(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the channel of the judge: {error}"))
}

/// The connection with the judge.
struct Channel {
    input: BufReader<File>,
    output: File,
}

impl Channel {
    fn next(&mut self) -> Result<Option<Order>> {
        protocol::read_order(&mut self.input).map_err(|error| io_error(&error))
    }

    fn answer(&mut self, answer: &Answer) -> Result<()> {
        protocol::write(&mut self.output, answer).map_err(|error| io_error(&error))
    }
}

/// Loaded code with its arguments.
struct Candidate {
    launch: LaunchConfig,
    _device: Device,
    queue: Queue,
    kernel: Kernel,
    /// By set of tensors.
    args: Vec<Vec<Held>>,
}

/// An argument, or what it borrows from.
enum Held {
    Tensor(Tensor, Access),
    Scalar(DType, u64),
    Record(Record),
    Bytes(Vec<u8>),
    Local(u64),
}

impl Candidate {
    fn load(load: &Load, memory: &SharedMemory) -> Result<Self> {
        // SAFETY: the judge names the backend that it uses itself.
        let builder = unsafe { Runtime::builder().discover(false).library(&load.backend) };
        let device = builder.build().open("host:0")?;
        // SAFETY: the judge names the code; whoever started it has vouched for that.
        let mut source = unsafe { ModuleSource::native_file(CodeFormat::SHARED_OBJECT, &load.code) };
        for (key, value) in load.options.iter() {
            source = source.option(key, value.clone());
        }
        let kernel = device.kernel(&source, &load.entry)?;
        let of_set = |args: &Vec<Parameter>| args.iter().map(|arg| Held::of(arg, &device, memory)).collect();
        let args = load.sets.iter().map(of_set).collect::<Result<_>>()?;
        Ok(Self { launch: load.launch.into(), queue: device.queue()?, _device: device, kernel, args })
    }

    fn call(&self, set: Option<usize>) -> Result<()> {
        match set.and_then(|set| self.args.get(set)) {
            Some(args) => {
                let args: Vec<Arg<'_>> = args.iter().map(Held::arg).collect();
                self.queue.call(&self.kernel, self.launch, &args)
            }
            None => self.queue.call_noop(),
        }
    }
}

impl Held {
    /// A parameter, whose tensor is in the shared memory.
    fn of(arg: &Parameter, device: &Device, memory: &SharedMemory) -> Result<Self> {
        Ok(match arg {
            Parameter::Tensor { dtype, shape, region, reads, writes } => {
                let host = device
                    .as_host()
                    .ok_or_else(|| Error::new(ErrorKind::Internal, "the device is no host"))?;
                let Region { at, elements, strides, offset } = region;
                let memory = memory.address(*at, elements * dtype.bytes());
                let buffer = if strides.is_some() { std::slice::from_ref(elements) } else { shape };
                let access = match (reads, writes) {
                    (true, true) => Access::ReadWrite,
                    (false, true) => Access::Write,
                    (_, false) => Access::Read,
                };
                // SAFETY: the memory is mapped as long as this process lives; the judge touches it between windows only.
                let tensor = unsafe { host.import(memory, *dtype, buffer) }?;
                match strides {
                    Some(strides) => Self::Tensor(tensor.view(shape, &signed(strides)?, *offset)?, access),
                    None => Self::Tensor(tensor, access),
                }
            }
            Parameter::Scalar(dtype, bits) => Self::Scalar(*dtype, *bits),
            Parameter::Record(fields) => {
                let with = |record: Record, (dtype, bits): &(DType, u64)| record.with_bits(*dtype, *bits);
                Self::Record(fields.iter().try_fold(Record::new(), with)?)
            }
            Parameter::Bytes(bytes) => Self::Bytes(bytes.clone()),
            Parameter::Local(bytes) => Self::Local(*bytes),
        })
    }

    fn arg(&self) -> Arg<'_> {
        match self {
            Self::Tensor(tensor, access) => Arg::tensor(tensor, *access).strided(),
            Self::Scalar(dtype, bits) => Arg::scalar_bits(*dtype, *bits),
            Self::Record(record) => Arg::record(record),
            Self::Bytes(bytes) => Arg::bytes(bytes),
            Self::Local(bytes) => Arg::local(*bytes),
        }
    }
}
