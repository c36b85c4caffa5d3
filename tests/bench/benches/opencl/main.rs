//! Compares our calls with plain `cl3` calls on an OpenCL device, alternating in one process; prints a table of ratios.
//!
//! `OPENCL_BENCH_DEVICE` selects the device (default `opencl:0`), `OPENCL_BENCH_ONLY` a list of the parts, and
//! `OPENCL_BENCH_MIB` the size of a transfer (default 1024).

#![allow(
    missing_docs,
    unsafe_code,
    clippy::print_stdout,
    reason = "a benchmark that calls the driver and reports"
)]

mod device_time;
mod raw;
mod threads;
mod transfers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use raw::{CODE, ITEMS, Raw};
use runtime_bench::median;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Element, Event, Geometry, Kernel, Module, ModuleSource, Placement, Queue,
    Runtime, Tensor,
};

/// Launches per batch.
const BATCH: u64 = 400;
const ROUNDS: usize = 60;

type Device = Arc<dyn CommonRuntime>;
type Part = fn(&Device, &Raw);

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let name = std::env::var("OPENCL_BENCH_DEVICE").unwrap_or_else(|_| "opencl:0".to_owned());
    let device = match Runtime::new().open(&name) {
        Ok(device) => device,
        Err(error) => return println!("nothing is compared: {error}"),
    };
    let info = device.info();
    let (name, vendor) = (&info.name, info.vendor.as_deref().unwrap_or_default());
    let Some(raw) = Raw::open(name.trim(), vendor.trim()) else {
        return println!("nothing is compared: plain calls do not find {name} of {vendor}");
    };
    println!("{name} of {vendor}, driver {}\n", info.driver_version.as_deref().unwrap_or_default());
    println!("| what | plain | ours | ratio |\n| --- | --- | --- | --- |");
    let parts: [(&str, Part); 5] = [
        ("submit", submit),
        ("wait", wait),
        ("threads", threads::measure),
        ("time", device_time::measure),
        ("transfers", transfers::measure),
    ];
    let only = std::env::var("OPENCL_BENCH_ONLY").unwrap_or_default();
    for (name, part) in parts {
        if only.is_empty() || only.split(',').any(|wanted| wanted == name) {
            part(&device, &raw);
        }
    }
}

/// Medians of two operations that alternate, so that both run under the same conditions.
fn compare(
    rounds: usize,
    mut plain: impl FnMut() -> Duration,
    mut ours: impl FnMut() -> Duration,
) -> (f64, f64) {
    let (mut plain_ns, mut ours_ns) = (Vec::new(), Vec::new());
    let warm = rounds.div_ceil(12);
    for round in 0..rounds + warm {
        let (first, second) = (plain(), ours());
        if round >= warm {
            plain_ns.push(first.as_nanos() as f64);
            ours_ns.push(second.as_nanos() as f64);
        }
    }
    (median(plain_ns), median(ours_ns))
}

fn line(what: &str, (plain_ns, ours_ns): (f64, f64), calls: f64) {
    println!(
        "| {what} | {:.3} µs | {:.3} µs | {:.3}× |",
        plain_ns / calls / 1e3,
        ours_ns / calls / 1e3,
        ours_ns / plain_ns
    );
}

fn time(operation: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    operation();
    begin.elapsed()
}

/// A queue of ours with a kernel and three tensors.
struct Fixture {
    queue: Queue,
    kernel: Kernel,
    tensors: [Tensor; 3],
}

fn module(device: &Device) -> Module {
    // SAFETY: the launches keep to the memory of the tensors.
    let source = unsafe { ModuleSource::native(CodeFormat::OPENCL_C, CODE) };
    device.load(&source).expect("the kernels load")
}

fn tensor(device: &Device, count: usize, space: &str) -> Tensor {
    device.allocate(f32::DTYPE, &[count], &Placement::space(space)).expect("memory")
}

impl Fixture {
    fn open(device: &Device) -> Self {
        Self::of(device, &module(device))
    }

    fn of(device: &Device, module: &Module) -> Self {
        let kernel = module.kernel("touch").expect("the kernel is there");
        let queue = device.queue().expect("a queue opens");
        Self { queue, kernel, tensors: std::array::from_fn(|_| tensor(device, 1024, "device")) }
    }

    #[inline]
    fn launch(&self) -> Event {
        let [a, b, c] = &self.tensors;
        let args = [Arg::read(a), Arg::read(b), Arg::write(c), Arg::scalar(3.0f32)];
        let geometry = Geometry::new(1, u32::try_from(ITEMS).unwrap_or(1));
        self.queue.launch(&self.kernel, geometry, &args).expect("the queue takes it")
    }

    fn wait(&self) {
        self.queue.wait_idle().expect("the queue ends");
    }
}

fn submit(device: &Device, raw: &Raw) {
    let (fixture, enqueuer) = (Fixture::open(device), raw.enqueuer());
    let batch = |launch: &mut dyn FnMut(), wait: &dyn Fn()| {
        let elapsed = time(|| (0..BATCH).for_each(|_| launch()));
        wait();
        elapsed
    };
    let plain = || batch(&mut || raw.launch(enqueuer, 3.0), &|| Raw::wait(enqueuer.queue));
    let dropped = || batch(&mut || drop(fixture.launch()), &|| fixture.wait());
    line("submit, event dropped; plain without events", compare(ROUNDS, plain, dropped), BATCH as f64);
    let plain = || batch(&mut || raw::launch_with_event(raw, enqueuer, 3.0), &|| Raw::wait(enqueuer.queue));
    line("the same; plain as `cl3` does it, an event each", compare(ROUNDS, plain, dropped), BATCH as f64);
    let mut held = None;
    let kept = || batch(&mut || held = Some(fixture.launch()), &|| fixture.wait());
    line("submit, event kept; plain an event each", compare(ROUNDS, plain, kept), BATCH as f64);
}

fn wait(device: &Device, raw: &Raw) {
    const CALLS: u64 = 100;
    let (fixture, enqueuer) = (Fixture::open(device), raw.enqueuer());
    let calls = |call: &dyn Fn()| time(|| (0..CALLS).for_each(|_| call()));
    let plain = || {
        calls(&|| {
            raw.launch(enqueuer, 3.0);
            Raw::wait(enqueuer.queue);
        })
    };
    let ours = || calls(&|| fixture.launch().wait().expect("the kernel ends"));
    line("launch + wait; plain by `clFinish`", compare(ROUNDS, plain, ours), CALLS as f64);
}
