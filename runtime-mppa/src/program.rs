//! Whole programs on a board or a simulator: flashed to a file, run by a command, their tensors exchanged as files.

mod traces;

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::{
    Level, Log, OptionSpec, Process, Program, ProgramArg, Source, TensorDescription,
};
use runtime_core::code::RunReport;
use runtime_core::{DTypeClass, Error, ErrorKind, Options, Result};

use crate::config::{Arch, MppaConfig};
use crate::elf;
use crate::offload::extended;
use crate::process::{self, io_error};
use crate::readiness::Readiness;
use crate::template::{Template, Values};
use crate::tools::Tools;
use crate::unavailable;
use crate::work_folder::WorkFolder;
use traces::Traces;

/// Files of the device itself, not traces.
const PROGRAM: &str = "program.elf";
const TENSOR: &str = "tensor";

/// The options of devices that run whole programs.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![OptionSpec::device_code(
        "command",
        "",
        "The command that runs a whole program, split at spaces, run without a shell. {program} is its file, {args} its arguments, \
             {arch}, {work_dir} and {timeout_s} the architecture, the work folder and the deadline in seconds; by default that of the \
             platform's tool.",
    )]
}

/// An opened device that runs whole programs.
#[derive(Debug)]
pub(crate) struct ProgramDevice {
    config: MppaConfig,
    arch: Arch,
    template: Template,
    ready: Readiness,
    folder: WorkFolder,
    traces: Option<Traces>,
    flashed: Mutex<Option<Flashed>>,
    log: Log,
}

#[derive(Debug)]
struct Flashed {
    program: PathBuf,
    tensors: Vec<PathBuf>,
    args: Vec<String>,
}

impl ProgramDevice {
    /// Opens the device of the configured platform. Starts nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong command; `Unavailable` if its tool is not installed; `Io`.
    pub(crate) fn open(config: MppaConfig, tools: &Tools, options: &Options, log: Log) -> Result<Self> {
        let arch = config.arch();
        let template = match options.text("command").filter(|command| !command.is_empty()) {
            Some(command) => Template::parse(command)?,
            None => Template::of_platform(config.platform, arch, tools).ok_or_else(|| {
                unavailable(format!(
                    "{} is not installed; install AccessCore and set KALRAY_TOOLCHAIN_DIR, or set option \"command\"",
                    Template::tools(config.platform)
                ))
            })?,
        };
        let ready = Readiness::of(options)?;
        let folder = WorkFolder::create(&config)?;
        let traces = Traces::new(&config, folder.path())?;
        Ok(Self { config, arch, template, ready, folder, traces, flashed: Mutex::default(), log })
    }

