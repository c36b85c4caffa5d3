//! Portable code: how a program brings in what turns it into code that a device takes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::model::options::suggest;
use crate::plugin::instance::Instance;
use crate::queue::arg::Value;
use crate::{
    Access, Arg, CodeFormat, DType, DeviceInfo, Error, ErrorKind, ModuleSource, OptionScope, OptionSpec,
    Options, Param, Result, Tensor,
};

/// Turns portable code into code that a device takes. The crate `runtime-kernel` has one for WGSL.
///
/// A program registers it once, with [`RuntimeBuilder::lower_with`](crate::RuntimeBuilder::lower_with); from then on its
/// format stands in [`DeviceInfo::formats`] of every device that it has a target for, and loading such code is the same
/// call as loading any other.
///
/// # Safety
/// Portable code is safe to load and to launch, whoever wrote it; an implementation vouches for what it makes of it.
/// Whatever [`ModuleSource`] safe code can make, the lowered code touches no memory but that of the arguments of its
/// launch, with the access that its [`LoweredKernel`] states, and does not harm the process.
#[allow(unsafe_code, reason = "decides what native code runs")]
pub unsafe trait Lowering: fmt::Debug + Send + Sync {
    /// The code format that it takes.
    fn format(&self) -> CodeFormat;

    /// The load options that it understands. Others, which only code that its author vouched for may have
    /// ([`ModuleSource::unchecked`]), go to the backend with the lowered code.
    fn options(&self) -> Vec<OptionSpec>;

    /// The format, of those that the device accepts, that it would lower to; `None` if it can make none of them.
    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat>;

    /// Lowers code for a device that it has a target for. The code that it makes touches no memory but that of the
    /// arguments, whatever they are, unless the option `unchecked` of [`ModuleSource::unchecked`] is set.
    ///
    /// # Errors
    /// `CompileFailed` with the compiler's own words; `Unsupported` for what the device cannot do.
    fn lower(&self, source: &Portable<'_>, device: &DeviceInfo) -> Result<Lowered>;
}

/// Portable code to lower.
#[derive(Clone, Copy, Debug)]
pub struct Portable<'a> {
    /// The text.
    pub code: &'a str,
    /// The file it came from, for messages; empty if it came from memory.
    pub path: &'a str,
    /// Those of the load options that the lowering documents, validated.
    pub options: &'a Options,
}

/// Lowered code.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// A format of the device.
    pub format: CodeFormat,
    /// The code.
    pub code: Vec<u8>,
    /// Load options for the backend.
    pub options: Options,
    /// The entry points.
    pub kernels: Vec<LoweredKernel>,
}

/// An entry point of lowered code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredKernel {
    /// Its name in the portable code.
    pub name: String,
    /// Its name in the lowered code.
    pub symbol: String,
    /// Its parameters: what a launch gives.
    pub params: Vec<LoweredParam>,
    /// Work-items of a group per dimension.
    pub group_size: [u32; 3],
    /// Bytes of work-group memory.
    pub shared_bytes: u32,
    /// After these parameters the lowered code takes a `u64` per tensor, in order: how many bytes there are from its
    /// first element to the end of its last.
    pub tensor_sizes: bool,
    /// In front of these parameters the lowered code takes the tensor of a report: one `u32` that is 0. If the kernel
    /// leaves another number there, the launch has failed in that line of the text that this is the name of; `u32::MAX`
    /// stands for an unknown line. Such a launch waits for its end.
    pub reports_on: Option<String>,
}

/// A parameter of an entry point of lowered code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoweredParam {
    /// What it takes.
    pub param: Param,
    /// A tensor's least size in bytes.
    pub min_bytes: u64,
    /// What the address of a tensor's first element must be a multiple of, in bytes: the alignment of what the code reads
    /// there at once. A power of two.
    pub alignment_bytes: u64,
}

impl LoweredKernel {
    /// Checks what only portable code asks of a launch: enough memory behind each tensor, aligned for what the code reads
    /// there, and none that is written under another argument's eyes. The code may count on both.
    pub(crate) fn check(&self, args: &[Arg<'_>]) -> Result<()> {
        for (index, (param, arg)) in self.params.iter().zip(args).enumerate() {
            let Some((tensor, access)) = tensor(arg) else { continue };
            if !tensor.reaches(param.min_bytes) {
                return Err(self.short(index, tensor, param.min_bytes));
            }
            if tensor.alignment_bytes() < param.alignment_bytes {
                return Err(self.misaligned(index, tensor, param.alignment_bytes));
            }
            let clashes = |before: &Arg<'_>| {
                self::tensor(before).is_some_and(|(before, earlier)| {
                    (access.writes() || earlier.writes()) && tensor.overlaps(before)
                })
            };
            if let Some(other) = args[..index].iter().position(clashes) {
                return Err(self.overlapping(other, index));
            }
        }
        Ok(())
    }

    #[cold]
    fn short(&self, index: usize, tensor: &Tensor, needed: u64) -> Error {
        Error::invalid(format!(
            "argument {index} of \"{}\" has {} bytes, the kernel needs {needed}",
            self.name,
            tensor.reach_bytes()
        ))
    }

