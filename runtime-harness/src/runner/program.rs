//! The runner: loads a candidate's code, and calls it when the judge says so.

#![allow(unsafe_code, reason = "runs a candidate's code")]

use std::fs::File;
use std::io::{self, BufReader};

use runtime_core::backend::start_no_processes;
use runtime_core::{
    Access, Arg, CodeFormat, Device, Error, ErrorKind, Geometry, Kernel, ModuleSource, Queue, Result,
    Runtime, Tensor,
};

use super::memory::SharedMemory;
use super::protocol::{self, Answer, Load, Order, Parameter};
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
    let (channel, file) = platform::take_standard_streams().map_err(|error| io_error(&error))?;
    let memory = SharedMemory::of(&file).map_err(|error| io_error(&error))?;
    // Foreign code could change its size.
    drop(file);
    let mut judge = Channel {
        input: BufReader::new(channel.try_clone().map_err(|error| io_error(&error))?),
        output: channel,
    };
    judge.answer(&Answer::Hello)?;
    let Some(Order::Load(load)) = judge.next()? else { return Ok(()) };
    start_no_processes()?;
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
struct Candidate<'l> {
    load: &'l Load,
    _device: Device,
    queue: Queue,
    kernel: Kernel,
    /// By set.
    tensors: Vec<Vec<Option<Tensor>>>,
}

impl<'l> Candidate<'l> {
    fn load(load: &'l Load, memory: &SharedMemory) -> Result<Self> {
        // SAFETY: the judge names the backend that it uses itself.
        let builder = unsafe { Runtime::builder().discover(false).library(&load.backend) };
        let device = builder.build().open("host:0")?;
        // SAFETY: the judge names the code; whoever started it has vouched for that.
        let mut source = unsafe { ModuleSource::native_file(CodeFormat::SHARED_OBJECT, &load.code) };
        for (key, value) in load.options.iter() {
            source = source.option(key, value.clone());
        }
        let kernel = device.kernel(&source, &load.entry)?;
        let of_set = |args: &Vec<Parameter>| args.iter().map(|arg| imported(arg, &device, memory)).collect();
        let tensors = load.sets.iter().map(of_set).collect::<Result<_>>()?;
        Ok(Self { load, queue: device.queue()?, _device: device, kernel, tensors })
    }

    fn call(&self, set: Option<usize>) -> Result<()> {
        let Some((args, tensors)) = set.and_then(|set| self.load.sets.get(set).zip(self.tensors.get(set)))
        else {
            return self.queue.call_noop();
        };
        let geometry =
            Geometry { groups: self.load.groups, group_size: self.load.group_size, ..Geometry::default() };
        let args = args.iter().zip(tensors).filter_map(|(arg, tensor)| argument(arg, tensor.as_ref()));
        self.queue.call(&self.kernel, geometry, &args.collect::<Vec<_>>())
    }
}

fn argument<'a>(arg: &Parameter, tensor: Option<&'a Tensor>) -> Option<Arg<'a>> {
    match (arg, tensor) {
        (Parameter::Tensor { reads, writes, .. }, Some(tensor)) => {
            let access = match (reads, writes) {
                (true, true) => Access::ReadWrite,
                (false, true) => Access::Write,
                (_, false) => Access::Read,
            };
            Some(Arg::tensor(tensor, access))
        }
        (Parameter::Scalar(dtype, bits), _) => Some(Arg::scalar_bits(*dtype, *bits)),
        (Parameter::Local(bytes), _) => Some(Arg::local(*bytes)),
        (Parameter::Tensor { .. }, None) => None,
    }
}

/// The tensor of an argument, in the shared memory.
fn imported(arg: &Parameter, device: &Device, memory: &SharedMemory) -> Result<Option<Tensor>> {
    let Parameter::Tensor { dtype, shape, at, .. } = arg else { return Ok(None) };
    let host = device.as_host().ok_or_else(|| Error::new(ErrorKind::Internal, "the device is no host"))?;
    let bytes = shape.iter().product::<usize>() * dtype.bytes();
    // SAFETY: the memory is mapped as long as this process lives; the judge touches it between windows only.
    unsafe { host.import(memory.address(*at, bytes), *dtype, shape) }.map(Some)
}
