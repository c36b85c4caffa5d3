//! Lists on the host, through fusers: with reads, waits and cancellations in between, and tensors that are dropped early.

use runtime_core::fusion::{Fuser, FusionOptions, FusionReport};
use runtime_core::lowering::{FusionArg, PlannedKernel};
use runtime_core::{
    Access, Arg, DType, Device, Event, Geometry, Kernel, ModuleSource, Queue, Runtime, Tensor,
};

use crate::interpreted::{Contents, Interpreter, has_floats, is_same};
use crate::lists::{Case, Random, list};

/// One list in this many is also run on the host, whose compiler takes longer than the interpreter.
const SHARE: u32 = 100;

/// Lists beyond the share run until everything has happened, but no more of them than this.
const MAX_CASES: u32 = 1000;

/// What happened to the lists.
#[derive(Debug, Default)]
struct Counts {
    fused: usize,
    promoted: usize,
    cancelled: usize,
    dropped: usize,
}

impl Counts {
    /// Whether everything happened that the test is about. Timing decides which lists are cancelled, so no small number of them
    /// is certain to.
    const fn is_complete(&self) -> bool {
        let Self { fused, promoted, cancelled, dropped } = *self;
        fused > 0 && promoted > 0 && cancelled > 0 && dropped > promoted
    }
}

/// A list on a device.
struct Run<'c> {
    case: &'c Case,
    queue: &'c Queue,
    kernels: Vec<Kernel>,
    /// `None` once dropped.
    tensors: Vec<Option<Tensor>>,
    /// The contents before each launch, and after the last.
    expected: &'c [Contents],
    counts: &'c mut Counts,
}

impl Run<'_> {
    fn open_fuser(&self) -> Fuser {
        let options = FusionOptions::new().constants(self.case.constants);
        self.queue.fuser(&options).expect("a fuser")
    }

    fn launch(&self, fuser: &Fuser, at: usize) -> Event {
        let (kernel, launch) = (&self.kernels[at], &self.case.launches[at]);
        let args = launch.args.iter().zip(access(kernel)).map(|(arg, access)| match arg {
            FusionArg::Tensor(index) => Arg::tensor(self.tensors[*index].as_ref().expect("in use"), access),
            FusionArg::Scalar { dtype, bits } => Arg::scalar_bits(*dtype, *bits),
        });
        let geometry = Geometry::new(launch.groups, kernel.info().group_size.expect("a group size"));
        fuser.queue().launch(kernel, geometry, &args.collect::<Vec<_>>()).expect("a launch")
    }

    /// Drops the temporaries that no launch from `at` on uses.
    fn drop_temporaries(&mut self, at: usize) {
        let is_used = |tensor: usize| {
            self.case.launches[at..].iter().any(|launch| launch.args.contains(&FusionArg::Tensor(tensor)))
        };
        for tensor in self.case.temporary.iter().copied().filter(|tensor| !is_used(*tensor)) {
            self.counts.dropped += usize::from(self.tensors[tensor].take().is_some());
        }
    }

    fn compare(&self, tensor: usize, after: usize) {
        let Some(actual) = &self.tensors[tensor] else { return };
        let actual = words(actual);
        let actual: Vec<u8> = actual.iter().flat_map(|word| word.to_le_bytes()).collect();
        let launches = &self.case.launches;
        assert!(
            is_same(self.case, &self.expected[after][tensor], &actual),
            "tensor {tensor} after launch {after}: {launches:#?}"
        );
    }

    fn note(&mut self, report: &FusionReport) {
        self.counts.fused += report.kernels.iter().filter(|kernel| kernel.is_fused).count();
        self.counts.promoted += report.kernels.iter().map(|kernel| kernel.promoted).sum::<usize>();
        self.counts.cancelled += usize::from(report.cancelled.is_some());
    }

    /// Runs all launches, with what needs the list in between.
    fn run(&mut self, random: &mut Random) {
        let mut fuser = self.open_fuser();
        for at in 0..self.kernels.len() {
            let event = self.launch(&fuser, at);
            self.drop_temporaries(at + 1);
            match random.below(20) {
                0 => {
                    let tensors = u32::try_from(self.tensors.len()).expect("few tensors");
                    self.compare(random.below(tensors) as usize, at + 1);
                }
                1 => fuser.cancel().expect("to cancel"),
                2 => event.wait().expect("to wait"),
                3 => {
                    let (_, report) = fuser.complete().expect("to complete");
                    self.note(&report);
                    fuser = self.open_fuser();
                }
                4 => {
                    // Its launches run as they are.
                    drop(fuser);
                    fuser = self.open_fuser();
                }
                _ => {}
            }
        }
        let (event, report) = fuser.complete().expect("to complete");
        event.wait().expect("to wait");
        self.note(&report);
        (0..self.tensors.len()).for_each(|tensor| self.compare(tensor, self.kernels.len()));
    }
}

/// A tensor with the elements of a list's, if it has any.
fn tensor(device: &Device, data: &[u32], has_floats: bool) -> Option<Tensor> {
    let floats = || data.iter().copied().map(f32::from_bits).collect::<Vec<_>>();
    let made =
        if has_floats { device.tensor([data.len()], &floats()) } else { device.tensor([data.len()], data) };
    made.ok()
}

/// The bits of a tensor's elements.
fn words(tensor: &Tensor) -> Vec<u32> {
    match tensor.dtype() {
        DType::F32 => tensor.to_vec::<f32>().expect("its elements").into_iter().map(f32::to_bits).collect(),
        _ => tensor.to_vec().expect("its elements"),
    }
}

fn access(kernel: &Kernel) -> Vec<Access> {
    let params = kernel.info().params.as_ref().expect("parameters");
    params.iter().map(|param| param.access.expect("portable code states it")).collect()
}

#[test]
fn random_lists_on_the_host_leave_what_the_interpreter_does() {
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
    let device = runtime.open("host:0").expect("the host");
    let queue = device.queue().expect("a queue");
    let cases = (crate::cases() / SHARE).max(20);
    let mut counts = Counts::default();
    for seed in 0..MAX_CASES {
        if seed >= cases && counts.is_complete() {
            break;
        }
        let mut random = Random(u64::from(seed) * 104_729 + 3);
        let mut case = list(&mut random);
        // Most tensors are dropped after their last use.
        case.temporary = (0..case.tensors.len()).filter(|_| random.below(4) > 0).collect();
        let expected = Interpreter::default().unfused(&mut case);
        let planned = |at: usize| PlannedKernel { launches: at..at + 1, code: None };
        let kernels = (0..case.launches.len()).map(|at| {
            let planned = planned(at);
            let (text, entry, ..) = case.resolved(&planned);
            device.kernel(ModuleSource::wgsl(text), entry).unwrap_or_else(|error| panic!("{error}\n{text}"))
        });
        let kernels = kernels.collect();
        let has_floats = has_floats(&case);
        let tensors = case.tensors.iter().map(|data| tensor(&device, data, has_floats)).collect();
        let counts = &mut counts;
        Run { case: &case, queue: &queue, kernels, tensors, expected: &expected, counts }.run(&mut random);
    }
    println!("lists on the host: {counts:?}");
    assert!(counts.is_complete(), "{counts:?}");
}
