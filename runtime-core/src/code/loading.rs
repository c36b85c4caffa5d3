//! Brings source code to the form that is loaded: from the code cache where possible, else lowered and compiled.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cache::{CacheOutcome, CachedCode, DumpStage, Key, KeyBuilder};
use crate::code::compile;
use crate::code::lowering::{LoweringPlan, find_lowering};
use crate::code::portable::PortableText;
use crate::code::source::DEBUG;
use crate::model::code_load::CodeOrigin;
use crate::model::compiled::{Compiled, CompiledCode};
use crate::model::kernel_info::KernelInfo;
use crate::model::lowering::LoweredKernel;
use crate::timeline::open_device::OpenDevice;
use crate::{DeviceInfo, Error, ErrorKind, ModuleSource, Result};

/// Code that is ready to be loaded.
pub(crate) struct Prepared<'s> {
    pub(crate) source: Cow<'s, ModuleSource>,
    /// The entry points, if the code was portable.
    pub(crate) lowered: Option<Vec<LoweredKernel>>,
    /// The portable code, if its kernels may be fused.
    pub(crate) portable: Option<Arc<PortableText>>,
    /// What the compiler reported of the kernels.
    pub(crate) resources: Vec<(String, KernelInfo)>,
    pub(crate) origin: CodeOrigin,
    pub(crate) stages: Stages,
    /// The entry that the code came from.
    key: Option<Key>,
}

/// How long the stages took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stages {
    pub(crate) read: Duration,
    pub(crate) lower: Duration,
    pub(crate) compile: Duration,
}

impl<'s> Prepared<'s> {
    /// Prepares code through the cache.
    ///
    /// # Errors
    /// As [`CommonRuntime::load`](crate::CommonRuntime::load).
    pub(crate) fn new(device: &OpenDevice, source: &'s ModuleSource) -> Result<Self> {
        let plan = LoweringPlan::of(source, &device.instance, &device.info)?;
        if plan.is_none() {
            source.check(&device.info, &device.instance)?;
        }
        let prepared = Self::through_cache(device, source, plan.as_ref())?;
        Ok(prepared.described_by(source, plan.as_ref()))
    }

    fn through_cache(
        device: &OpenDevice,
        source: &'s ModuleSource,
        plan: Option<&LoweringPlan<'_>>,
    ) -> Result<Self> {
        let started = Instant::now();
        let Some(key) = key(device, source, plan)? else {
            return Self::uncached(device, source, plan);
        };
        let stages = Cell::new(Stages::default());
        let built = obtain(device, source, plan, &key, || build(device, source, plan, "load", &stages));
        let mut stages = stages.get();
        stages.read = started.elapsed().saturating_sub(stages.lower + stages.compile);
        match built {
            Ok((code, outcome)) => Ok(Self::cached(code, outcome, key, stages, source)),
            // The backend cannot give out the compiled form of this code.
            Err(error) if error.kind() == ErrorKind::Unsupported => Self::uncached(device, source, plan),
            Err(error) => Err(error),
        }
    }

    fn cached(
        code: CachedCode,
        outcome: CacheOutcome,
        key: Key,
        stages: Stages,
        source: &ModuleSource,
    ) -> Self {
        let CachedCode { format, code, options, lowered, resources, .. } = code;
        let path = source.path().to_string_lossy();
        let origin = match outcome {
            CacheOutcome::Hit => CodeOrigin::Cache,
            CacheOutcome::SharedHit => CodeOrigin::SharedCache,
            CacheOutcome::Miss => CodeOrigin::Compiled,
            CacheOutcome::Uncached => CodeOrigin::NotKept,
            CacheOutcome::Override => CodeOrigin::Override,
        };
        let source = Cow::Owned(ModuleSource::lowered(format, &path, code, options));
        Self { source, lowered, portable: None, resources, origin, stages, key: Some(key) }
    }

    /// Prepares code without the cache: the backend compiles it while it loads it.
    ///
    /// # Errors
    /// As [`CommonRuntime::load`](crate::CommonRuntime::load).
    pub(crate) fn without_cache(device: &OpenDevice, source: &'s ModuleSource) -> Result<Self> {
        let plan = LoweringPlan::of(source, &device.instance, &device.info)?;
        let prepared = Self::uncached(device, source, plan.as_ref())?;
        Ok(prepared.described_by(source, plan.as_ref()))
    }

    /// Adds the portable code, and what is known of the kernels if `source` is itself the output of a compiler.
    fn described_by(mut self, source: &ModuleSource, plan: Option<&LoweringPlan<'_>>) -> Self {
        self.portable = plan.and_then(|plan| PortableText::of(source, plan).ok()?);
        if let Some(kernels) = source.compiled_kernels() {
            self.lowered = self.lowered.or_else(|| kernels.lowered.clone());
            if self.resources.is_empty() {
                self.resources.clone_from(&kernels.resources);
            }
        }
        self
    }

