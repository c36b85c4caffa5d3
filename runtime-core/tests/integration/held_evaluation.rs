//! Evaluations with the clock `device_held`, on a simulated accelerator: its kernels last exactly as long as they say.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::evaluate::{
    Clock, DataLocation, Evaluation, EvaluationArg, FlushCache, Measurement, Warmup,
};
use runtime_core::{Arg, CommonRuntime, ErrorKind, Geometry, Kernel, ModuleSource, Options, Result, Runtime};

fn open(id: &str, options: &Options) -> Arc<dyn CommonRuntime> {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    runtime.open_with(id, options).unwrap()
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    // SAFETY: the null device's builtins check their arguments.
    let source = unsafe { ModuleSource::native("null", name) };
    device.kernel(&source, name).unwrap()
}

/// Three samples of two calls after one call of warm-up.
fn short<'a>(kernel: &'a Kernel, args: Vec<EvaluationArg<'a>>) -> Evaluation<'a> {
    let mut evaluation = Evaluation::new(kernel, Geometry::single(), args);
    evaluation.timing.repeat = 3;
    evaluation.timing.number = Some(2);
    evaluation.timing.warmup = Warmup::Calls(1);
    evaluation
}

#[tokio::main(flavor = "current_thread")]
async fn measure(device: &dyn CommonRuntime, mut evaluation: Evaluation<'_>) -> Result<Measurement> {
    device.evaluate(&mut evaluation).await
}

#[test]
fn a_held_batch_is_timed_without_the_gaps_between_submissions() {
    for id in ["null:0", "null:1"] {
        let device = open(id, &Options::new());
        let spin = kernel(&*device, "spin");
        for number in [1, 256, 257, 600] {
            let mut evaluation = short(&spin, vec![Arg::scalar(1i64).into()]);
            evaluation.timing.number = Some(number);
            evaluation.timing.clock = Clock::DeviceHeld.into();
            let measurement = measure(&*device, evaluation).unwrap();
            assert_eq!(measurement.clock, Clock::DeviceHeld);
            // Submitting a call takes longer than the microsecond that it simulates, with or without optimisation.
            assert_eq!(measurement.samples_ns, [1000.0; 3], "{id}, {number} calls");
            assert_eq!(measurement.overhead_ns, Some(0.0));
        }
    }
}

#[test]
fn a_held_batch_makes_every_call_once() {
    let device = open("null:0", &Options::new());
    let counters = kernel(&*device, "counters");
    let out = device.tensor([1], &[0u64]).unwrap();
    for number in [None, Some(600)] {
        let mut evaluation = short(&counters, vec![Arg::write(&out).into()]);
        evaluation.timing.number = number;
        evaluation.timing.clock = Clock::DeviceHeld.into();
        let measurement = measure(&*device, evaluation).unwrap();
        // The kernel counts the launches of its queue.
        assert_eq!(out.to_vec::<u64>().unwrap(), [measurement.calls], "{number:?}");
    }
}

#[test]
fn a_queue_is_held_by_default_if_the_kernel_is_warm() {
    let chosen = |id: &str, change: &dyn Fn(&mut Evaluation<'_>)| {
        let device = open(id, &Options::new());
        let (fill, out) = (kernel(&*device, "fill_f32"), device.zeros::<f32>([4]).unwrap());
        let mut evaluation = short(&fill, vec![Arg::write(&out).into(), Arg::scalar(5f32).into()]);
        evaluation.args[0].on = DataLocation::Device;
        change(&mut evaluation);
        measure(&*device, evaluation).map(|measurement| measurement.clock)
    };
    assert_eq!(chosen("null:0", &|_| ()).unwrap(), Clock::DeviceHeld);
    assert_eq!(chosen("null:1", &|_| ()).unwrap(), Clock::DeviceHeld, "also where there are graphs");
    assert_eq!(chosen("null:0", &|e| e.timing.warmup = Warmup::Calls(0)).unwrap(), Clock::DeviceBatch);
    assert_eq!(chosen("null:0", &|e| e.args[0].on = DataLocation::Host).unwrap(), Clock::DeviceBatch);
    let cold = chosen("null:0", &|e| {
        (e.timing.warmup, e.timing.clock) = (Warmup::Calls(0), Clock::DeviceHeld.into());
    });
    let error = cold.unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("warm-up"), "{error}");
    let transfers = chosen("null:0", &|e| {
        (e.args[0].on, e.timing.clock) = (DataLocation::Host, Clock::DeviceHeld.into());
    });
    assert!(transfers.unwrap_err().message().contains("device_held"));
}

