//! A job as a program of an embedded device.

use std::path::Path;

use runtime_core::evaluate::EachCall;
use runtime_core::{
    Access, Arg, DType, DeviceKind, EmbeddedDevice, Error, HostArray, LaunchConfig, ModuleSource, Result,
    Tensor,
};

use super::check::Check;
use crate::job::{Job, config, kernel_source, value};
use crate::spec::{ArgumentKind, Init, Interval, TensorSpec};

/// A job with its tensors, described on a device.
pub(super) struct Program<'p> {
    embedded: &'p EmbeddedDevice,
    /// Whether a tool runs it as a whole program: one call per run, and the host sends all data.
    is_whole: bool,
    job: &'p Job,
    source: ModuleSource,
    /// By argument: its tensor, and how it is used.
    tensors: Vec<Option<(Tensor, Access)>>,
    launch: Launch,
}

/// What runs count.
#[derive(Clone, Copy)]
pub(super) enum Count<'a> {
    /// What the board's counter says.
    Counter,
    /// The same, and the count of each function, for a file.
    Functions(&'a Path),
    /// What the emulator executes.
    Executed,
}

/// What a run calls.
enum Launch {
    /// A portable kernel, with its work-groups.
    Groups([u32; 3]),
    /// A function, or a whole image.
    Call,
    /// A function that takes a range of iterations after its arguments.
    Range(i64, i64),
}

impl<'p> Program<'p> {
    /// Describes the tensors of a job.
    ///
    /// # Errors
    /// `Unsupported` for what a device without a driver lacks; the error in the initial data.
    pub(super) fn new(
        embedded: &'p EmbeddedDevice,
        is_whole: bool,
        job: &'p Job,
        check: &Check<'_>,
    ) -> Result<Self> {
        let (spec, code) = (&job.spec, &job.spec.kernel);
        if code.is_package() {
            return Err(Error::unsupported(
                "packages are not supported on embedded devices; name a C or WGSL file",
            ));
        }
        let mut source = kernel_source(job, code, DeviceKind::Embedded)?;
        if code.format == runtime_core::CodeFormat::C {
            source = source.option("entry", code.entry.as_str());
        }
        let is_portable = code.format == runtime_core::CodeFormat::WGSL;
        let launch = match is_portable {
            true => {
                let info = embedded.kernel_info(&source, &code.entry)?;
                groups(config(spec, info.group_size)?)?
            }
            false => call(spec.config)?,
        };
        let inputs = job.inputs.as_ref().map_err(Clone::clone)?;
        let tensors = spec.args.iter().zip(inputs).enumerate().map(|(index, (arg, input))| match &arg.kind {
            ArgumentKind::Tensor(tensor) => {
                let described = describe(embedded, !is_whole, tensor, input.as_ref(), check.poison(index));
                let described = described.map_err(|error| error.in_operation(&arg.name))?;
                Ok(Some((described, tensor.access)))
            }
            // Native code takes work-group memory as a pointer to memory of its own.
            ArgumentKind::Local(bytes) if !is_portable => {
                let bytes = usize::try_from(*bytes).unwrap_or(usize::MAX);
                Ok(Some((embedded.tensor_from_seed(DType::U8, &[bytes], 0)?, Access::Write)))
            }
            _ => Ok(None),
        });
        Ok(Self { embedded, is_whole, job, source, tensors: tensors.collect::<Result<_>>()?, launch })
    }

