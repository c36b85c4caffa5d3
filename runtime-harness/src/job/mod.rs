//! A spec with its initial data and expected outputs, prepared once for all devices.

mod bound_kernel;
mod code_hash;
mod fresh_inputs;
mod module_source;
mod packaged;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use runtime_core::evaluate::{EachCall, Tolerance};
use runtime_core::{
    Access, CommonRuntime, Error, ErrorKind, Geometry, HostArray, Result, Runtime, Safetensors,
};

use crate::crash_context::CrashContext;
use crate::spec::{Argument, ArgumentKind, Expected, Init, KernelSource, Spec, TensorSpec};
pub use bound_kernel::BoundKernel;
pub(crate) use bound_kernel::{
    Canaries, allocate_tensors, config, evaluation_args, kernel_source, signed, value,
};
pub(crate) use code_hash::{code_sha256, of_all};
pub(crate) use fresh_inputs::{FreshInputs, has_fresh_inputs};
use module_source::module_source;
pub use packaged::{PackageChoice, PassedOver, fits};
pub(crate) use packaged::{PackagedKind, packaged_kind, shared_object as packaged_shared_object};

/// The contents of written arguments, each with its index.
pub type Outputs = Vec<(usize, HostArray)>;

/// The number of calls, each on the results of the one before, that show whether a kernel works more than once.
pub(crate) const LATER_CALLS: u64 = 2;

/// Which tensors that a kernel both reads and writes get their initial data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// All.
    First,
    /// Before another call: those that need them before each.
    Later,
}

/// A spec with its initial data, prepared once for all devices and the reference.
#[derive(Debug)]
pub struct Job {
    pub(crate) spec: Spec,
    /// Per argument, the row-major elements of a tensor that is read; or the error in them.
    pub inputs: Result<Vec<Option<HostArray>>>,
    /// Per written argument, its index and its expected content; or why that is unknown.
    pub expected: Result<Outputs>,
    /// The same after [`LATER_CALLS`] calls, if these depend on each other and the reference can be called as often; otherwise empty.
    pub(crate) expected_later: Outputs,
    /// Inputs that no candidate has seen.
    pub(crate) fresh: FreshInputs,
    /// What runners get, once one needs it.
    pub(crate) data: OnceLock<Arc<JobData>>,
}

/// The content of tensors, and what a call makes of it.
#[derive(Debug)]
pub(crate) struct JobData {
    /// As [`Job::inputs`].
    pub(crate) inputs: Vec<Option<HostArray>>,
    /// As [`Job::expected`].
    pub(crate) expected: Outputs,
    /// The poison of each of these, with the index of its argument.
    poison: Vec<(usize, u8)>,
}

impl JobData {
    pub(crate) fn new(inputs: Vec<Option<HostArray>>, expected: Outputs, tolerance: &Tolerance) -> Self {
        let poison = expected.iter().map(|(arg, _)| (*arg, tolerance.poison(&expected, *arg))).collect();
        Self { inputs, expected, poison }
    }

    /// What an output holds before a call; `None` if nothing is known of what is expected.
    pub(crate) fn poison(&self, arg: usize) -> Option<u8> {
        self.poison.iter().find(|(index, _)| *index == arg).map(|(_, byte)| *byte)
    }
}

impl Due {
    /// Whether a tensor gets its initial data.
    pub(crate) fn restores(self, access: Access, each_call: EachCall) -> bool {
        access == Access::ReadWrite && (self == Self::First || each_call == EachCall::Initial)
    }
}

/// Runs native code of references in another process.
pub(crate) trait ReferenceRunner: Sync {
    /// Whether it runs this code.
    fn takes(&self, code: &KernelSource) -> bool;

    /// Calls the reference of a job this many times, each call on the results of the one before: the outputs of each.
    ///
    /// # Errors
    /// Those of compiling, loading and calling it, and the error in the inputs.
    fn run(
        &self,
        job: &Job,
        code: &KernelSource,
        host: &dyn CommonRuntime,
        calls: u64,
    ) -> Result<Vec<Outputs>>;
}

impl Job {
    /// Prepares the initial data of a spec.
    ///
    /// # Safety
    /// What the spec names is trusted as in [`ModuleSource::native_file`](runtime_core::ModuleSource::native_file): code that is
    /// native or declared `unchecked`, that of its reference included, has the interface that the spec gives and keeps to its
    /// arguments.
    #[must_use]
    #[allow(unsafe_code, reason = "jobs run the code that their specs name")]
    pub unsafe fn new(spec: Spec) -> Self {
        Self::prepared(spec)
    }

    /// A job with its inputs.
    fn prepared(spec: Spec) -> Self {
        let mut job = Self::without_data(spec);
        job.prepare_data();
        job
    }

    /// A job whose data is still to be prepared: it may be large.
    pub(crate) fn without_data(spec: Spec) -> Self {
        Self {
            spec,
            inputs: Ok(Vec::new()),
            expected: Ok(Vec::new()),
            expected_later: Vec::new(),
            fresh: FreshInputs::new(),
            data: OnceLock::new(),
        }
    }