    fn uncached(
        device: &OpenDevice,
        source: &'s ModuleSource,
        plan: Option<&LoweringPlan<'_>>,
    ) -> Result<Self> {
        let started = Instant::now();
        let (source, lowered) = lower(device, source, plan)?;
        let lower = if plan.is_some() { started.elapsed() } else { Duration::ZERO };
        Ok(Self {
            source,
            lowered,
            portable: None,
            resources: Vec::new(),
            origin: CodeOrigin::Direct,
            stages: Stages { lower, ..Stages::default() },
            key: None,
        })
    }

    /// After the driver refused the code: forgets it if it was stored. Returns whether to prepare it without the cache.
    pub(crate) fn is_refused(&self, device: &OpenDevice, error: &Error) -> bool {
        let is_about_code = !matches!(
            error.kind(),
            ErrorKind::DeviceLost
                | ErrorKind::OutOfMemory
                | ErrorKind::OutOfResources
                | ErrorKind::Unavailable
                | ErrorKind::Timeout
                | ErrorKind::Cancelled
        );
        match &self.key {
            Some(key) if is_about_code && self.origin != CodeOrigin::Override => {
                tracing::warn!(target: "runtime::cache", device = %device.name, entry = %key.name(), %error, "the driver refused compiled code; compiling it again");
                device.instance.cache.remove(key);
                true
            }
            _ => false,
        }
    }
}

/// Native code of `source` for a device, from the cache where possible.
///
/// # Errors
/// As [`CommonRuntime::compile`](crate::CommonRuntime::compile).
pub(crate) fn compile_through_cache(device: &OpenDevice, source: &ModuleSource) -> Result<Compiled> {
    let source = &*read(device, source)?;
    let plan = LoweringPlan::of(source, &device.instance, &device.info)?;
    if plan.is_none() {
        source.check(&device.info, &device.instance)?;
    }
    let build = || build(device, source, plan.as_ref(), "compile", &Cell::default());
    let code = match key(device, source, plan.as_ref())? {
        Some(key) => obtain(device, source, plan.as_ref(), &key, build)?.0,
        None => build()?,
    };
    let CachedCode { format, code, log, options, lowered, resources } = code;
    Ok(Compiled { native: CompiledCode { format, code, log, options, kernels: resources }, lowered })
}

/// The code of `key` from the cache, or as `build` makes it.
fn obtain(
    device: &OpenDevice,
    source: &ModuleSource,
    plan: Option<&LoweringPlan<'_>>,
    key: &Key,
    build: impl FnOnce() -> Result<CachedCode>,
) -> Result<(CachedCode, CacheOutcome)> {
    dump_lowered(device, source, plan, key)?;
    let cache = &device.instance.cache;
    let (code, outcome) = cache.get(key, build)?;
    // A file that the code includes may have changed before it was compiled.
    let is_fresh = || self::key(device, source, plan).is_ok_and(|now| now.as_ref() == Some(key));
    if outcome == CacheOutcome::Miss && !is_fresh() {
        cache.remove(key);
    }
    Ok((Arc::unwrap_or_clone(code), outcome))
}

/// The source with its code, read from its file if the device compiles such code. Other files are left to the backend.
///
/// # Errors
/// `Io` if the file cannot be read; any error of the backend.
pub(crate) fn read<'s>(device: &OpenDevice, source: &'s ModuleSource) -> Result<Cow<'s, ModuleSource>> {
    let is_portable = find_lowering(source.format(), &device.instance.lowerings).is_some();
    // Without its text, about which only the key has to ask: for the host that takes a run of the preprocessor.
    let format_alone = || source.with_code(Vec::new());
    let is_compiled =
        || Ok::<_, Error>(is_portable || compile::compiler_identity(device, &format_alone())?.is_some());
    if source.code().is_some() || !is_compiled()? {
        return Ok(Cow::Borrowed(source));
    }
    Ok(Cow::Owned(source.with_code(source.read_file()?)))
}

/// The source in a format that the device accepts.
fn lower<'s>(
    device: &OpenDevice,
    source: &'s ModuleSource,
    plan: Option<&LoweringPlan<'_>>,
) -> Result<(Cow<'s, ModuleSource>, Option<Vec<LoweredKernel>>)> {
    let Some(plan) = plan else { return Ok((Cow::Borrowed(source), None)) };
    let (lowered, kernels) = plan.lower(source, &device.info)?;
    lowered.check(&device.info, &device.instance)?;
    Ok((Cow::Owned(lowered), Some(kernels)))
}

/// Writes lowered code to the folder of dumps, whether it is compiled or not.
fn dump_lowered(
    device: &OpenDevice,
    source: &ModuleSource,
    plan: Option<&LoweringPlan<'_>>,
    key: &Key,
) -> Result<()> {
    let cache = &device.instance.cache;
    if plan.is_some() && cache.dumps(DumpStage::Lowered) {
        let (lowered, kernels) = lower(device, source, plan)?;
        let extension = lowered.format().extension();
        cache.dump(key, DumpStage::Lowered, extension, lowered.code().unwrap_or_default());
        if let Some(file) = debug_file(source, kernels.as_deref().unwrap_or_default()) {
            cache.dump_source(&file, source.code().unwrap_or_default());
        }
    }
    Ok(())
}