#[test]
fn a_hold_that_does_not_last_is_not_claimed() {
    // Both timestamps and ten calls are twelve submissions.
    for (most_held, clock) in [(11, Clock::DeviceBatch), (13, Clock::DeviceHeld)] {
        let device = open("null:0", &Options::new().with("most_held", most_held as i64));
        let spin = kernel(&*device, "spin");
        let mut evaluation = short(&spin, vec![Arg::scalar(1i64).into()]);
        evaluation.timing.number = Some(10);
        evaluation.timing.clock = Clock::DeviceHeld.into();
        assert_eq!(measure(&*device, evaluation).unwrap().clock, clock, "{most_held}");
    }
}

#[test]
fn the_first_call_of_a_kernel_is_not_held() {
    // One sample, and eleven windows of the no-op kernel, of which the first is not held either.
    for (fault, succeeds) in [("hold:12", true), ("hold:11", false)] {
        let device = open("null:0", &Options::new().with("fail_call", fault));
        let spin = kernel(&*device, "spin");
        let mut evaluation = short(&spin, vec![Arg::scalar(1i64).into()]);
        (evaluation.timing.repeat, evaluation.timing.number) = (1, Some(1));
        evaluation.timing.clock = Clock::DeviceHeld.into();
        assert_eq!(measure(&*device, evaluation).is_ok(), succeeds, "{fault}");
    }
}

#[test]
fn an_error_in_a_held_batch_resumes_the_queue() {
    for fault in ["launch:5", "timestamp:4", "hold:2", "resume:1", "resume:3", "timestamp:5"] {
        let begin = Instant::now();
        let device = open("null:0", &Options::new().with("fail_call", fault));
        let (spin, out) = (kernel(&*device, "spin"), device.zeros::<f32>([4]).unwrap());
        let mut evaluation = short(&spin, vec![Arg::scalar(1i64).into()]);
        evaluation.timing.clock = Clock::DeviceHeld.into();
        let error = measure(&*device, evaluation).unwrap_err();
        assert!(error.message().contains("as option \"fail_call\" asks"), "{fault}: {error}");
        assert_eq!(out.to_vec::<f32>().unwrap(), [0.0; 4]);
        drop((spin, out, device));
        // A device with held work would be leaked after a deadline of seconds.
        assert!(begin.elapsed() < Duration::from_secs(2), "{fault}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_flush_runs_before_each_held_call_and_is_not_timed() {
    let device = open("null:0", &Options::new());
    let counters = kernel(&*device, "counters");
    let out = device.tensor([10], &[0u64; 10]).unwrap();
    for clock in [Clock::DeviceHeld, Clock::DeviceBatch, Clock::HostWall] {
        let mut evaluation = short(&counters, vec![Arg::write(&out).into()]);
        (evaluation.timing.number, evaluation.timing.flush_cache) = (Some(2), FlushCache::PerCall);
        evaluation.timing.clock = clock.into();
        let measurement = measure(&*device, evaluation).unwrap();
        let counts = out.to_vec::<u64>().unwrap();
        assert_eq!(
            (counts[0], counts[9]),
            (measurement.calls, 6),
            "{clock}: two fills for each of three samples"
        );
    }
}

#[test]
fn a_device_clock_does_not_wait_for_the_flush() {
    // Each submission ends a millisecond late. A host that waited for the flush would wait twice for each call.
    let device = open("null:0", &Options::new().with("delay_us", 1000i64));
    let out = device.tensor([6], &[0u64; 6]).unwrap();
    let counters = kernel(&*device, "counters");
    let polls = |clock: Clock, flush: FlushCache| {
        let mut evaluation = short(&counters, vec![Arg::write(&out).into()]);
        evaluation.timing.number = Some(1);
        evaluation.timing.flush_cache = flush;
        evaluation.timing.clock = clock.into();
        measure(&*device, evaluation).unwrap();
        // Blocking waits and polls of the queue so far.
        let counts = out.to_vec::<u64>().unwrap();
        counts[4]
    };
    assert_eq!(
        polls(Clock::DeviceBatch, FlushCache::PerSample),
        polls(Clock::DeviceBatch, FlushCache::Never)
    );
    assert!(polls(Clock::HostWall, FlushCache::PerSample) > polls(Clock::HostWall, FlushCache::Never));
}
