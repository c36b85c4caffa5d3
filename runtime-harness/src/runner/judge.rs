//! The judge: checks and times a candidate that runs in a runner.

use std::fs::Permissions;
use std::hash::RandomState;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use runtime_core::backend::{SandboxPolicy, TemporaryFolder};
use runtime_core::evaluate::{FlushCache, Measurement, Observer, Validation, time_calls};
use runtime_core::{
    CodeFormat, CommonRuntime, DeviceKind, Error, ErrorKind, LaunchConfig, Options, Result, Runtime,
};

use super::memory::SharedMemory;
use super::process::Runner;
use super::protocol::{Load, Parameter};
use super::windows::{Canary, History, SharedTensor, TensorSet, Windows};
use crate::device::RunnerSetup;
use crate::job::{Job, JobData, kernel_source};
use crate::platform::ExitKind;
use crate::row::Outcome;
use crate::settings::Settings;
use crate::spec::{ArgumentKind, TensorSpec};

/// The size of pages, or a multiple of it.
const PAGE: usize = 4096;
/// Single calls on inputs that were never seen, until one is as fast as it should be.
const SINGLE_CALLS: usize = 5;
/// How often a batch's time per call a single call may take, as caches and predictors that are cold cost something,
const SLACK: f64 = 1.5;
/// and how often what copying the tensors and an empty window take.
const COPIES: f64 = 3.0;
/// What waking threads costs beyond that.
const LATENCY_NS: f64 = 100e3;

/// A candidate in a runner.
#[derive(Debug)]
pub(crate) struct Judge<'j> {
    job: &'j Job,
    runtime: &'j Runtime,
    windows: Windows,
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
    pub(crate) fn new(job: &'j Job, device: &dyn CommonRuntime, setup: &'j RunnerSetup) -> Result<Self> {
        let spec = &job.spec;
        let folder = TemporaryFolder::new("runtime-runner-").map_err(|error| failed(&error))?;
        let (code, options) = code(job, device)?;
        let file = folder.path().join("module.so");
        std::fs::write(&file, code).map_err(|error| failed(&error))?;
        for (path, mode) in [(folder.path(), 0o755), (&file, 0o644)] {
            // For a runner of another user.
            std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|error| failed(&error))?;
        }
        let mut layout = Layout::new();
        let data = Arc::new(job.data()?);
        let sets = [Arc::clone(&data), data].map(|data| layout.add(job, data));
        let (sets, args): (Vec<_>, Vec<_>) =
            sets.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let (memory, shared) = SharedMemory::create(layout.end).map_err(|error| failed(&error))?;
        let backend = setup.backend.as_path();
        let mut runner = Runner::start(SandboxPolicy::of_process()?, &[folder.path(), backend], shared)?;
        let LaunchConfig::Groups(geometry) = spec.config else {
            return Err(Error::unsupported("a range in a runner"));
        };
        runner.load(Load {
            backend: backend.to_owned(),
            code: file,
            entry: spec.kernel.entry.clone(),
            options,
            groups: geometry.groups,
            group_size: geometry.group_size,
            sets: args,
        })?;
        let windows = Windows {
            runner,
            memory,
            sets,
            canaries: layout.canaries,
            tolerance: job.tolerance(),
            secret: RandomState::new(),
            history: History::default(),
        };
        windows.fill();
        Ok(Self { job, runtime: &setup.runtime, windows, _folder: folder })
    }

    /// Checks the candidate, times it, and checks it again. The second result is why the times are not believed.
    ///
    /// # Errors
    /// Those of calls and of the loop.
    pub(crate) async fn measure(
        &mut self,
        settings: &Settings,
        observer: &mut Option<Observer<'_>>,
    ) -> Result<(Measurement, Option<Outcome>)> {
        let first = self.windows.first_calls()?;
        let timing = settings.timing();
        let mut measurement = time_calls(&mut self.windows, &timing, self.job.spec.cost, observer).await?;
        measurement.validation = first;
        let mut outcome = None;
        if !matches!(measurement.validation, Validation::Failed(_)) {
            self.windows.last_window(measurement.number)?;
            outcome = self.inconsistency(measurement.statistics.median_ns)?;
        }
        if measurement.validation.is_passed()
            && let Some(mismatch) = self.windows.history.wrong.take()
        {
            measurement.validation = Validation::Failed(mismatch);
        }
        measurement.calls = self.windows.history.calls;
        Ok((measurement, outcome))
    }

    /// How the runner has ended, if it has.
    pub(crate) const fn end(&self) -> Option<ExitKind> {
        self.windows.runner.end()
    }

    /// Whether single calls on inputs that were never seen take much longer than those of batches, with what they cost anyway.
    fn inconsistency(&mut self, batch_ns: f64) -> Result<Option<Outcome>> {
        // The least of each: on a busy machine, anything may take much longer.
        let mut handshake = Duration::MAX;
        for _ in 0..SINGLE_CALLS {
            handshake = handshake.min(self.windows.empty_window(1)?);
        }
        let (mut shortest_ns, mut copy) = (f64::INFINITY, Duration::MAX);
        for index in 0..SINGLE_CALLS {
            let data = match self.job.fresh_data(self.runtime, index)? {
                Some(fresh) => fresh,
                None => Arc::new(self.job.data()?),
            };
            let call = self.windows.single_call(data)?;
            shortest_ns = shortest_ns.min(nanoseconds(call.time));
            copy = copy.min(call.copy);
            let cold_ns = COPIES * nanoseconds(copy + handshake) + LATENCY_NS;
            if shortest_ns <= SLACK * batch_ns + cold_ns {
                return Ok(None);
            }
        }
        Ok(Some(Outcome::Inconsistent { batch_ns, single_ns: shortest_ns }))
    }
}

const fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
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

/// Where things are in the shared memory.
struct Layout {
    canaries: Vec<Canary>,
    end: usize,
}

impl Layout {
    const fn new() -> Self {
        Self { canaries: Vec::new(), end: 0 }
    }

    /// Adds a set of tensors, and what the runner is told about it.
    fn add(&mut self, job: &Job, data: Arc<JobData>) -> Result<(TensorSet, Vec<Parameter>)> {
        let (mut tensors, mut args) = (Vec::new(), Vec::new());
        self.add_canary(0);
        for (index, arg) in job.spec.args.iter().enumerate() {
            match &arg.kind {
                ArgumentKind::Tensor(tensor) => {
                    let (at, bytes, access) = (self.end, bytes_of(tensor)?, tensor.access);
                    let poison = job.tolerance().poison(&data.expected, index);
                    tensors.push(SharedTensor { arg: index, at, bytes, access, poison });
                    args.push(Parameter::Tensor {
                        dtype: tensor.dtype,
                        shape: tensor.shape.clone(),
                        at,
                        reads: access.reads(),
                        writes: access.writes(),
                    });
                    self.end += bytes;
                    self.add_canary(bytes.next_multiple_of(PAGE) - bytes);
                }
                ArgumentKind::Scalar(dtype, bits) => args.push(Parameter::Scalar(*dtype, *bits)),
                ArgumentKind::Local(bytes) => args.push(Parameter::Local(*bytes)),
                _ => return Err(Error::unsupported("a structure in a runner")),
            }
        }
        Ok((TensorSet { tensors, data }, args))
    }

    /// Adds a page that nobody may write, and the rest of the page before it.
    fn add_canary(&mut self, rest: usize) {
        let bytes = rest + PAGE;
        self.canaries.push(Canary { at: self.end, bytes });
        self.end += bytes;
    }
}

fn bytes_of(tensor: &TensorSpec) -> Result<usize> {
    let elements = tensor.shape.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
    let bytes = elements.and_then(|elements| elements.checked_mul(tensor.dtype.bytes()));
    bytes.ok_or_else(|| Error::invalid("the tensor is too large"))
}
