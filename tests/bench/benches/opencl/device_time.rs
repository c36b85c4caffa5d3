//! The device time that the evaluator reports beside the durations of the driver's own profiling events.

use std::pin::pin;
use std::task::{Context, Waker};

use runtime_core::{
    Access, Arg, Clock, ClockChoice, Element, Evaluation, EvaluationArg, Geometry, Kernel, On, Placement,
    Tensor, Timing, Warmup,
};

use crate::raw::{ITEMS, Raw, set};
use crate::{Device, median, module};

const GROUPS: usize = 64;
/// How long a launch lasts, about: far more than what lies around it.
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
    profile(1000);
    let rounds = (1000 * WANTED_NS / profile(1000).max(1)).clamp(1000, 1 << 30);
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    let busy = module(device).kernel("busy").expect("the kernel is there");
    let out = device.allocate(u32::DTYPE, &[items], &Placement::default()).expect("memory");
    for clock in [Clock::DeviceKernel, Clock::DeviceBatch] {
        let (mut plain, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..12 {
            plain.extend((0..5).map(|_| profile(rounds) as f64));
            match evaluate(device, &busy, &out, (rounds, clock)) {
                Ok(samples) => ours.extend(samples),
                Err(error) => return println!("| `{clock}`: {error} | | | |"),
            }
        }
        let (plain, ours) = (median(plain), median(ours));
        let what = format!("device time of a kernel, by `{clock}`; plain by profiling events");
        println!(
            "| {what} | {:.1} µs | {:.1} µs | {:+.2}% |",
            plain / 1e3,
            ours / 1e3,
            (ours / plain - 1.0) * 100.0
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
    timing.repeat = 5;
    timing.number = Some(1);
    timing.warmup = Warmup::Calls(1);
    timing.clock = ClockChoice::Use(clock);
    let args = vec![
        EvaluationArg::tensor(out, Access::Write, On::Device),
        EvaluationArg { arg: Arg::scalar(rounds), on: On::Device },
    ];
    let geometry = Geometry::new(u32::try_from(GROUPS).unwrap_or(1), u32::try_from(ITEMS).unwrap_or(1));
    let mut evaluation = Evaluation::new(kernel, geometry, args);
    evaluation.timing = timing;
    let mut future = pin!(device.evaluate(&mut evaluation));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let std::task::Poll::Ready(measurement) = future.as_mut().poll(&mut context) {
            return Ok(measurement?.samples_ns);
        }
    }
}