/// The file in which a debugger looks for a text that was not loaded from one: lowerings name it after the first entry point.
fn debug_file(source: &ModuleSource, kernels: &[LoweredKernel]) -> Option<String> {
    let is_from_memory = source.path().as_os_str().is_empty();
    let first = kernels.first().filter(|_| is_from_memory && source.options().flag(DEBUG))?;
    let file = format!("{}.{}", first.name, source.format().extension());
    // A name of another language may contain anything.
    (Path::new(&file).file_name() == Some(file.as_ref())).then_some(file)
}

/// Lowers and compiles code, as a part of `operation`, which errors name.
fn build(
    device: &OpenDevice,
    source: &ModuleSource,
    plan: Option<&LoweringPlan<'_>>,
    operation: &'static str,
    stages: &Cell<Stages>,
) -> Result<CachedCode> {
    let started = Instant::now();
    let (native, lowered) = lower(device, source, plan)?;
    let lower = started.elapsed();
    let compile = |source: &ModuleSource| compile::compile(device, source, operation);
    let compiled = compile(&native).map_err(|error| match plan {
        Some(plan) => plan.with_own_lines(error, source, &device.info, compile),
        None => error,
    })?;
    stages.set(Stages { lower, compile: started.elapsed() - lower, read: Duration::ZERO });
    Ok(CachedCode {
        format: compiled.format,
        code: compiled.code,
        log: compiled.log,
        options: compiled.options,
        lowered,
        resources: compiled.kernels,
    })
}

/// The key of the compiled form of `source`; `None` if it is not to be kept.
///
/// # Errors
/// `Io` if the file of the source cannot be read; any error of the backend.
fn key(device: &OpenDevice, source: &ModuleSource, plan: Option<&LoweringPlan<'_>>) -> Result<Option<Key>> {
    let instance = &device.instance;
    if instance.cache.is_off() {
        return Ok(None);
    }
    let mut parts = KeyBuilder::new();
    let identity = match plan {
        Some(plan) => {
            let Some(lowering) = plan.identity(&device.info) else { return Ok(None) };
            parts.part("lowering", lowering.as_bytes());
            compile::compiler_identity(device, &plan.without_code(source))?
        }
        None => compile::compiler_identity(device, source)?,
    };
    let Some(identity) = identity else { return Ok(None) };
    let backend = format!("{} {}", instance.name(), instance.version);
    parts.part("trusted", &[u8::from(source.is_trusted())]);
    parts.part("format", source.format().as_str().as_bytes());
    add_device(&mut parts, &backend, &device.info, &identity);
    parts.part("path", source.path().as_os_str().as_encoded_bytes());
    for (key, value) in source.options().iter() {
        parts.part(key, format!("{} {value}", value.type_name()).as_bytes());
    }
    parts.part("source", source.code().unwrap_or_default());
    Ok(Some(parts.finish()))
}

/// Adds what code for a device depends on, whatever the source.
fn add_device(parts: &mut KeyBuilder, backend: &str, info: &DeviceInfo, compiler: &[u8]) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    parts
        .part("backend", backend.as_bytes())
        .part("arch", text(&info.arch).as_bytes())
        .part("device", info.name.as_bytes())
        .part("driver", text(&info.driver_version).as_bytes())
        .part("compiler", compiler);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;

    #[test]
    fn everything_of_a_device_that_changes_code_changes_the_key() {
        let key = |backend: &str, arch: &str, name: &str, driver: &str, compiler: &str, index: u32| {
            let mut info = DeviceInfo::new(DeviceKind::Accelerator, index, name);
            (info.arch, info.driver_version) = (Some(arch.to_owned()), Some(driver.to_owned()));
            let mut parts = KeyBuilder::new();
            add_device(&mut parts, backend, &info, compiler.as_bytes());
            parts.finish()
        };
        let usual = key("cuda 1", "sm_90", "H100", "580", "nvrtc", 0);
        assert_eq!(usual, key("cuda 1", "sm_90", "H100", "580", "nvrtc", 1), "equal devices share code");
        for other in [
            key("cuda 2", "sm_90", "H100", "580", "nvrtc", 0),
            key("cuda 1", "sm_80", "H100", "580", "nvrtc", 0),
            key("cuda 1", "sm_90", "H200", "580", "nvrtc", 0),
            key("cuda 1", "sm_90", "H100", "581", "nvrtc", 0),
            key("cuda 1", "sm_90", "H100", "580", "nvrtc 2", 0),
        ] {
            assert_ne!(usual, other);
        }
    }
}
