//! The timing loop on a simulated accelerator: invariants that do not depend on the times.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtime_core::evaluate::{
    Clock, DataLocation, EachCall, Evaluation, EvaluationArg, FlushCache, Measurement, Validation, Warmup,
    WindowData,
};
use runtime_core::{
    Access, Arg, CommonRuntime, ErrorKind, Geometry, HostArray, Kernel, ModuleSource, Options, Placement,
    Result, Runtime, Tensor,
};

fn device() -> Arc<dyn CommonRuntime> {
    runtime().open("null:0").unwrap()
}

fn runtime() -> Runtime {
    Runtime::builder().discover(false).register(runtime_null::backend()).build()
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    // SAFETY: the null device's builtins check their arguments.
    let source = unsafe { ModuleSource::native("null", name) };
    device.kernel(&source, name).unwrap()
}

fn ones(device: &dyn CommonRuntime) -> Tensor {
    device.tensor([4], &[1f32; 4]).unwrap()
}

fn expect(values: [f32; 4]) -> HostArray {
    HostArray::from_slice(&[4], &values).unwrap()
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
fn a_correct_kernel_passes_and_updated_tensors_keep_their_contents() {
    let device = device();
    let (kernel, x, y) = (kernel(&*device, "saxpy_f32"), ones(&*device), ones(&*device));
    let args = vec![Arg::read(&x).into(), Arg::read_write(&y).into(), Arg::scalar(2f32).into()];
    let mut evaluation = short(&kernel, args);
    evaluation.reference = vec![(1, expect([3.0; 4]))];
    let measurement = measure(&*device, evaluation).unwrap();
    assert!(measurement.validation.is_passed(), "{:?}", measurement.validation);
    // One call of warm-up and six of samples, each adding 2: the validation changed nothing.
    assert_eq!((y.to_vec::<f32>().unwrap(), measurement.calls), (vec![15.0; 4], 8));
}

#[test]
fn tensors_are_restored_before_each_call_that_asks_for_it() {
    let device = device();
    let kernel = kernel(&*device, "saxpy_f32");
    for on in [DataLocation::Device, DataLocation::Host] {
        let (x, y) = (ones(&*device), ones(&*device));
        let updated = EvaluationArg::tensor(&y, Access::ReadWrite, on).each_call(EachCall::Initial);
        let args = vec![Arg::read(&x).into(), updated, Arg::scalar(2f32).into()];
        let mut evaluation = short(&kernel, args);
        evaluation.reference = vec![(1, expect([3.0; 4]))];
        let measurement = measure(&*device, evaluation).unwrap();
        assert!(measurement.validation.is_passed(), "{:?}", measurement.validation);
        assert_eq!((y.to_vec::<f32>().unwrap(), measurement.calls), (vec![3.0; 4], 8), "{on:?}");
    }
}

/// Sets `y` to 1 before each window, and adds what it finds behind it.
struct Windows<'t> {
    sets: [&'t Tensor; 2],
    /// The set, the calls, those before them, and the first element behind them.
    seen: Vec<(usize, u64, u64, f32)>,
}

impl WindowData for Windows<'_> {
    fn prepare(&mut self, set: usize, number: u64) -> Result<u64> {
        self.sets[set].write(&[1f32; 4])?;
        let before = number - 1;
        self.seen.push((set, number, before, f32::NAN));
        Ok(before)
    }

    fn check(&mut self, set: usize, number: u64) -> Result<()> {
        let last = self.seen.last_mut().unwrap();
        assert_eq!((last.0, last.1), (set, number));
        last.3 = self.sets[set].to_vec::<f32>()?[0];
        Ok(())
    }
}

