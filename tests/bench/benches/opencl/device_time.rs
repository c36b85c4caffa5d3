//! Compares device times of the evaluator with the durations of the driver's profiling events.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use runtime_core::evaluate::{Clock, ClockChoice, DataLocation, Evaluation, EvaluationArg, Timing, Warmup};
use runtime_core::{Access, Arg, Element, Geometry, Kernel, Placement, Tensor};

use crate::raw::{ITEMS, Raw, set};
use crate::{Device, median, module};

const GROUPS: usize = 64;
/// The approximate duration of a launch: far longer than its overhead.
const WANTED_NS: u64 = 10_000_000;

pub(crate) fn measure(device: &Device, raw: &Raw) {
    let (queue, kernel) = (raw.open_queue(true), raw.kernel("busy"));
    let items = GROUPS * ITEMS;
    let buffer = raw.allocate(items * 4, cl3::memory::CL_MEM_READ_WRITE);
    set(kernel, 0, &buffer);
    let profile = |rounds: u32| {
        set(kernel, 1, &rounds);
        Raw::profile(queue, kernel, items)
    };
    let mut rounds = 1000;
    // The time of a short launch includes overhead: more rounds, until it is negligible.
    while profile(rounds) < WANTED_NS / 2 && rounds < 1 << 28 {
        rounds = rounds.saturating_mul(2);
    }
    let busy = module(device).kernel("busy").expect("the kernel is there");
    let out = device.allocate(u32::DTYPE, &[items], &Placement::default()).expect("memory");
    for clock in [Clock::DeviceKernel, Clock::DeviceBatch] {
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        // Alternating in small batches, because the clock frequency of a CPU device varies.
        for _ in 0..30 {
            plain.extend((0..2).map(|_| profile(rounds) as f64));
            match evaluate(device, &busy, &out, (rounds, clock)) {
                Ok(samples) => ours.extend(samples),
                Err(error) => return println!("| `{clock}`: {error} | | | |"),
            }
        }
        let least = |samples: &[f64]| samples.iter().copied().fold(f64::NAN, f64::min);
        let leasts = (least(&ours) / least(&plain) - 1.0) * 100.0;
        let (plain, ours) = (median(plain), median(ours));
        let what = format!("device time of a kernel, by `{clock}`; plain by profiling events");
        let more = (ours / plain - 1.0) * 100.0;
        println!(
            "| {what} | {:.1} µs | {:.1} µs | {more:+.2}%, the least {leasts:+.2}% |",
            plain / 1e3,
            ours / 1e3
        );
    }
}

/// Samples of the evaluator, in nanoseconds.
fn evaluate(
    device: &Device,
    kernel: &Kernel,
    out: &Tensor,
    (rounds, clock): (u32, Clock),
) -> runtime_core::Result<Vec<f64>> {
    let mut timing = Timing::default();
    timing.repeat = 2;
    timing.number = Some(1);
    timing.warmup = Warmup::Calls(1);
    timing.clock = ClockChoice::Use(clock);
    let args =
        vec![EvaluationArg::tensor(out, Access::Write, DataLocation::Device), Arg::scalar(rounds).into()];
    let geometry = Geometry::new(u32::try_from(GROUPS).unwrap_or(1), u32::try_from(ITEMS).unwrap_or(1));
    let mut evaluation = Evaluation::new(kernel, geometry, args);
    evaluation.timing = timing;
    Ok(block_on(device.evaluate(&mut evaluation))?.samples_ns)
}

/// Sleeps until it is woken, because a CPU device needs this thread's core.
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::park(),
        }
    }
}