    /// Writes the program and its tensors.
    ///
    /// # Errors
    /// `InvalidArgument` for a program of another architecture; `Unsupported` for arguments that programs cannot take; `Io`.
    pub(crate) fn flash(&self, image: &Source<'_>, program: &Program<'_>) -> Result<()> {
        let mut flashed = self.flashed.lock();
        *flashed = None;
        let code = image.bytes()?;
        elf::check(&code, self.arch)?;
        let file = self.write(PROGRAM, &code)?;
        make_executable(&file)?;
        let tensors = program.tensors.iter().enumerate();
        let tensors = tensors
            .map(|(index, tensor)| self.write_tensor(&format!("{TENSOR}{index}.bin"), tensor))
            .collect::<Result<Vec<_>>>()?;
        let args = program.args.iter().map(|arg| argument(*arg, &tensors)).collect::<Result<Vec<_>>>()?;
        *flashed = Some(Flashed { program: file, tensors, args });
        Ok(())
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// `Timeout`, `Failed` with the exit code or signal, each with the output; `Unavailable` if the command cannot be run.
    pub(crate) fn run(&self, deadline: Duration) -> Result<RunReport> {
        let flashed = self.flashed.lock();
        let flashed = flashed.as_ref().ok_or_else(nothing_flashed)?;
        let values = Values {
            program: path_text(&flashed.program)?,
            arch: self.arch,
            work_dir: path_text(self.folder.path())?,
            timeout_s: deadline.as_secs().saturating_add(u64::from(deadline.subsec_nanos() > 0)),
            args: &flashed.args,
        };
        let words = self.template.fill(values)?;
        let level = if self.config.verbose { Level::Info } else { Level::Debug };
        self.log.write(level, "mppa", &format!("runs {}", words.join(" ")));
        let mut process = process::start(&words, self.folder.path(), &self.config.variables())?;
        let ended = self.wait(&mut process, deadline);
        self.collect_traces();
        let (status, elapsed_ns) = ended?;
        self.log.write(level, "mppa", &format!("{status}; it printed: {}", process.output()));
        if status.success() {
            return Ok(RunReport { elapsed_ns, ..RunReport::default() });
        }
        Err(process.failure(ErrorKind::Failed, &format!("failed ({status})")))
    }

    /// Waits for the end of a run. Returns its status, and its time from the moment that it is ready.
    fn wait(&self, process: &mut Process, deadline: Duration) -> Result<(ExitStatus, u64)> {
        if let Some(text) = &self.ready.text {
            process.wait_ready(text, self.ready.timeout)?;
        }
        let began = Instant::now();
        let status = process.wait(deadline)?;
        Ok((status, u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Reads bytes of a tensor, as the program left them.
    ///
    /// # Errors
    /// `InvalidArgument` for a tensor that does not exist; `Io`, also if the program truncated its file.
    pub(crate) fn read(&self, tensor: u32, offset: u64, destination: &mut [u8]) -> Result<()> {
        use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
        let flashed = self.flashed.lock();
        let tensors = &flashed.as_ref().ok_or_else(nothing_flashed)?.tensors;
        let path = tensors.get(tensor as usize).ok_or_else(|| no_tensor(tensor, tensors.len()))?;
        // The program may have put a pipe there, whose writer would be waited for.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let read = file.and_then(|file| file.read_exact_at(destination, offset));
        read.map_err(|error| io_error(path, error))
    }

    /// Collects the traces of a run, also of one that failed. A trace that is lost is no reason to lose the run.
    fn collect_traces(&self) {
        let Some(traces) = &self.traces else { return };
        let is_own = |name: &OsStr| {
            let name = name.to_string_lossy();
            name == PROGRAM || name.starts_with(TENSOR)
        };
        if let Err(error) = traces.collect(self.folder.path(), is_own) {
            self.log.write(Level::Warning, "mppa", error.message());
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        process::remove_stale(&path)?;
        std::fs::write(&path, bytes).map_err(|error| io_error(&path, error))?;
        Ok(path)
    }

    /// Writes the contents of a tensor before the run. Zeros take no space until the program writes them.
    fn write_tensor(&self, name: &str, tensor: &TensorDescription<'_>) -> Result<PathBuf> {
        let bytes = size_bytes(tensor)?;
        match tensor.data {
            Some(data) if data.len() as u64 == bytes => self.write(name, data),
            Some(data) => Err(Error::invalid(format!("data has {} bytes, the tensor {bytes}", data.len()))),
            None if tensor.seed == 0 => {
                let path = self.write(name, &[])?;
                let sized = File::options().write(true).open(&path).and_then(|file| file.set_len(bytes));
                sized.map(|()| path.clone()).map_err(|error| io_error(&path, error))
            }
            None => Err(Error::unsupported(
                "a whole program does not fill tensors from a seed; describe the tensor with its data",
            )),
        }
    }
}

fn nothing_flashed() -> Error {
    Error::invalid("nothing is flashed; call flash first")
}

fn no_tensor(index: u32, count: usize) -> Error {
    Error::invalid(format!("tensor {index} does not exist; the program has {count}"))
}

fn path_text(path: &std::path::Path) -> Result<&str> {
    path.to_str().ok_or_else(|| {
        Error::invalid(format!("{} is not UTF-8; set option \"work_dir\" to another folder", path.display()))
    })
}

/// Makes the file executable: the tests' fake simulators run it directly.
fn make_executable(path: &std::path::Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(path, mode).map_err(|error| io_error(path, error))
}

/// Size of a tensor's contents.
fn size_bytes(tensor: &TensorDescription<'_>) -> Result<u64> {
    let element = u64::try_from(tensor.dtype.bytes()).ok();
    let multiply = |bytes: u64, extent: &i64| bytes.checked_mul(u64::try_from(*extent).ok()?);
    element
        .and_then(|element| tensor.shape.iter().try_fold(element, multiply))
        .ok_or_else(|| Error::invalid(format!("shape {:?} is negative or too large", tensor.shape)))
}

/// An argument of the program's command line: the path of a tensor's file, or a number.
fn argument(arg: ProgramArg<'_>, tensors: &[PathBuf]) -> Result<String> {
    let (dtype, bits) = match arg {
        ProgramArg::Tensor(index) => {
            let path = tensors.get(index as usize).ok_or_else(|| no_tensor(index, tensors.len()))?;
            return path_text(path).map(str::to_owned);
        }
        ProgramArg::Bytes(_) => {
            return Err(Error::unsupported("a whole program takes no structures; pass their fields"));
        }
        ProgramArg::Scalar(dtype, bits) => (dtype, bits),
    };
    let [a, b, c, d, ..] = bits.to_le_bytes();
    match (dtype.class(), dtype.bytes()) {
        (DTypeClass::Float, 4) => Ok(f32::from_le_bytes([a, b, c, d]).to_string()),
        (DTypeClass::Float, 8) => Ok(f64::from_bits(bits).to_string()),
        (DTypeClass::Int, bytes) => Ok(extended(bits, bytes).cast_signed().to_string()),
        (DTypeClass::UInt | DTypeClass::Bool, _) => Ok(bits.to_string()),
        _ => {
            Err(Error::unsupported(format!("a whole program takes no scalar of type {dtype}; pass a tensor")))
        }
    }
}

#[cfg(test)]
mod tests;