    /// Flashes it with its initial data; each run makes `calls` calls.
    ///
    /// # Errors
    /// Those of [`EmbeddedDevice::flash`].
    pub(super) fn flash(&self, calls: u64, count: Count<'_>) -> Result<()> {
        let calls = i64::try_from(calls).unwrap_or(i64::MAX);
        let mut source = self.source.clone();
        if !self.is_whole {
            source = source.option("calls", calls);
        }
        match count {
            Count::Counter => {}
            Count::Functions(file) => source = source.option("functions", file.to_string_lossy().as_ref()),
            Count::Executed => source = source.option("executed", true),
        }
        let args = self.job.spec.args.iter().zip(&self.tensors);
        let mut args: Vec<Arg<'_>> = args
            .filter_map(|(arg, tensor)| match tensor {
                Some((tensor, access)) => Some(Arg::tensor(tensor, *access)),
                None => value(&arg.kind),
            })
            .collect();
        match self.launch {
            Launch::Groups(groups) => {
                self.embedded.flash_kernel(&source, &self.job.spec.kernel.entry, groups, &args)
            }
            Launch::Call => self.embedded.flash(&source, &args),
            Launch::Range(begin, end) => {
                args.extend([Arg::scalar(begin), Arg::scalar(end)]);
                self.embedded.flash(&source, &args)
            }
        }
    }

    /// The content of a tensor argument after a run, and how it is used.
    ///
    /// # Errors
    /// Those of [`EmbeddedDevice::read`]; `InvalidArgument` if it is no tensor.
    pub(super) fn read(&self, argument: usize) -> Result<(HostArray, Access)> {
        let Some(Some((_, access))) = self.tensors.get(argument) else {
            return Err(Error::invalid(format!("argument {argument} is not a tensor")));
        };
        let before = self.tensors[..argument].iter().flatten().count();
        Ok((self.embedded.read(before)?, *access))
    }

    /// Whether a run changes what the next one reads.
    pub(super) fn updates_tensors(&self) -> bool {
        self.tensors.iter().flatten().any(|(_, access)| *access == Access::ReadWrite)
    }

    /// The elements of its outputs.
    pub(super) fn written_elements(&self) -> u64 {
        let elements = self.job.spec.outputs().filter_map(|(index, _)| self.tensors[index].as_ref());
        elements.map(|(tensor, _)| tensor.len() as u64).sum()
    }
}

fn groups(config: LaunchConfig) -> Result<Launch> {
    match config {
        LaunchConfig::Groups(geometry) if geometry.cluster == [1; 3] && !geometry.cooperative => {
            Ok(Launch::Groups(geometry.groups))
        }
        LaunchConfig::Groups(_) => {
            Err(Error::unsupported("clusters and cooperative groups are not supported on embedded devices"))
        }
        LaunchConfig::Range(_) => Err(Error::invalid("portable code takes no range; launch work-groups")),
    }
}

fn call(config: LaunchConfig) -> Result<Launch> {
    match config {
        LaunchConfig::Groups(geometry) if geometry.is_single() => Ok(Launch::Call),
        LaunchConfig::Groups(_) => Err(Error::unsupported(
            "native code on an embedded device is a function call, without work-groups",
        )),
        LaunchConfig::Range(range) => Ok(Launch::Range(range.begin, range.end)),
    }
}

/// Describes a tensor with its initial content, or filled with `poison` if it is only written. `makes_data` says whether the device
/// makes random numbers.
fn describe(
    embedded: &EmbeddedDevice,
    makes_data: bool,
    spec: &TensorSpec,
    input: Option<&HostArray>,
    poison: u8,
) -> Result<Tensor> {
    if spec.strides.is_some() || spec.offset != 0 {
        return Err(Error::unsupported("strides and offsets are not supported on embedded devices"));
    }
    if spec.each_call == EachCall::Initial {
        return Err(Error::unsupported(
            "each_call = \"initial\" is not supported on embedded devices, which make the calls of a run without a pause; leave it out",
        ));
    }
    match (input, &spec.init) {
        // The same numbers, which need not be sent.
        (Some(_), Init::Random { seed, range }) if makes_data && *range == Interval::of(spec.dtype) => {
            embedded.tensor_from_seed(spec.dtype, &spec.shape, *seed)
        }
        (Some(input), _) => embedded.tensor_from_array(input.clone()),
        (None, _) if poison != u8::MAX => {
            let mut array = HostArray::new(spec.dtype, &spec.shape)?;
            array.bytes_mut().fill(poison);
            embedded.tensor_from_array(array)
        }
        (None, _) => embedded.tensor_from_seed(spec.dtype, &spec.shape, 0),
    }
}
