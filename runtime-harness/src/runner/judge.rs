//! The judge: checks and times a candidate that runs in a runner.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use runtime_core::backend::{LoadOutcome, SandboxPolicy, TemporaryFolder};
use runtime_core::evaluate::{CallWindows as _, FlushCache, Measurement, Observer, Validation, time_calls};
use runtime_core::{
    Access, CodeFormat, CommonRuntime, DeviceKind, Error, ErrorKind, LaunchConfig, Options, Result, Runtime,
};

use super::memory::SharedMemory;
use super::process::Runner;
use super::protocol::{Load, Parameter};
use super::windows::{SharedTensor, Windows};
use crate::job::{Job, kernel_source};
use crate::settings::Settings;
use crate::spec::{ArgumentKind, Spec, TensorSpec};

/// The size of pages, or a multiple of it.
const PAGE: usize = 4096;
/// Bytes around each tensor.
const CANARY: usize = PAGE;

/// A candidate in a runner.
#[derive(Debug)]
pub(crate) struct Judge<'j> {
    windows: Windows<'j>,
    /// The compiled code.
    _folder: TemporaryFolder,
}

impl<'j> Judge<'j> {
    /// Whether a job is judged in a runner: native code of the host, on tensors in one piece, in warm caches, without counters.
    pub(crate) fn takes(job: &Job, device: &dyn CommonRuntime, settings: &Settings) -> bool {
        let spec = &job.spec;
        let is_native =
            spec.kernel.format == CodeFormat::C || spec.kernel.format == CodeFormat::SHARED_OBJECT;
        let is_simple = |kind: &ArgumentKind| match kind {
            ArgumentKind::Tensor(tensor) => tensor.strides.is_none() && tensor.offset == 0,
            ArgumentKind::Scalar(..) | ArgumentKind::Local(_) => true,
            ArgumentKind::Record(_) | ArgumentKind::Bytes(_) => false,
        };
        // Libraries of the candidate are not among the files of a runner yet.
        let has_libraries = spec.kernel.options.texts("libraries").next().is_some();
        let timing = settings.timing();
        device.info().kind == DeviceKind::Host
            && is_native
            && !has_libraries
            && matches!(spec.config, LaunchConfig::Groups(_))
            && spec.args.iter().all(|arg| is_simple(&arg.kind))
            && !timing.warmup.is_none()
            && timing.flush_cache == FlushCache::Never
            && settings.counters.is_none()
            && !settings.measures_energy()
    }

    /// Compiles the code, which is not loaded here, and starts a runner that loads it.
    ///
    /// # Errors
    /// Those of compiling, of starting a runner, and of loading.
    pub(crate) fn new(job: &'j Job, device: &dyn CommonRuntime, backend: &Path) -> Result<Self> {
        let folder = TemporaryFolder::new("runtime-runner-").map_err(|error| failed(&error))?;
        let (code, options) = code(job, device)?;
        let file = folder.path().join("module.so");
        std::fs::write(&file, code).map_err(|error| failed(&error))?;
        for (path, mode) in [(folder.path(), 0o755), (&file, 0o644)] {
            // For a runner of another user.
            std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| failed(&error))?;
        }
        let (tensors, args, bytes) = layout(job)?;
        let (memory, shared) = SharedMemory::create(bytes).map_err(|error| failed(&error))?;
        let mut runner = Runner::start(SandboxPolicy::of_process()?, &[folder.path(), backend], shared)?;
        let LaunchConfig::Groups(geometry) = job.spec.config else {
            return Err(Error::unsupported("a range in a runner"));
        };
        runner.load(Load {
            backend: backend.to_owned(),
            code: file,
            entry: job.spec.kernel.entry.clone(),
            options,
            groups: geometry.groups,
            group_size: geometry.group_size,
            args,
        })?;
        let expected = job.expected.as_ref().map_err(Clone::clone)?;
        let windows = Windows { runner, memory, tensors, expected, tolerance: job.tolerance(), last: 0 };
        Ok(Self { windows, _folder: folder })
    }

    /// Checks the candidate, times it, and checks what the last window left.
    ///
    /// # Errors
    /// Those of calls and of the loop.
    pub(crate) async fn measure(
        &mut self,
        spec: &Spec,
        settings: &Settings,
        observer: &mut Option<Observer<'_>>,
    ) -> Result<Measurement> {
        self.windows.calls(1)?;
        let first = self.windows.compare()?;
        let mut measurement = time_calls(&mut self.windows, &settings.timing(), spec.cost, observer).await?;
        measurement.validation = first;
        if measurement.validation.is_passed() {
            self.windows.check_inputs()?;
            if let Validation::Failed(mut mismatch) = self.windows.compare()? {
                mismatch.after_calls = Some(measurement.calls);
                measurement.validation = Validation::Failed(mismatch);
            }
        }
        measurement.calls += 1;
        Ok(measurement)
    }
}