#[test]
fn windows_use_sets_of_arguments_in_turn_on_data_that_is_written_before_them() {
    for (device, clock, on) in [
        ("null:0", Clock::HostWall, DataLocation::Device),
        ("null:0", Clock::HostWall, DataLocation::Host),
        ("null:0", Clock::DeviceBatch, DataLocation::Host),
        ("null:1", Clock::DeviceGraph, DataLocation::Device),
    ] {
        let device = runtime().open(device).unwrap();
        let kernel = kernel(&*device, "saxpy_f32");
        let (x, y, other) = (ones(&*device), ones(&*device), ones(&*device));
        let [args, other_args] = [&y, &other].map(|y| {
            let updated = EvaluationArg::tensor(y, Access::ReadWrite, on);
            vec![Arg::read(&x).into(), updated, Arg::scalar(2f32).into()]
        });
        let mut windows = Windows { sets: [&y, &other], seen: Vec::new() };
        let mut evaluation = short(&kernel, args);
        evaluation.validate = false;
        evaluation.timing.clock = clock.into();
        evaluation.other_args = vec![other_args];
        evaluation.window_data = Some(&mut windows);
        measure(&*device, evaluation).unwrap();
        // Each call uploads what the copy in host memory holds, so a window of two calls leaves what the last one made of 1, or of
        // what the call before has left.
        let [one, three] = if on == DataLocation::Host { [3.0, 5.0] } else { [3.0, 7.0] };
        let samples = [(1, 2, 1, three), (0, 2, 1, three), (1, 2, 1, three)];
        assert_eq!(windows.seen, [&[(0, 1, 0, one)], &samples[..]].concat(), "{clock} {on:?}");
    }
}

#[test]
fn each_set_has_all_arguments() {
    let device = device();
    let (kernel, x) = (kernel(&*device, "scale_f32"), ones(&*device));
    let mut evaluation = short(&kernel, vec![Arg::read_write(&x).into(), Arg::scalar(2f32).into()]);
    evaluation.other_args = vec![vec![Arg::read_write(&x).into()]];
    let error = measure(&*device, evaluation).unwrap_err();
    assert!(error.message().contains("other_args"), "{error}");
}

