//! Portable code: lowered when it is loaded; its additional requirements are checked at launch.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::code::arg::ArgValue;
use crate::code::registers;
use crate::code::source::DEBUG;
use crate::model::compiled::CompiledCode;
use crate::model::kernel_info::KernelInfo;
use crate::model::lowering::{Coarsening, LoweredKernel, Lowering};
use crate::model::options::{OptionScope, OptionSpec, did_you_mean};
use crate::model::portable_source::PortableSource;
use crate::plugin::instance::Instance;
use crate::{
    Access, Arg, CodeFormat, DType, DeviceInfo, Error, ErrorKind, LaunchConfig, ModuleSource, Options,
    Result, Tensor,
};

impl LoweredKernel {
    /// Adds what the portable code says to what the driver reports. The code is more precise.
    pub(crate) fn describe(&self, info: &mut KernelInfo) {
        info.params = Some(self.params.iter().map(|param| param.param).collect());
        info.group_size = Some(self.group_size);
        if self.work_items.is_some() {
            info.max_group_items = Some(self.group_size.iter().product());
        }
        // Some drivers report 0 (PoCL 6).
        info.shared_bytes = info.shared_bytes.max(Some(self.shared_bytes));
    }

    /// Checks the additional requirements of portable code, which the lowered code relies on: each tensor is
    /// large enough and sufficiently aligned, and a written tensor does not overlap another argument.
    pub(crate) fn check(&self, args: &[Arg<'_>]) -> Result<()> {
        for (index, (param, arg)) in self.params.iter().zip(args).enumerate() {
            let Some((tensor, access)) = tensor(arg) else { continue };
            if !tensor.covers(param.min_bytes) {
                return Err(self.too_small(index, tensor, param.min_bytes));
            }
            if tensor.alignment_bytes() < param.alignment_bytes {
                return Err(self.misaligned(index, tensor, param.alignment_bytes));
            }
            let conflicts = |before: &Arg<'_>| {
                self::tensor(before).is_some_and(|(before, earlier)| {
                    (access.writes() || earlier.writes()) && tensor.overlaps(before)
                })
            };
            if let Some(other) = args[..index].iter().position(conflicts) {
                return Err(self.overlapping(other, index));
            }
        }
        Ok(())
    }

    #[cold]
    fn too_small(&self, index: usize, tensor: &Tensor, needed: u64) -> Error {
        Error::invalid(format!(
            "argument {index} of \"{}\" has {} bytes, but the kernel needs {needed}",
            self.name,
            tensor.extent_bytes()
        ))
    }

    #[cold]
    fn misaligned(&self, index: usize, tensor: &Tensor, needed: u64) -> Error {
        Error::invalid(format!(
            "argument {index} of \"{}\" is aligned to {} bytes, but the kernel needs {needed}; copy it into a tensor of its own",
            self.name,
            tensor.alignment_bytes()
        ))
    }

    #[cold]
    fn overlapping(&self, first: usize, second: usize) -> Error {
        Error::invalid(format!(
            "arguments {first} and {second} of \"{}\" share memory, and one of them is written; pass a single tensor \
             and index into it, or pass a copy",
            self.name
        ))
    }

    /// The error of a launch that left `line` in its report.
    pub(crate) fn reported(&self, line: u32) -> Error {
        let (name, text) = (&self.name, self.reports_on.as_deref().unwrap_or_default());
        let place = if line == u32::MAX { text.to_owned() } else { format!("{text}:{line}") };
        Error::new(
            ErrorKind::Failed,
            format!(
                "{place}: an index of \"{name}\" that was proven in range is out of range; this is a bug in the lowering, please report it"
            ),
        )
    }

    /// The number by which a launch divides its groups along x, if it is coarsened.
    pub(crate) fn group_divisor(&self, config: &LaunchConfig) -> Option<NonZeroU32> {
        let (Some(coarsening), LaunchConfig::Groups(geometry)) = (self.coarsening, config) else {
            return None;
        };
        let Coarsening { factor, min_groups, min_groups_x } = coarsening;
        let groups = geometry.groups.iter().fold(1, |all: u64, &groups| all.saturating_mul(groups.into()));
        let pays = groups >= min_groups && geometry.groups[0] >= min_groups_x;
        NonZeroU32::new(factor).filter(|_| pays && geometry.cluster == [1; 3])
    }

