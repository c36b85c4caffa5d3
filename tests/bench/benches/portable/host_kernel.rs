//! A kernel of `kernels/` on the host device, with its arguments.

#![allow(unsafe_code, reason = "runs native code")]

use std::sync::Arc;

use runtime_core::{CommonRuntime, HostArray, Queue, Runtime};
use runtime_harness::job::{BoundKernel, Job};
use runtime_harness::spec::{ArgumentKind, Spec};

use crate::options::Options;

/// Prepares a spec: its initial data, and its expected outputs from the reference.
pub(crate) fn job(runtime: &Runtime, mut spec: Spec, options: &Options) -> Job {
    if options.unchecked {
        spec.kernel.options.push("unchecked", true);
    }
    // SAFETY: the kernels of this repository keep to their arguments, which their tests show.
    let mut job = unsafe { Job::new(spec) };
    job.find_expected(runtime);
    job
}

/// The kernel on the host device.
pub(crate) struct HostKernel<'a> {
    pub(crate) job: &'a Job,
    bound: BoundKernel,
    queue: Queue,
    _device: Arc<dyn CommonRuntime>,
}

/// An argument, for the other contenders.
pub(crate) enum RawArg {
    /// Address and bytes.
    Tensor(*mut u8, usize),
    /// The bits, and their size in bytes.
    Scalar(u64, usize),
}

impl<'a> HostKernel<'a> {
    pub(crate) fn new(runtime: &Runtime, job: &'a Job) -> Self {
        let device = runtime.open("host:0").expect("the host opens");
        let bound =
            BoundKernel::new(&*device, job).unwrap_or_else(|error| panic!("{}: {error}", job.spec().name));
        let queue = device.queue().expect("a queue opens");
        Self { job, bound, queue, _device: device }
    }

    /// Launches and waits on this thread.
    pub(crate) fn call(&self) {
        let spec = self.job.spec();
        let args = self.bound.args(spec);
        self.queue.call(&self.bound.kernel, spec.config, &args).expect("the kernel runs");
    }

    /// Launches, then waits for the event.
    pub(crate) fn launch_and_wait(&self) {
        let spec = self.job.spec();
        let args = self.bound.args(spec);
        let event = self.queue.launch(&self.bound.kernel, spec.config, &args);
        event.and_then(|event| event.wait()).expect("the kernel runs");
    }

    /// The arguments in order, with the memory that the host device uses.
    pub(crate) fn raw(&self) -> Vec<RawArg> {
        let args = self.job.spec().args.iter().zip(&self.bound.tensors);
        args.map(|(arg, tensor)| match (&arg.kind, tensor) {
            (ArgumentKind::Scalar(dtype, bits), _) => RawArg::Scalar(*bits, dtype.bytes()),
            (_, Some(tensor)) => {
                let mut view = tensor.map_mut().expect("the host's memory");
                RawArg::Tensor(view.as_mut_ptr(), view.len())
            }
            _ => panic!("{} is of a kind that no portable kernel has", arg.name),
        })
        .collect()
    }

    /// Runs `call` on the initial data, and checks its outputs.
    pub(crate) fn check(&self, whose: &str, call: impl Fn()) {
        let name = &self.job.spec().name;
        let expected = self.job.expected.as_ref().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.restore();
        call();
        let outputs = self.bound.outputs(self.job.spec()).expect("outputs can be read");
        for ((index, actual), (_, expected)) in outputs.iter().zip(expected) {
            let found = self.job.tolerance().compare(*index, actual, expected).expect("same dtype and shape");
            assert!(!found.is_failed(), "{whose} {name}: {found:?}");
        }
        self.restore();
    }

    fn restore(&self) {
        let inputs = self.job.inputs.as_ref().expect("initial data");
        let write = |(tensor, input): (&Option<_>, &Option<HostArray>)| match (tensor, input) {
            (Some(tensor), Some(input)) => runtime_core::Tensor::write_array(tensor, input),
            (Some(tensor), None) => runtime_core::Tensor::fill(tensor, &[0xff]),
            _ => Ok(()),
        };
        self.bound.tensors.iter().zip(inputs).try_for_each(write).expect("tensors can be written");
    }
}