#[test]
fn only_what_is_read_and_written_is_restored() {
    let device = device();
    let (kernel, x, y) = (kernel(&*device, "saxpy_f32"), ones(&*device), ones(&*device));
    for wrong in 0..3 {
        let args: [EvaluationArg<'_>; 3] =
            [Arg::read(&x).into(), Arg::read_write(&y).into(), Arg::scalar(2f32).into()];
        let mut evaluation = short(&kernel, args.to_vec());
        evaluation.args[wrong].each_call = EachCall::Initial;
        match measure(&*device, evaluation) {
            Ok(_) => assert_eq!(wrong, 1),
            Err(error) => {
                assert!(wrong != 1 && error.message().contains(&format!("argument {wrong}")), "{error}");
            }
        }
    }
}

#[test]
fn a_cold_evaluation_validates_afterwards_from_the_first_contents() {
    let device = device();
    let (kernel, x, y) = (kernel(&*device, "saxpy_f32"), ones(&*device), ones(&*device));
    let args = vec![Arg::read(&x).into(), Arg::read_write(&y).into(), Arg::scalar(2f32).into()];
    let mut evaluation = short(&kernel, args);
    evaluation.timing.warmup = Warmup::Calls(0);
    evaluation.timing.number = None;
    evaluation.reference = vec![(1, expect([3.0; 4]))];
    let measurement = measure(&*device, evaluation).unwrap();
    assert!(measurement.cold && measurement.validation.is_passed(), "{:?}", measurement.validation);
    assert_eq!((measurement.number, measurement.calls), (1, 4));
}

#[test]
fn nothing_runs_before_the_first_cold_sample() {
    let device = device();
    let counters = kernel(&*device, "counters");
    let out = device.tensor([1], &[0u64]).unwrap();
    for (warmup, validated_as) in [(0, 4u64), (1, 1)] {
        let mut evaluation = short(&counters, vec![Arg::write(&out).into()]);
        (evaluation.timing.number, evaluation.timing.warmup) = (Some(1), Warmup::Calls(warmup));
        // The kernel writes the number of its launch: a cold evaluation validates after its three samples.
        evaluation.reference = vec![(0, HostArray::from_slice(&[1], &[validated_as]).unwrap())];
        let measurement = measure(&*device, evaluation).unwrap();
        assert!(measurement.validation.is_passed(), "{:?}", measurement.validation);
        assert_eq!(measurement.cold, warmup == 0);
    }
}

#[test]
fn a_wrong_result_is_data_not_an_error() {
    let device = device();
    let (fill, out) = (kernel(&*device, "fill_f32"), ones(&*device));
    let mut evaluation = short(&fill, vec![Arg::write(&out).into(), Arg::scalar(5f32).into()]);
    evaluation.reference = vec![(0, expect([5.0, 5.0, 7.0, 5.0]))];
    let measurement = measure(&*device, evaluation).unwrap();
    let Validation::Failed(mismatch) = &measurement.validation else {
        panic!("{:?}", measurement.validation)
    };
    assert_eq!((mismatch.arg, &mismatch.index[..], mismatch.wrong, mismatch.unwritten), (0, &[2][..], 1, 0));
    assert_eq!((mismatch.actual.as_str(), mismatch.expected.as_str()), ("5.0", "7.0"));
    assert_eq!(measurement.samples_ns.len(), 3);
}

#[test]
fn an_unwritten_element_is_detected_even_if_it_was_correct_before() {
    let device = device();
    let (noop, out) = (kernel(&*device, "noop"), ones(&*device));
    let mut evaluation = short(&noop, vec![Arg::write(&out).into()]);
    evaluation.reference = vec![(0, expect([1.0; 4]))];
    let Validation::Failed(mismatch) = measure(&*device, evaluation).unwrap().validation else {
        panic!("it passed")
    };
    assert_eq!((mismatch.wrong, mismatch.unwritten), (4, 4));
}

#[test]
fn validation_is_skipped_with_a_reason() {
    let device = device();
    let (fill, out) = (kernel(&*device, "fill_f32"), ones(&*device));
    for (validate, reference, word) in
        [(true, vec![], "no reference"), (false, vec![(0, expect([0.0; 4]))], "not asked")]
    {
        let mut evaluation = short(&fill, vec![Arg::write(&out).into(), Arg::scalar(5f32).into()]);
        (evaluation.validate, evaluation.reference) = (validate, reference);
        match measure(&*device, evaluation).unwrap().validation {
            Validation::Skipped { reason } => assert!(reason.contains(word), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn validation_alone_runs_the_kernel_once_and_keeps_its_results() {
    let device = device();
    let (kernel, x, y) = (kernel(&*device, "saxpy_f32"), ones(&*device), ones(&*device));
    let args = vec![Arg::read(&x).into(), Arg::read_write(&y).into(), Arg::scalar(2f32).into()];
    let mut evaluation = short(&kernel, args);
    let setups = AtomicU64::new(0);
    evaluation.setup = Some(Box::new(|| _ = setups.fetch_add(1, Ordering::Relaxed)));
    let skipped = device.validate(&mut evaluation).unwrap();
    assert_eq!(skipped, Validation::Skipped { reason: "there is no reference".to_owned() });
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0; 4]);
    evaluation.reference = vec![(1, expect([5.0; 4]))];
    assert!(device.validate(&mut evaluation).unwrap().is_passed());
    assert_eq!(y.to_vec::<f32>().unwrap(), [5.0; 4]);
    assert!(device.validate(&mut evaluation).unwrap().is_failed());
    evaluation.reference = vec![(0, expect([1.0; 4]))];
    let error = device.validate(&mut evaluation).unwrap_err();
    assert_eq!(error.to_string().matches("null:0: validate: reference 0").count(), 1, "{error}");
    drop(evaluation);
    assert_eq!(setups.into_inner(), 3);
}

#[test]
fn validation_alone_detects_an_element_that_was_never_written() {
    let device = device();
    let (noop, out) = (kernel(&*device, "noop"), ones(&*device));
    let mut evaluation = short(&noop, vec![Arg::write(&out).into()]);
    evaluation.reference = vec![(0, expect([1.0; 4]))];
    match device.validate(&mut evaluation).unwrap() {
        Validation::Failed(mismatch) => assert_eq!((mismatch.wrong, mismatch.unwritten), (4, 4)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_clock_returns_every_repeat_and_times_what_it_should() {
    let device = device();
    let spin = kernel(&*device, "spin");
    let median_ns = |clock: Clock| {
        let mut evaluation = short(&spin, vec![Arg::scalar(2000i64).into()]);
        evaluation.timing.clock = clock.into();
        let measurement = measure(&*device, evaluation).unwrap();
        assert_eq!((measurement.samples_ns.len(), measurement.clock, measurement.number), (3, clock, 2));
        assert!(measurement.is_complete() && measurement.overhead_ns.unwrap() >= 0.0);
        measurement.statistics.median_ns
    };
    let spin_ns = 2e6;
    for clock in [Clock::DeviceKernel, Clock::DeviceBatch, Clock::HostWall] {
        assert!(median_ns(clock) >= spin_ns, "{clock} missed part of the kernel");
    }
    assert!(median_ns(Clock::HostSubmit) < spin_ns, "submitting waited for the kernel");
}

#[test]
fn a_replayed_batch_runs_every_call() {
    let device = runtime().open("null:1").unwrap();
    let spin = kernel(&*device, "spin");
    let mut evaluation = short(&spin, vec![Arg::scalar(100i64).into()]);
    evaluation.timing.clock = Clock::DeviceGraph.into();
    evaluation.timing.number = Some(20);
    let measurement = measure(&*device, evaluation).unwrap();
    assert_eq!((measurement.clock, measurement.overhead_ns), (Clock::DeviceGraph, None));
    assert!(measurement.statistics.min_ns >= 1e5, "{} ns", measurement.statistics.min_ns);

    let saxpy = kernel(&*device, "saxpy_f32");
    for number in [Some(1), Some(1500), None] {
        let (x, y) = (ones(&*device), ones(&*device));
        let args = vec![Arg::read(&x).into(), Arg::read_write(&y).into(), Arg::scalar(1f32).into()];
        let mut evaluation = short(&saxpy, args);
        evaluation.timing.number = number;
        evaluation.timing.min_repeat = Duration::from_micros(100);
        evaluation.timing.clock = Clock::DeviceGraph.into();
        let measurement = measure(&*device, evaluation).unwrap();
        // Each call adds 1 to the 1 that was there.
        assert_eq!(y.to_vec::<f32>().unwrap(), [1.0 + measurement.calls as f32; 4], "{number:?}");
    }

    let without = runtime().open("null:0").unwrap();
    let add = kernel(&*without, "spin");
    let mut evaluation = short(&add, vec![Arg::scalar(1i64).into()]);
    evaluation.timing.clock = Clock::DeviceGraph.into();
    assert_eq!(measure(&*without, evaluation).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn the_reported_calls_are_the_calls_made() {
    let device = device();
    let counters = kernel(&*device, "counters");
    let out = device.tensor([1], &[0u64]).unwrap();
    for (number, clock) in
        [(Some(2), Clock::DeviceBatch), (None, Clock::HostWall), (Some(600), Clock::DeviceKernel)]
    {
        let mut evaluation = short(&counters, vec![Arg::write(&out).into()]);
        evaluation.timing.number = number;
        evaluation.timing.clock = clock.into();
        let measurement = measure(&*device, evaluation).unwrap();
        // The kernel counts the launches of its queue; every evaluation has its own queue.
        assert_eq!(out.to_vec::<u64>().unwrap(), [measurement.calls], "{clock}");
    }
}

#[test]
fn transfers_of_host_arguments_are_timed_and_reported() {
    let device = device();
    let (add, a, b, out) = (kernel(&*device, "add_f32"), ones(&*device), ones(&*device), ones(&*device));
    for clock in [Clock::HostWall, Clock::DeviceBatch] {
        let args = vec![
            EvaluationArg::tensor(&a, Access::Read, DataLocation::Host),
            Arg::read(&b).into(),
            EvaluationArg::tensor(&out, Access::Write, DataLocation::Host),
        ];
        let mut evaluation = short(&add, args);
        evaluation.timing.clock = clock.into();
        evaluation.reference = vec![(2, expect([2.0; 4]))];
        let measurement = measure(&*device, evaluation).unwrap();
        assert!(measurement.validation.is_passed());
        let transfer = measurement.transfer.unwrap();
        assert_eq!((transfer.bytes_in, transfer.bytes_out, transfer.samples_ns.len()), (16, 16, 3));
        assert!(transfer.samples_ns.iter().all(|&ns| ns > 0.0));
        if clock == Clock::HostWall {
            let mut pairs = measurement.samples_ns.iter().zip(&transfer.samples_ns);
            assert!(pairs.all(|(whole, part)| part < whole));
        }
    }
    let on_device = short(&add, vec![Arg::read(&a).into(), Arg::read(&b).into(), Arg::write(&out).into()]);
    assert!(measure(&*device, on_device).unwrap().transfer.is_none());
}

#[test]
fn a_transfer_is_not_timed_with_the_kernel_that_it_waits_for() {
    // Each of the three steps of a call, sending, computing and fetching, lasts 4 ms.
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let device = runtime.open_with("null:0", &Options::new().with("delay_us", 4000i64)).unwrap();
    let (scale, x) = (kernel(&*device, "scale_f32"), ones(&*device));
    let args =
        vec![EvaluationArg::tensor(&x, Access::ReadWrite, DataLocation::Host), Arg::scalar(2f32).into()];
    let mut evaluation = short(&scale, args);
    evaluation.timing.clock = Clock::HostWall.into();
    let measurement = measure(&*device, evaluation).unwrap();
    let (whole_ns, part_ns) =
        (measurement.statistics.min_ns, measurement.transfer.unwrap().statistics.min_ns);
    assert!(part_ns >= 8e6, "sending and fetching take 8 ms, not {part_ns} ns");
    assert!(
        whole_ns - part_ns >= 3.9e6,
        "the kernel's 4 ms are in the transfers: {part_ns} of {whole_ns} ns"
    );
}

#[test]
fn the_setup_hook_runs_before_every_window() {
    let device = device();
    let (fill, out) = (kernel(&*device, "fill_f32"), ones(&*device));
    let hooks = AtomicU64::new(0);
    for flush in [FlushCache::Never, FlushCache::PerSample, FlushCache::PerCall] {
        hooks.store(0, Ordering::Relaxed);
        let mut evaluation = short(&fill, vec![Arg::write(&out).into(), Arg::scalar(5f32).into()]);
        (evaluation.timing.repeat, evaluation.timing.number) = (1, Some(1));
        evaluation.timing.flush_cache = flush;
        evaluation.timing.cooldown = Duration::from_micros(1);
        evaluation.reference = vec![(0, expect([5.0; 4]))];
        evaluation.setup = Some(Box::new(|| {
            hooks.fetch_add(1, Ordering::Relaxed);
        }));
        measure(&*device, evaluation).unwrap();
        assert_eq!(hooks.load(Ordering::Relaxed), 3, "validation, warm-up, sample");
    }
}

#[test]
fn a_kernel_without_measurable_time_terminates() {
    let device = runtime().open("null:1").unwrap();
    let noop = kernel(&*device, "noop");
    for clock in Clock::ALL {
        let mut evaluation = Evaluation::new(&noop, Geometry::single(), Vec::new());
        evaluation.timing.min_repeat = Duration::from_millis(100);
        evaluation.timing.budget = Duration::from_secs(1);
        evaluation.timing.clock = clock.into();
        let measurement = measure(&*device, evaluation).unwrap();
        assert!(!measurement.samples_ns.is_empty() && measurement.samples_ns.len() <= 10, "{clock}");
    }
}

#[test]
fn contradictory_settings_are_rejected_before_anything_runs() {
    let device = device();
    let (fill, out) = (kernel(&*device, "fill_f32"), ones(&*device));
    let zeros = || expect([0.0; 4]);
    let doubles = HostArray::from_slice(&[4], &[0f64; 4]).unwrap();
    let square = HostArray::from_slice(&[2, 2], &[0f32; 4]).unwrap();
    let refuse = |on: DataLocation, words: &str, change: &dyn Fn(&mut Evaluation<'_>)| {
        let args = vec![EvaluationArg::tensor(&out, Access::Write, on), Arg::scalar(5f32).into()];
        let mut evaluation = short(&fill, args);
        change(&mut evaluation);
        let error = measure(&*device, evaluation).unwrap_err();
        assert!(error.to_string().starts_with("null:0: evaluate: "), "{error}");
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(words), "{error}");
    };
    refuse(DataLocation::Device, "repeat", &|e| e.timing.repeat = 0);
    refuse(DataLocation::Device, "number", &|e| e.timing.number = Some(0));
    refuse(DataLocation::Device, "rtol", &|e| e.tolerance.rtol = Some(f64::NAN));
    refuse(DataLocation::Device, "flops", &|e| e.cost.flops = Some(-1.0));
    refuse(DataLocation::Device, "reference 7", &|e| e.reference = vec![(7, zeros())]);
    refuse(DataLocation::Device, "reference 1", &|e| e.reference = vec![(1, zeros())]);
    refuse(DataLocation::Device, "f64 [4]", &|e| e.reference = vec![(0, doubles.clone())]);
    refuse(DataLocation::Device, "f32 [2, 2]", &|e| e.reference = vec![(0, square.clone())]);
    refuse(DataLocation::Pinned, "Placement::space(\"pinned\")", &|_| ());
    refuse(DataLocation::Host, "device_kernel", &|e| e.timing.clock = Clock::DeviceKernel.into());
    refuse(DataLocation::Host, "host_submit", &|e| e.timing.clock = Clock::HostSubmit.into());
    let pinned = device.allocate(runtime_core::DType::F32, &[4], &Placement::space("pinned")).unwrap();
    let args =
        vec![EvaluationArg::tensor(&pinned, Access::Write, DataLocation::Pinned), Arg::scalar(5f32).into()];
    assert!(measure(&*device, short(&fill, args)).unwrap().transfer.is_none());
}

#[test]
fn a_failing_kernel_is_an_error() {
    let device = runtime().open("null:1").unwrap();
    let fail = kernel(&*device, "fail");
    for clock in Clock::ALL {
        let mut evaluation = short(&fail, Vec::new());
        evaluation.timing.clock = clock.into();
        assert_eq!(measure(&*device, evaluation).unwrap_err().kind(), ErrorKind::Failed, "{clock}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evaluations_are_tasks() {
    let task = || async {
        let device = device();
        let spin = kernel(&*device, "spin");
        let mut evaluation = short(&spin, vec![Arg::scalar(100i64).into()]);
        device.evaluate(&mut evaluation).await.map(|measurement| measurement.samples_ns.len())
    };
    let (one, two) = (tokio::spawn(task()), tokio::spawn(task()));
    assert_eq!((one.await.unwrap().unwrap(), two.await.unwrap().unwrap()), (3, 3));
}

#[test]
fn a_benchmark_is_built_step_by_step() {
    let device = device();
    let (scale, x) = (kernel(&*device, "add_f32"), ones(&*device));
    let y = device.zeros::<f32>([4]).unwrap();
    let bench = || {
        let bench = device.bench(&scale, (1, 1), (Arg::read(&x), Arg::read(&x), Arg::write(&y)));
        bench.samples(3).sample_time(Duration::from_micros(10)).flops(4.0)
    };
    let right = bench().expect(2, &[2f32; 4]).run().unwrap();
    assert!(right.validation.is_passed() && right.samples_ns.len() == 3 && right.cost.flops == Some(4.0));
    let wrong = bench().expect(2, &[2f32, 2.0, 3.0, 2.0]).run().unwrap();
    assert!(matches!(wrong.validation, Validation::Failed(_)), "{:?}", wrong.validation);
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(
        tokio.block_on(bench().configure(|own| own.timing.repeat = 2).into_future()).unwrap().repeat,
        2
    );
}

#[test]
fn mistakes_in_the_steps_of_a_benchmark_are_reported_when_it_runs() {
    let device = device();
    let (scale, x) = (kernel(&*device, "scale_f32"), ones(&*device));
    let bench = || device.bench(&scale, (1, 1), (Arg::read_write(&x), 1f32));
    let refused = |measured: Result<Measurement>, text: &str| {
        let error = measured.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(bench().expect(1, &[1f32]).samples(3).run(), "argument 1 is not a tensor");
    refused(bench().expect(0, &[1f32; 3]).run(), "3");
    refused(bench().location(2, DataLocation::Host).expect(9, &[1f32]).run(), "there is no argument 2");
    refused(bench().samples(0).run(), "repeat");
    refused(device.bench(&scale, (1, 1), (1f32,)).run(), "argument");
}
