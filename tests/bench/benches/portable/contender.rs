//! A kernel of `kernels/` on the host device, with its arguments.

#![allow(unsafe_code, reason = "loads without bounds checks where that is asked for")]

use std::sync::Arc;

use runtime_core::{CommonRuntime, HostArray, Queue, QueueOptions, Runtime};

use crate::options::Options;
use crate::prepare::{self, Prepared};
use crate::spec::{ArgumentKind, Spec};

/// A spec with its data and with what is right.
pub(crate) struct Job(prepare::Job);

impl Job {
    pub(crate) fn new(runtime: &Runtime, spec: Spec) -> Self {
        let mut job = prepare::Job::new(spec);
        job.find_expected(runtime);
        Self(job)
    }

    pub(crate) const fn spec(&self) -> &Spec {
        &self.0.spec
    }
}

/// The kernel on the host device.
pub(crate) struct Ours<'a> {
    pub(crate) job: &'a Job,
    prepared: Prepared,
    queue: Queue,
    _device: Arc<dyn CommonRuntime>,
}

/// An argument as others want it.
pub(crate) enum Raw {
    /// Address and bytes.
    Tensor(*mut u8, usize),
    /// The bits, and how many bytes of them count.
    Scalar(u64, usize),
}

impl<'a> Ours<'a> {
    pub(crate) fn new(runtime: &Runtime, job: &'a Job, options: &Options) -> Self {
        let device = runtime.open("host:0").expect("the host opens");
        let mut prepared = Prepared::new(&*device, &job.0, &job.spec().kernel)
            .unwrap_or_else(|error| panic!("{}: {error}", job.spec().name));
        if options.unchecked {
            prepared.kernel = unchecked(&*device, job.spec());
        }
        let queue = device.open_queue(&QueueOptions::default()).expect("a queue opens");
        Self { job, prepared, queue, _device: device }
    }

    /// Launches and waits on this thread.
    pub(crate) fn call(&self) {
        let spec = self.job.spec();
        let args = self.prepared.args(spec);
        self.queue.call(&self.prepared.kernel, &spec.geometry, &args).expect("the kernel runs");
    }

    /// Launches, then waits for the event.
    pub(crate) fn launch_and_wait(&self) {
        let spec = self.job.spec();
        let args = self.prepared.args(spec);
        let event = self.queue.launch(&self.prepared.kernel, &spec.geometry, &args);
        event.and_then(|event| event.wait()).expect("the kernel runs");
    }

    /// The arguments in order, with the memory that the host device uses.
    pub(crate) fn raw(&self) -> Vec<Raw> {
        let args = self.job.spec().args.iter().zip(&self.prepared.tensors);
        args.map(|(arg, tensor)| match (&arg.kind, tensor) {
            (ArgumentKind::Scalar(dtype, bits), _) => Raw::Scalar(*bits, dtype.bytes()),
            (_, Some(tensor)) => {
                let mut view = tensor.map_mut().expect("the host's memory");
                Raw::Tensor(view.as_mut_ptr(), view.len())
            }
            _ => panic!("{} is of a kind that no portable kernel has", arg.name),
        })
        .collect()
    }

    /// Runs `call` on the initial data; what it writes must be right.
    pub(crate) fn check(&self, whose: &str, call: impl Fn()) {
        let name = &self.job.spec().name;
        let expected = self.job.0.expected.as_ref().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.restore();
        call();
        let outputs = self.prepared.outputs(self.job.spec()).expect("outputs can be read");
        for ((index, actual), (_, expected)) in outputs.iter().zip(expected) {
            let found = self.job.0.tolerance().compare(*index, actual, expected, None);
            assert!(!found.is_failed(), "{whose} {name}: {found:?}");
        }
        self.restore();
    }

    fn restore(&self) {
        let inputs = self.job.0.inputs.as_ref().expect("initial data");
        let write = |(tensor, input): (&Option<_>, &Option<HostArray>)| match (tensor, input) {
            (Some(tensor), Some(input)) => runtime_core::Tensor::write_array(tensor, input),
            (Some(tensor), None) => runtime_core::Tensor::fill(tensor, &[0xff]),
            _ => Ok(()),
        };
        self.prepared.tensors.iter().zip(inputs).try_for_each(write).expect("tensors can be written");
    }
}

fn unchecked(device: &dyn CommonRuntime, spec: &Spec) -> runtime_core::Kernel {
    let source = crate::source::source(&spec.kernel, &spec.specialise).expect("the code is there");
    // SAFETY: the kernels of this repository keep to their arguments, which their tests show.
    let source = unsafe { source.unchecked() };
    device.load(&source).and_then(|module| module.kernel(&spec.kernel.entry)).expect("the kernel loads")
}