    /// The arguments that the lowered code takes in addition to `args`: the number of groups, and the sizes of the tensors.
    pub(crate) fn hidden_args<'a>(
        &self,
        config: &LaunchConfig,
        args: &'a [Arg<'a>],
    ) -> impl Iterator<Item = Arg<'static>> + use<'a> {
        let groups = match (self.coarsening, config) {
            (Some(_), LaunchConfig::Groups(geometry)) => Some(Arg::scalar(geometry.groups[0])),
            _ => None,
        };
        groups.into_iter().chain(self.tensor_sizes(args))
    }

    fn tensor_sizes<'a>(&self, args: &'a [Arg<'a>]) -> impl Iterator<Item = Arg<'static>> + use<'a> {
        let args = if self.tensor_sizes { args } else { &[] };
        args.iter()
            .filter_map(|arg| tensor(arg))
            .map(|(tensor, _)| Arg::scalar_bits(DType::U64, tensor.extent_bytes()))
    }
}

fn tensor<'a>(arg: &Arg<'a>) -> Option<(&'a Tensor, Access)> {
    match arg.value {
        ArgValue::Tensor(tensor, access, _) => Some((tensor, access)),
        _ => None,
    }
}

/// How portable code is brought to a device: its lowering, the format that results, and its options, checked and split.
pub(crate) struct LoweringPlan<'a> {
    lowering: &'a dyn Lowering,
    target: CodeFormat,
    own: Options,
    backend: Options,
}

impl<'a> LoweringPlan<'a> {
    /// The plan for `source` on a device of `instance`; `None` if no lowering accepts its format.
    ///
    /// # Errors
    /// `Unsupported` if the device accepts no format that it can be lowered to; `InvalidArgument` for an unknown or invalid
    /// option.
    pub(crate) fn of(
        source: &ModuleSource,
        instance: &'a Instance,
        device: &DeviceInfo,
    ) -> Result<Option<Self>> {
        let Some(lowering) = find_lowering(source.format(), &instance.lowerings) else { return Ok(None) };
        let Some(target) = lowering.target(device) else {
            let known = device.format_names();
            let message = format!(
                "format \"{}\" cannot be lowered to a format that {} accepts; {}",
                source.format(),
                device.id,
                did_you_mean(source.format().as_str(), &known)
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        let specs = lowering.options();
        check_options(source, &specs, &instance.specs)?;
        let (mut own, mut backend) = (Options::new(), Options::new());
        let has = |specs: &[OptionSpec], key: &str| specs.iter().any(|spec| spec.key == key);
        for (key, value) in source.options().iter() {
            let is_own = has(&specs, key);
            if is_own {
                own.push(key, value.clone());
            }
            if !is_own || (HARMLESS.contains(&key) && has(&instance.specs, key)) {
                backend.push(key, value.clone());
            }
        }
        Ok(Some(Self { lowering, target, own, backend }))
    }

    /// The plan for the same code with references to the lines of its text, for messages of compilers; `None` if the
    /// lowering has no such option, it is set, or the code is SPIR-V, which has no such references.
    fn with_lines(&self) -> Option<Self> {
        if [CodeFormat::SPIRV_KERNEL, CodeFormat::SPIRV_SHADER].contains(&self.target) {
            return None;
        }
        let has_option = self.lowering.options().iter().any(|spec| spec.key == LINES);
        let is_set = self.own.flag(LINES) || self.own.flag(DEBUG);
        (has_option && !is_set).then(|| Self {
            lowering: self.lowering,
            target: self.target.clone(),
            own: self.own.clone().with(LINES, true),
            backend: self.backend.clone(),
        })
    }

    /// The compiler's error for code that `source` was lowered to, with the lines of `source`: that of the same code with
    /// references to them. `compile` compiles code.
    pub(crate) fn with_own_lines(
        &self,
        error: Error,
        source: &ModuleSource,
        device: &DeviceInfo,
        compile: impl FnOnce(&ModuleSource) -> Result<CompiledCode>,
    ) -> Error {
        if error.kind() != ErrorKind::CompileFailed {
            return error;
        }
        let lowered = self.with_lines().and_then(|plan| plan.lower(source, device).ok());
        let again = lowered.and_then(|(lowered, _)| compile(&lowered).err());
        again.filter(|again| again.kind() == ErrorKind::CompileFailed).unwrap_or(error)
    }

    /// The load options of the lowering.
    pub(crate) const fn options(&self) -> &Options {
        &self.own
    }

    /// What the lowered code depends on besides the source and its options; `None` if it must not be kept.
    pub(crate) fn identity(&self, device: &DeviceInfo) -> Option<String> {
        self.lowering.identity(device)
    }

    /// The lowered code without the code, to ask the backend about its compiler.
    pub(crate) fn without_code(&self, source: &ModuleSource) -> ModuleSource {
        let path = source.path().to_string_lossy();
        ModuleSource::lowered(self.target.clone(), &path, Vec::new(), self.backend.clone())
    }

    /// Lowers the code.
    ///
    /// # Errors
    /// `Io`; any error of the lowering.
    pub(crate) fn lower(
        &self,
        source: &ModuleSource,
        device: &DeviceInfo,
    ) -> Result<(ModuleSource, Vec<LoweredKernel>)> {
        let path = source.path().to_string_lossy();
        let portable = PortableSource { code: &read_text(source)?, path: &path, options: &self.own };
        let lowered = self.lowering.lower(&portable, device)?;
        let mut options = lowered.options;
        self.backend.iter().for_each(|(key, value)| options.push(key, value.clone()));
        Ok((ModuleSource::lowered(lowered.format, &path, lowered.code, options), lowered.kernels))
    }
}

/// The lowering that accepts code of this format, if there is one.
pub(crate) fn find_lowering<'a>(
    format: &CodeFormat,
    lowerings: &'a [Arc<dyn Lowering>],
) -> Option<&'a dyn Lowering> {
    lowerings.iter().find(|lowering| lowering.format() == *format).map(|lowering| &**lowering)
}

