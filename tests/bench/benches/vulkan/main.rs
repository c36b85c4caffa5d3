//! Compares our calls with a small hand-written program on a Vulkan device, alternating in one process; prints a table.
//!
//! `VULKAN_BENCH_DEVICE` selects the device (default `vulkan:0`), `VULKAN_BENCH_ONLY` some of the parts (`submit`, `wait`,
//! `kernel`, `transfers`, `wgpu`; `calls` and `bursts` run only if named). With the feature `wgpu`, launch rates are also
//! compared with wgpu.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark that reports, and numbers far below 2^52"
)]

mod calls;
mod raw;
mod transfers;
#[cfg(feature = "wgpu")]
mod with_wgpu;

use std::sync::Arc;
use std::time::{Duration, Instant};

use raw::Raw;
use runtime_bench::median;
use runtime_core::{Arg, CommonRuntime, Event, Geometry, Kernel, ModuleSource, Queue, QueueOptions, Tensor};

/// Three tensors and a scalar; one work-item, so that only the launch is measured.
pub(crate) const TOUCH: &str = "
    struct Scalars { scale: f32 } var<immediate> scalars: Scalars;
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @group(0) @binding(1) var<storage, read> b: array<f32>;
    @group(0) @binding(2) var<storage, read_write> c: array<f32>;
    @compute @workgroup_size(1) fn touch() { c[0] = a[0] + scalars.scale * b[0]; }";
/// The burst that submissions are amortised over.
pub(crate) const BURST: u32 = 500;
const ROUNDS: usize = 40;
/// Parts that run only if named.
const ON_DEMAND: [&str; 2] = ["calls", "bursts"];

pub(crate) type Device = Arc<dyn CommonRuntime>;

fn main() {
    let measures = runtime_bench::is_measuring() || std::env::var_os("CARGO").is_none();
    if std::env::args().any(|argument| argument == "--list") || !measures {
        return;
    }
    let name = std::env::var("VULKAN_BENCH_DEVICE").unwrap_or_else(|_| "vulkan:0".to_owned());
    let runtime = runtime_bench::builder().with_lowering(runtime_kernel::wgsl()).build();
    let device = match runtime.open(&name) {
        Ok(device) => device,
        Err(error) => return println!("{error}: nothing is compared"),
    };
    let info = device.info();
    let Some(mut raw) = Raw::open(info.uuid.unwrap_or_default(), &spirv(), c"touch") else {
        return println!("{name} is not there for a program written by hand: nothing is compared");
    };
    println!("{}, driver {}\n", info.name, info.driver_version.as_deref().unwrap_or_default());
    println!("| what | by hand | ours | ratio | of the least | aim |\n| --- | --- | --- | --- | --- | --- |");
    type Part = fn(&Device, &mut Raw);
    let parts: [(&str, Part); 7] = [
        ("submit", submit),
        ("wait", wait),
        ("kernel", kernel),
        ("transfers", transfers::transfers),
        ("wgpu", beside_wgpu),
        ("calls", calls::calls),
        ("bursts", calls::bursts),
    ];
    let only = std::env::var("VULKAN_BENCH_ONLY").unwrap_or_default();
    for (name, part) in parts {
        let wanted =
            if only.is_empty() { !ON_DEMAND.contains(&name) } else { only.split(',').any(|one| one == name) };
        if wanted {
            part(&device, &mut raw);
        }
    }
}

/// The code that our device loads.
fn spirv() -> Vec<u32> {
    use runtime_kernel::{Checks, Program, Specialisation};
    let program =
        Program::parse(TOUCH, "touch.wgsl", &Specialisation::default()).expect("the kernel is right");
    program.spirv(Checks::Bounded).expect("it has a form in SPIR-V")
}

/// Nanoseconds of two operations: medians and minima.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pair {
    pub(crate) plain: f64,
    pub(crate) ours: f64,
    /// The ratio of the minima, which are disturbed least.
    pub(crate) least: f64,
}

impl Pair {
    fn new(plain: Vec<f64>, ours: Vec<f64>) -> Self {
        let least = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
        let ratio = least(&ours) / least(&plain);
        Self { plain: median(plain), ours: median(ours), least: ratio }
    }
}

/// Alternates two operations, so that both run under the same conditions.
pub(crate) fn compare(
    rounds: usize,
    mut plain: impl FnMut() -> Duration,
    mut ours: impl FnMut() -> Duration,
) -> Pair {
    let (mut plain_ns, mut ours_ns) = (Vec::new(), Vec::new());
    for round in 0..rounds + 3 {
        let (first, second) = (plain(), ours());
        if round >= 3 {
            plain_ns.push(first.as_nanos() as f64);
            ours_ns.push(second.as_nanos() as f64);
        }
    }
    Pair::new(plain_ns, ours_ns)
}

pub(crate) fn time(operation: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    operation();
    begin.elapsed()
}

/// A line about times; the target is the maximum ratio.
pub(crate) fn line(what: &str, pair: Pair, calls: f64, aim: Option<f64>) {
    let ratio = pair.ours / pair.plain;
    let aim = aim.map_or_else(String::new, |aim| verdict(&format!("≤ {aim}×"), ratio <= aim));
    println!(
        "| {what} | {:.3} µs | {:.3} µs | {ratio:.2}× | {:.2}× | {aim} |",
        pair.plain / calls / 1e3,
        pair.ours / calls / 1e3,
        pair.least
    );
}