fn failed(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot prepare a runner: {error}"))
}

/// The shared object of a job, and the load options that it needs.
fn code(job: &Job, device: &dyn CommonRuntime) -> Result<(Vec<u8>, Options)> {
    let kernel = &job.spec.kernel;
    if kernel.format == CodeFormat::SHARED_OBJECT {
        let code = std::fs::read(&kernel.path)
            .map_err(|error| Error::new(ErrorKind::Io, format!("\"{}\": {error}", kernel.path.display())))?;
        return Ok((code, kernel.options.clone()));
    }
    let compiled = device.compile(&kernel_source(job, kernel, DeviceKind::Host)?)?;
    Ok((compiled.native.code, compiled.native.options))
}

/// The library of the host's backend, for runners; `None` if it is linked in.
pub(crate) fn runner_backend(runtime: &Runtime) -> Option<PathBuf> {
    let loaded = runtime.load_report().iter().filter(|line| line.outcome == LoadOutcome::Loaded);
    let mut host = loaded.filter(|line| line.target.as_deref() == Some("host"));
    host.next().map(|line| line.path.clone()).filter(|path| path.is_file())
}

/// Where the tensors are in the shared memory, the arguments for the runner, and the size of the memory.
fn layout(job: &Job) -> Result<(Vec<SharedTensor>, Vec<Parameter>, usize)> {
    let inputs = job.inputs.as_ref().map_err(Clone::clone)?;
    let expected = job.expected.as_ref().map_err(Clone::clone)?;
    let (mut tensors, mut args, mut end) = (Vec::new(), Vec::new(), CANARY);
    for (index, (arg, input)) in job.spec.args.iter().zip(inputs).enumerate() {
        match &arg.kind {
            ArgumentKind::Tensor(tensor) => {
                let bytes = bytes_of(tensor)?;
                let poison = job.tolerance().poison(expected, index);
                let initial = input.clone().filter(|_| tensor.access != Access::Write);
                tensors.push(SharedTensor {
                    arg: index,
                    at: end,
                    bytes,
                    access: tensor.access,
                    initial,
                    poison,
                });
                args.push(Parameter::Tensor {
                    dtype: tensor.dtype,
                    shape: tensor.shape.clone(),
                    at: end,
                    reads: tensor.access.reads(),
                    writes: tensor.access.writes(),
                });
                end += bytes.next_multiple_of(PAGE) + CANARY;
            }
            ArgumentKind::Scalar(dtype, bits) => args.push(Parameter::Scalar(*dtype, *bits)),
            ArgumentKind::Local(bytes) => args.push(Parameter::Local(*bytes)),
            _ => return Err(Error::unsupported("a structure in a runner")),
        }
    }
    Ok((tensors, args, end))
}

fn bytes_of(tensor: &TensorSpec) -> Result<usize> {
    let elements = tensor.shape.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
    let bytes = elements.and_then(|elements| elements.checked_mul(tensor.dtype.bytes()));
    bytes.ok_or_else(|| Error::invalid("the tensor is too large"))
}