/// The option of a lowering by which code refers to the lines of its text.
const LINES: &str = "lines";

/// Options of backends that change how fast code is, how well it can be debugged, how often a run calls it and what it counts, not what it
/// does.
/// One that the lowering knows as well is for both.
const HARMLESS: [&str; 4] = [registers::OPTION, DEBUG, "calls", "executed"];

/// Options must belong to the lowering, or be harmless ones of the backend. Trusted code may use all those of the backend:
/// with compiler flags, code can do anything.
fn check_options(source: &ModuleSource, own: &[OptionSpec], backend: &[OptionSpec]) -> Result<()> {
    if source.is_trusted() {
        let all: Vec<_> = own.iter().chain(backend).cloned().collect();
        return source.options().validate(&all, OptionScope::Module);
    }
    let is_harmless = |spec: &&OptionSpec| HARMLESS.contains(&spec.key.as_str());
    let all: Vec<_> = own.iter().chain(backend.iter().filter(is_harmless)).cloned().collect();
    source.options().validate(&all, OptionScope::Module)?;
    source.check_trust()
}

/// The text of a source.
///
/// # Errors
/// `Io`; `CompileFailed` for code that is not UTF-8.
pub(crate) fn read_text(source: &ModuleSource) -> Result<Cow<'_, str>> {
    let text = match source.code() {
        Some(code) => std::str::from_utf8(code).ok().map(Cow::Borrowed),
        None => String::from_utf8(source.read_file()?).ok().map(Cow::Owned),
    };
    text.ok_or_else(|| {
        Error::new(ErrorKind::CompileFailed, "the code is not valid UTF-8; is it a text file?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lowering::Lowered;

    #[derive(Debug)]
    struct WithLines;

    // SAFETY: it lowers nothing.
    #[allow(unsafe_code, reason = "implements a lowering")]
    unsafe impl Lowering for WithLines {
        fn format(&self) -> CodeFormat {
            CodeFormat::WGSL
        }

        fn options(&self) -> Vec<OptionSpec> {
            vec![OptionSpec::module(LINES, false, "Lines.")]
        }

        fn target(&self, _device: &DeviceInfo) -> Option<CodeFormat> {
            None
        }

        fn lower(&self, _source: &PortableSource<'_>, _device: &DeviceInfo) -> Result<Lowered> {
            Err(Error::unsupported("lowering is not supported"))
        }
    }

    #[test]
    fn code_is_lowered_again_only_if_lines_change_it() {
        let again = |target, own| {
            LoweringPlan { lowering: &WithLines, target, own, backend: Options::new() }.with_lines().is_some()
        };
        for target in [CodeFormat::C, CodeFormat::OPENCL_C, CodeFormat::CUDA_C] {
            assert!(again(target.clone(), Options::new()), "{target}");
            assert!(!again(target.clone(), Options::new().with(LINES, true)), "{target}");
        }
        for target in [CodeFormat::SPIRV_SHADER, CodeFormat::SPIRV_KERNEL] {
            assert!(!again(target.clone(), Options::new()), "{target}");
        }
    }
}