    #[cold]
    fn misaligned(&self, index: usize, tensor: &Tensor, needed: u64) -> Error {
        Error::invalid(format!(
            "argument {index} of \"{}\" lies at a multiple of {} bytes, the kernel needs one of {needed}; copy it into a \
             tensor of its own",
            self.name,
            tensor.alignment_bytes()
        ))
    }

    #[cold]
    fn overlapping(&self, first: usize, second: usize) -> Error {
        Error::invalid(format!(
            "arguments {first} and {second} of \"{}\" share memory, and one of them is written; pass one tensor \
             and index it, or a copy",
            self.name
        ))
    }

    /// Why a launch has failed that left `line` in its report.
    pub(crate) fn reported(&self, line: u32) -> Error {
        let (name, text) = (&self.name, self.reports_on.as_deref().unwrap_or_default());
        let place = if line == u32::MAX { text.to_owned() } else { format!("{text}:{line}") };
        Error::new(
            ErrorKind::Failed,
            format!(
                "{place}: an index of \"{name}\" that was proven in range is not; the lowering is wrong: please report it"
            ),
        )
    }

    /// The arguments that the lowered code takes beyond `args`.
    pub(crate) fn tensor_sizes<'a>(
        &self,
        args: &'a [Arg<'a>],
    ) -> impl Iterator<Item = Arg<'static>> + use<'a> {
        let args = if self.tensor_sizes { args } else { &[] };
        args.iter()
            .filter_map(|arg| tensor(arg))
            .map(|(tensor, _)| Arg::scalar_bits(DType::U64, tensor.reach_bytes()))
    }
}

fn tensor<'a>(arg: &Arg<'a>) -> Option<(&'a Tensor, Access)> {
    match arg.value {
        Value::Tensor(tensor, access, _) => Some((tensor, access)),
        _ => None,
    }
}

/// Lowers `source` for a device of `instance`, if its format is one that a lowering takes and the device does not.
///
/// # Errors
/// `InvalidArgument` for a wrong option; `Io`; whatever the lowering says.
pub(crate) fn lower(
    source: &ModuleSource,
    instance: &Instance,
    device: &DeviceInfo,
) -> Result<Option<(ModuleSource, Vec<LoweredKernel>)>> {
    let Some(lowering) = find(source.format(), &instance.lowerings) else { return Ok(None) };
    if lowering.target(device).is_none() {
        let known: Vec<_> = device.formats.iter().map(String::as_str).collect();
        let message = format!(
            "code of format \"{}\" cannot be lowered to any that {} accepts; {}",
            source.format(),
            device.id,
            suggest(source.format().as_str(), &known)
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let specs = lowering.options();
    check_options(source, &specs, &instance.specs)?;
    let (mut own, mut rest) = (Options::new(), Options::new());
    for (key, value) in source.options().iter() {
        let list = if specs.iter().any(|spec| spec.key == key) { &mut own } else { &mut rest };
        list.push(key, value.clone());
    }
    let path = source.path().to_string_lossy();
    let lowered = lowering.lower(&Portable { code: &text(source)?, path: &path, options: &own }, device)?;
    let mut options = lowered.options;
    rest.iter().for_each(|(key, value)| options.push(key, value.clone()));
    Ok(Some((ModuleSource::lowered(lowered.format, &path, lowered.code, options), lowered.kernels)))
}

fn find<'a>(format: &CodeFormat, lowerings: &'a [Arc<dyn Lowering>]) -> Option<&'a dyn Lowering> {
    lowerings.iter().find(|lowering| lowering.format() == *format).map(|lowering| &**lowering)
}

/// An option is the lowering's, or, of code that its author vouched for, the backend's: a compiler's flags can make it
/// do anything.
fn check_options(source: &ModuleSource, own: &[OptionSpec], backend: &[OptionSpec]) -> Result<()> {
    if source.is_vouched() {
        let all: Vec<_> = own.iter().chain(backend).cloned().collect();
        return source.options().validate(&all, OptionScope::Module);
    }
    source.options().validate(own, OptionScope::Module)?;
    if source.options().flag("unchecked") {
        return Err(Error::invalid(
            "option \"unchecked\" makes the code as unsafe as native code; set it with ModuleSource::unchecked",
        ));
    }
    Ok(())
}

fn text(source: &ModuleSource) -> Result<Cow<'_, str>> {
    let code = match source.code() {
        Some(code) => Cow::Borrowed(code),
        None => Cow::Owned(std::fs::read(source.path()).map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot read \"{}\": {error}", source.path().display()))
                .with_source(error)
        })?),
    };
    let invalid = |_| Error::new(ErrorKind::CompileFailed, "the code is not UTF-8; is it really text?");
    match code {
        Cow::Borrowed(code) => std::str::from_utf8(code).map(Cow::Borrowed).map_err(invalid),
        Cow::Owned(code) => {
            String::from_utf8(code).map(Cow::Owned).map_err(|error| invalid(error.utf8_error()))
        }
    }
}

/// Adds the formats that a lowering brings to a device's own.
pub(crate) fn announce(lowerings: &[Arc<dyn Lowering>], device: &mut DeviceInfo) {
    for lowering in lowerings {
        let format = lowering.format().to_string();
        if !device.formats.contains(&format) && lowering.target(device).is_some() {
            device.formats.push(format);
        }
    }
}