/// A line about rates; the target is the minimum ratio.
pub(crate) fn rate(what: &str, pair: Pair, (things, unit, digits): (f64, &str, usize), least: Option<f64>) {
    let ratio = pair.plain / pair.ours;
    println!(
        "| {what} | {:.digits$}{unit} | {:.digits$}{unit} | {ratio:.2}× | {:.2}× | {} |",
        things / pair.plain,
        things / pair.ours,
        1.0 / pair.least,
        least.map_or_else(String::new, |least| verdict(&format!("≥ {least}×"), ratio >= least))
    );
}

pub(crate) fn verdict(aim: &str, kept: bool) -> String {
    if kept { aim.to_owned() } else { format!("{aim}, missed") }
}

pub(crate) struct Fixture {
    pub(crate) queue: Queue,
    kernel: Kernel,
    tensors: [Tensor; raw::TENSORS],
}

impl Fixture {
    pub(crate) fn open(device: &Device, options: &QueueOptions) -> Self {
        let kernel = device.kernel(ModuleSource::wgsl(TOUCH), "touch");
        let queue = device.open_queue(options).expect("a queue opens");
        let tensors = std::array::from_fn(|_| device.tensor([64], &[1.0f32; 64]).expect("memory"));
        Self { queue, kernel: kernel.expect("the kernel loads"), tensors }
    }

    #[inline]
    pub(crate) fn args(&self) -> [Arg<'_>; 4] {
        let [a, b, c] = &self.tensors;
        [Arg::read(a), Arg::read(b), Arg::write(c), Arg::scalar(3.0f32)]
    }

    pub(crate) fn launch(&self) -> Event {
        self.queue.launch(&self.kernel, Geometry::single(), &self.args()).expect("the queue takes it")
    }

    /// A burst to its last submission; then it is waited for, which does not count.
    pub(crate) fn burst(&self) -> Duration {
        self.timed_burst()[0]
    }

    /// A burst to its last submission, and to its end.
    pub(crate) fn timed_burst(&self) -> [Duration; 2] {
        let begin = Instant::now();
        (0..BURST).for_each(|_| drop(self.launch()));
        self.queue.flush().expect("the queue takes it");
        let submitted = begin.elapsed();
        self.queue.wait_idle().expect("the queue ends");
        [submitted, begin.elapsed()]
    }
}

fn submit(device: &Device, raw: &mut Raw) {
    let fixture = Fixture::open(device, &QueueOptions::default());
    let commands = raw.command_buffers(BURST);
    let one_each = |raw: &mut Raw| {
        let elapsed = time(|| {
            for commands in &commands {
                raw.begin(*commands);
                raw.dispatch(*commands, 3.0);
                raw.submit(*commands);
            }
        });
        raw.wait();
        elapsed
    };
    let what = "submit, amortised over 500; by hand vkQueueSubmit2 for each";
    line(what, compare(ROUNDS, || one_each(raw), || fixture.burst()), BURST.into(), Some(0.3));
    let all_in_one = |raw: &mut Raw| {
        let elapsed = time(|| {
            raw.begin(commands[0]);
            (0..BURST).for_each(|_| raw.dispatch(commands[0], 3.0));
            raw.submit(commands[0]);
        });
        raw.wait();
        elapsed
    };
    let what = "the same; by hand all in one command buffer, descriptors never changed";
    line(what, compare(ROUNDS, || all_in_one(raw), || fixture.burst()), BURST.into(), None);
    let mut held = Vec::with_capacity(BURST as usize);
    let kept = || {
        let elapsed = time(|| {
            (0..BURST).for_each(|_| held.push(fixture.launch()));
            fixture.queue.flush().expect("the queue takes it");
        });
        fixture.queue.wait_idle().expect("the queue ends");
        held.clear();
        elapsed
    };
    let what = "submit with each event kept; by hand vkQueueSubmit2 for each";
    line(what, compare(ROUNDS, || one_each(raw), kept), BURST.into(), None);
}

fn wait(device: &Device, raw: &mut Raw) {
    const CALLS: u32 = 100;
    let fixture = Fixture::open(device, &QueueOptions::default());
    let commands = raw.command_buffers(1)[0];
    let plain = || {
        time(|| {
            for _ in 0..CALLS {
                raw.begin(commands);
                raw.dispatch(commands, 3.0);
                raw.submit(commands);
                raw.wait();
            }
        })
    };
    let ours = || time(|| (0..CALLS).for_each(|_| fixture.launch().wait().expect("the kernel ends")));
    line("launch + wait", compare(ROUNDS, plain, ours), CALLS.into(), Some(1.1));
}

/// The time of a kernel by the device's clock, ours by a pair of timestamps around the launch.
fn kernel(device: &Device, raw: &mut Raw) {
    let fixture = Fixture::open(device, &QueueOptions { timestamps: true, ..QueueOptions::default() });
    let commands = raw.command_buffers(1)[0];
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 3 {
        let by_hand = raw.kernel_ns(commands, 1);
        let Ok(begin) = fixture.queue.timestamp() else {
            return println!("| kernel by timestamps | | the device has none | | | |");
        };
        drop(fixture.launch());
        let end = fixture.queue.timestamp().expect("as the first");
        end.wait().expect("the kernel ends");
        let read = |event| fixture.queue.read_timestamp(event).expect("it has ended");
        let elapsed = read(&end).saturating_sub(read(&begin));
        if round >= 3 {
            plain.push(by_hand);
            ours.push(elapsed as f64);
        }
    }
    line("an empty kernel by the device's timestamps", Pair::new(plain, ours), 1.0, None);
}

#[cfg(feature = "wgpu")]
fn beside_wgpu(device: &Device, _raw: &mut Raw) {
    with_wgpu::compare_with(device);
}

#[cfg(not(feature = "wgpu"))]
fn beside_wgpu(_device: &Device, _raw: &mut Raw) {
    println!("\nBuilt without the feature `wgpu`: no comparison with it.");
}
