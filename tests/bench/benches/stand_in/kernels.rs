//! Launches and kernels: groups of 16 items, which an MPPA runs as they are, and of 256, which the stand-in runs as loops.

use std::path::{Path, PathBuf};

use runtime_core::{Device, Queue};
use runtime_harness::job::BoundKernel;
use runtime_harness::spec::Number;
use runtime_harness::{Job, Overrides, Spec};

use super::Devices;
use super::turns::{Rounds, line};

/// Values of a spec by name.
type Values = &'static [(&'static str, i128)];
type Kernel = (&'static str, Values, Values);

/// Each kernel with sizes for groups of 16, and what is different for groups of 256.
const KERNELS: [Kernel; 8] = [
    ("vector_add", &[("n", 1 << 20), ("GROUP", 16)], &[("GROUP", 256)]),
    ("saxpy", &[("n", 1 << 20), ("GROUP", 16)], &[("GROUP", 256)]),
    ("reduction", &[("n", 1 << 20), ("GROUP", 16)], &[("GROUP", 256)]),
    ("scan", &[("n", 1 << 18), ("GROUP", 16)], &[("GROUP", 256)]),
    ("histogram", &[("n", 1 << 18), ("GROUP", 16)], &[("GROUP", 256)]),
    ("softmax", &[("rows", 64), ("columns", 1000), ("GROUP", 16)], &[("GROUP", 256)]),
    ("matmul", &[("m", 128), ("n", 128), ("k", 128), ("TILE", 4)], &[("TILE", 16)]),
    (
        "mandelbrot",
        &[("width", 128), ("height", 128), ("most", 100), ("GROUP_WIDTH", 4), ("GROUP_HEIGHT", 4)],
        &[("GROUP_WIDTH", 32), ("GROUP_HEIGHT", 8)],
    ),
];

pub(crate) fn measure(devices: &Devices, rounds: &Rounds) {
    launches(devices, rounds);
    let only = std::env::var("STAND_IN_BENCH_ONLY").unwrap_or_default();
    let is_wanted = |name: &str| only.is_empty() || only.split(',').any(|wanted| wanted == name);
    for (name, sizes, large) in KERNELS.iter().filter(|(name, ..)| is_wanted(name)) {
        compare(devices, rounds, (name, "groups of 16"), sizes);
        let other = sizes.iter().map(|size| *large.iter().find(|(key, _)| *key == size.0).unwrap_or(size));
        compare(devices, rounds, (name, "groups of 256"), &other.collect::<Vec<_>>());
    }
}

/// One group of 16 items that does almost nothing: what a launch costs.
fn launches(devices: &Devices, rounds: &Rounds) {
    let job = job("saxpy", &[("n", 16), ("GROUP", 16)]);
    let (theirs, ours) = (Bound::new(&devices.opencl, &job), Bound::new(&devices.stand_in, &job));
    line("launch and wait, one group of 16", &rounds.take(|| theirs.run(1), || ours.run(1)));
    line("100 launches, one group of 16, and wait", &rounds.take(|| theirs.run(100), || ours.run(100)));
}

fn compare(devices: &Devices, rounds: &Rounds, (name, what): (&str, &str), sizes: &[(&str, i128)]) {
    let job = job(name, sizes);
    let (theirs, ours) = (Bound::new(&devices.opencl, &job), Bound::new(&devices.stand_in, &job));
    line(&format!("{name}, {what}"), &rounds.take(|| theirs.run(1), || ours.run(1)));
}

#[allow(unsafe_code, reason = "runs the code that specs name")]
fn job(name: &str, sizes: &[(&str, i128)]) -> Job {
    let value = |(name, value): &(&str, i128)| ((*name).to_owned(), Number::Integer(*value));
    let overrides = Overrides { values: sizes.iter().map(value).collect(), ..Overrides::default() };
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels").join(name);
    let spec = Spec::load(&path.with_extension("toml"), &overrides);
    // SAFETY: the kernels of this repository keep to their arguments, which their tests show.
    unsafe { Job::new(spec.unwrap_or_else(|error| panic!("{error}"))) }
}

/// A kernel on a device, with a queue.
struct Bound<'j> {
    job: &'j Job,
    bound: BoundKernel,
    queue: Queue,
}

impl<'j> Bound<'j> {
    fn new(device: &Device, job: &'j Job) -> Self {
        let bound = BoundKernel::new(&**device, job).expect("the kernel loads");
        Self { job, bound, queue: device.queue().expect("a queue") }
    }

    fn run(&self, launches: usize) {
        let (config, args) = (self.bound.config(self.job.spec()), self.bound.args(self.job.spec()));
        let config = config.expect("the groups are valid");
        for _ in 0..launches {
            drop(self.queue.launch(&self.bound.kernel, config, &args).expect("a launch"));
        }
        self.queue.wait_idle().expect("the kernel ends");
    }
}