    /// The spec.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What runs, as reported if it crashes.
    pub(crate) fn running_on(&self, device: &str) -> String {
        format!("while \"{}\" ran on {device}", self.spec.name)
    }

    pub(crate) fn prepare_data(&mut self) {
        let inputs = self.spec.args.iter().map(|arg| match &arg.kind {
            ArgumentKind::Tensor(tensor) if tensor.access.reads() => initial(tensor, arg).map(Some),
            _ => Ok(None),
        });
        self.inputs = inputs.collect();
    }

    /// Computes the expected outputs: runs the reference on the host, or reads its files.
    pub fn find_expected(&mut self, runtime: &Runtime) {
        self.find_expected_with(runtime, None, self.calls());
    }

    /// The same, of one call only.
    pub(crate) fn find_expected_of_one_call(&mut self, runtime: &Runtime) {
        self.find_expected_with(runtime, None, 1);
    }

    /// How often the reference is called.
    fn calls(&self) -> u64 {
        if self.spec.kept().next().is_some() { LATER_CALLS } else { 1 }
    }

    /// The expected outputs of so many calls, with native code of the reference in a process of its own if there is a runner for it.
    fn find_expected_with(&mut self, runtime: &Runtime, runner: Option<&dyn ReferenceRunner>, calls: u64) {
        let Some(reference) = &self.spec.reference else { return };
        let found = match &reference.expected {
            Expected::Files(paths) => self.load_expected(paths).map(|outputs| vec![outputs]),
            Expected::Kernel(code) => {
                let run = self.run_reference((runtime, runner), code, calls);
                run.map_err(|error| error.in_operation("reference"))
            }
        };
        let mut found = found.map(Vec::into_iter);
        self.expected_later = match &mut found {
            Ok(outputs) if outputs.len() > 1 => outputs.next_back().unwrap_or_default(),
            _ => Vec::new(),
        };
        self.expected = found.map(|mut outputs| outputs.next().unwrap_or_default());
        self.data = OnceLock::new();
    }

    /// What is expected, from one file for each output.
    fn load_expected(&self, paths: &[PathBuf]) -> Result<Outputs> {
        let outputs = self.spec.outputs().zip(paths).map(|((index, arg), path)| match &arg.kind {
            ArgumentKind::Tensor(tensor) => Ok((index, load(path, tensor, arg)?)),
            _ => Err(Error::new(ErrorKind::Internal, "a written argument is not a tensor")),
        });
        outputs.collect()
    }

    /// The same, and what is expected of the first fresh inputs if the kernel is judged with such: both at once, as a reference may
    /// take longer than all other work.
    pub(crate) fn find_all_expected(&mut self, runtime: &Runtime, runner: Option<&dyn ReferenceRunner>) {
        let is_apart =
            |runner: &&dyn ReferenceRunner| match self.spec.reference.as_ref().map(|it| &it.expected) {
                Some(Expected::Kernel(code)) => runner.takes(code),
                _ => false,
            };
        let both =
            runner.filter(is_apart).and_then(|runner| Some((runner, self.fresh.reseeded(&self.spec, 0)?)));
        let calls = self.calls();
        let Some((both, spec)) = both else {
            self.find_expected_with(runtime, runner, calls);
            if let Some(runner) = runner {
                // An error is found again when they are needed.
                let _ = self.fresh_data(runtime, runner, 0);
            }
            return;
        };
        let fresh = std::thread::scope(|scope| {
            let fresh = scope.spawn(|| Self::prepared(spec).into_expected_data(runtime, both));
            self.find_expected_with(runtime, runner, calls);
            // For the candidate; an error is found again.
            let _ = self.data();
            fresh.join()
        });
        // An error is found again when they are needed.
        if let Ok(Ok(data)) = fresh {
            self.fresh.keep_first(&Arc::new(data));
        }
    }

    /// The data of the spec, after what is expected was found.
    ///
    /// # Errors
    /// Those of preparing it.
    pub(crate) fn data(&self) -> Result<Arc<JobData>> {
        if let Some(data) = self.data.get() {
            return Ok(Arc::clone(data));
        }
        let data = JobData::new(self.inputs.clone()?, self.expected.clone()?, &self.tolerance());
        Ok(Arc::clone(self.data.get_or_init(|| Arc::new(data))))
    }

    fn into_data(self) -> Result<JobData> {
        let tolerance = self.tolerance();
        Ok(JobData::new(self.inputs?, self.expected?, &tolerance))
    }

    /// The data, after what is expected was found.
    fn into_expected_data(mut self, runtime: &Runtime, runner: &dyn ReferenceRunner) -> Result<JobData> {
        self.find_expected_with(runtime, Some(runner), 1);
        self.into_data()
    }

    /// As [`fresh_data`](Self::fresh_data), without what is expected.
    ///
    /// # Errors
    /// Those of preparing the inputs.
    pub(crate) fn fresh_inputs(&self, index: usize) -> Result<Option<JobData>> {
        self.fresh.reseeded(&self.spec, index).map(|spec| Self::prepared(spec).into_data()).transpose()
    }

    /// Other values for the inputs that are random, and what is expected of them if that is known of the spec's own: others for each
    /// `index`, the same for all candidates, which share nothing. `None` if no input can be another one.
    ///
    /// # Errors
    /// Those of the reference.
    pub(crate) fn fresh_data(
        &self,
        runtime: &Runtime,
        runner: &dyn ReferenceRunner,
        index: usize,
    ) -> Result<Option<Arc<JobData>>> {
        if index == 0
            && let Some(data) = self.fresh.first()
        {
            return Ok(Some(data));
        }
        let Some(spec) = self.fresh.reseeded(&self.spec, index) else { return Ok(None) };
        let job = Self::prepared(spec);
        let data = Arc::new(match &self.expected {
            Ok(expected) if !expected.is_empty() => job.into_expected_data(runtime, runner)?,
            _ => job.into_data()?,
        });
        if index == 0 {
            self.fresh.keep_first(&data);
        }
        Ok(Some(data))
    }

    /// The tolerance for differences from the expected outputs.
    #[must_use]
    pub fn tolerance(&self) -> Tolerance {
        self.spec.reference.as_ref().map(|reference| reference.tolerance).unwrap_or_default()
    }

    /// The same after [`LATER_CALLS`] calls, whose errors add up: the defaults of a sum of four times as many terms are twice as wide.
    pub(crate) fn later_tolerance(&self) -> Tolerance {
        let Tolerance { rtol, atol, reduction_length } = self.tolerance();
        let twice = |bound: f64| LATER_CALLS as f64 * bound;
        let terms = reduction_length.unwrap_or(1).saturating_mul(LATER_CALLS * LATER_CALLS);
        Tolerance { rtol: rtol.map(twice), atol: atol.map(twice), reduction_length: Some(terms) }
    }

    /// Rejects opaque bytes, which a reference on the host cannot take.
    fn check_bytes(&self) -> Result<()> {
        match self.spec.args.iter().find(|arg| matches!(arg.kind, ArgumentKind::Bytes(_))) {
            Some(arg) => Err(Error::invalid(format!(
                "{}: argument \"{}\": a reference on the host needs the fields of a structure; write struct = \
                 [[\"f32\", 0.5], …] instead of bytes",
                arg.location, arg.name
            ))),
            None => Ok(()),
        }
    }

    fn run_reference(
        &self,
        (runtime, runner): (&Runtime, Option<&dyn ReferenceRunner>),
        code: &KernelSource,
        calls: u64,
    ) -> Result<Vec<Outputs>> {
        self.check_bytes()?;
        let _context = CrashContext::enter(format!("while the reference of \"{}\" ran", self.spec.name));
        let host = runtime.open("host:0")?;
        if let Some(runner) = runner.filter(|runner| runner.takes(code)) {
            return runner.run(self, code, &*host, calls);
        }
        let bound = BoundKernel::of_code(&*host, self, code)?;
        let queue = host.queue()?;
        let call = |_| {
            bound.restore(self, Due::Later)?;
            queue.call(&bound.kernel, Geometry::single(), &bound.args(&self.spec))?;
            bound.outputs(&self.spec)
        };
        (0..calls).map(call).collect()
    }
}

fn initial(tensor: &TensorSpec, arg: &Argument) -> Result<HostArray> {
    match &tensor.init {
        Init::File(path) => load(path, tensor, arg),
        Init::Stored(path, name) => {
            let read = || Safetensors::open(path)?.array(name);
            checked(read(), &format!("{}#{name}", path.display()), tensor, arg)
        }
        init => init.array(tensor.dtype, &tensor.shape),
    }
}

fn load(path: &std::path::Path, tensor: &TensorSpec, arg: &Argument) -> Result<HostArray> {
    checked(HostArray::load_npy(path), &path.display().to_string(), tensor, arg)
}

/// The array that was read from a file, if it is what the argument needs.
fn checked(read: Result<HostArray>, from: &str, tensor: &TensorSpec, arg: &Argument) -> Result<HostArray> {
    // The table shows messages without their operations, so the message must hold everything.
    let about = format!("{}: argument \"{}\": {from}", arg.location, arg.name);
    let array = read.map_err(|error| {
        Error::new(error.kind(), format!("{about}: {}", error.message())).with_source(error)
    })?;
    match array.dtype() == tensor.dtype && array.shape() == tensor.shape {
        true => Ok(array),
        false => Err(Error::invalid(format!(
            "{about} holds {} {:?}, the argument is {} {:?}",
            array.dtype(),
            array.shape(),
            tensor.dtype,
            tensor.shape
        ))),
    }
}
