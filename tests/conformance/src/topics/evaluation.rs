//! Timed evaluation: what must hold of every measurement, whatever the time was.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runtime_core::{
    Access, Arg, Clock, ClockChoice, ErrorKind, Evaluation, EvaluationArg, FlushCache, HostArray, Kernel, Measurement, On,
    Tensor, Validation, Warmup, abi,
};

use crate::case::{Failure, Need, Verdict, cases};
use crate::context::Context;
use crate::data::{all, refused};
use crate::lab::Lab;
use crate::wait::block_on;

const N: usize = 1000;

cases! {
    [Need::Kernel("fill_f32")] => all_repeats_are_returned, statistics_are_in_order, the_clock_is_named,
        times_come_without_counters, a_kernel_of_no_time_ends, a_right_result_passes, a_wrong_result_is_detected,
        an_unwritten_result_is_detected, without_a_reference_nothing_is_compared, validation_can_be_declined,
        read_write_contents_are_put_back, a_cold_measurement_says_so, a_fixed_number_is_kept, calls_are_counted,
        the_setup_hook_runs, the_overhead_is_measured_where_it_can_be, arguments_on_the_host_are_moved,
        the_submit_clock_works, a_clock_that_the_device_lacks_is_refused, a_spent_budget_still_gives_a_sample,
        caches_are_flushed_without_harm, no_samples_are_refused, a_wrong_reference_is_refused,
        a_wrong_argument_is_refused, rates_need_a_cost;
    [Need::Kernel("fail")] => a_failing_kernel_is_an_error;
}

/// `fill_f32` on a tensor, as a question.
struct Question {
    kernel: Kernel,
    out: Tensor,
}

impl Question {
    fn new(lab: &Lab) -> Result<Self, Failure> {
        Ok(Self { kernel: lab.kernel("fill_f32")?, out: lab.full(N, 0.0)? })
    }

    fn ask(&self, lab: &Lab) -> Result<Evaluation<'_>, Failure> {
        let out = EvaluationArg::tensor(&self.out, Access::Write, On::Device);
        let rest = lab.args("fill_f32", &[Arg::scalar(3.0f32)], N)?;
        let args = std::iter::once(out).chain(rest.into_iter().map(EvaluationArg::from)).collect();
        let mut evaluation = Evaluation::new(&self.kernel, lab.geometry(N), args);
        evaluation.timing.repeat = 5;
        evaluation.timing.number = Some(3);
        evaluation.timing.warmup = Warmup::Calls(1);
        Ok(evaluation)
    }
}

fn answer(lab: &Lab, evaluation: &mut Evaluation<'_>) -> runtime_core::Result<Measurement> {
    block_on(lab.device().evaluate(evaluation))
}

/// Asks with changes, and answers.
fn measure(context: &Context, change: impl FnOnce(&mut Evaluation<'_>)) -> Result<Measurement, Failure> {
    let question = Question::new(context.lab())?;
    let mut evaluation = question.ask(context.lab())?;
    change(&mut evaluation);
    Ok(answer(context.lab(), &mut evaluation)?)
}

fn all_repeats_are_returned(context: &Context) -> Verdict {
    for repeat in [1, 2, 7, 50] {
        let measured = measure(context, |evaluation| evaluation.timing.repeat = repeat)?;
        assert_eq!((measured.samples_ns.len(), measured.repeat), (repeat, repeat));
        assert!(measured.is_complete());
    }
    Ok(())
}

fn statistics_are_in_order(context: &Context) -> Verdict {
    let measured = measure(context, |evaluation| evaluation.timing.repeat = 20)?;
    let s = &measured.statistics;
    assert!(s.min_ns <= s.median_ns && s.median_ns <= s.max_ns, "{s:?}");
    assert!(s.min_ns <= s.mean_ns && s.mean_ns <= s.max_ns, "{s:?}");
    assert!(measured.samples_ns.iter().all(|sample| (s.min_ns..=s.max_ns).contains(sample)), "{s:?}");
    Ok(())
}

fn the_clock_is_named(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    assert!(Clock::ALL.contains(&measured.clock) && !measured.clock.name().is_empty());
    let timestamps = context.info().capabilities.has(abi::CAP_TIMESTAMPS);
    assert!(timestamps || !measured.clock.is_device(), "a device clock of a device without one");
    Ok(())
}

fn times_come_without_counters(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    assert!(measured.samples_ns.iter().all(|sample| sample.is_finite() && *sample >= 0.0), "{measured:?}");
    let wall = measure(context, |evaluation| evaluation.timing.clock = ClockChoice::Use(Clock::HostWall))?;
    assert!(wall.samples_ns.iter().all(|sample| *sample > 0.0), "{wall:?}");
    Ok(())
}

fn a_kernel_of_no_time_ends(context: &Context) -> Verdict {
    let kernel = context.lab().kernel("noop")?;
    let mut evaluation = Evaluation::new(&kernel, context.lab().geometry(1), Vec::new());
    evaluation.timing.repeat = 2;
    evaluation.timing.min_repeat = Duration::from_millis(100);
    evaluation.timing.warmup = Warmup::Calls(1);
    evaluation.timing.budget = Duration::from_secs(5);
    let measured = answer(context.lab(), &mut evaluation)?;
    assert!(!measured.samples_ns.is_empty() && measured.number >= 1, "{measured:?}");
    Ok(())
}

fn a_right_result_passes(context: &Context) -> Verdict {
    let reference = HostArray::from_slice(&[N], &[3.0f32; N])?;
    let measured = measure(context, |evaluation| evaluation.reference.push((0, reference)))?;
    match measured.validation {
        Validation::Passed(agreement) => assert_eq!(agreement.elements, N),
        other => return Err(Failure::Failed(format!("{other:?}"))),
    }
    Ok(())
}

fn a_wrong_result_is_detected(context: &Context) -> Verdict {
    let mut data = [3.0f32; N];
    data[777] = 4.0;
    let reference = HostArray::from_slice(&[N], &data)?;
    let measured = measure(context, |evaluation| evaluation.reference.push((0, reference)))?;
    let Validation::Failed(mismatch) = measured.validation else {
        return Err(Failure::Failed(format!("{:?}", measured.validation)));
    };
    assert_eq!((mismatch.arg, mismatch.wrong, mismatch.elements, mismatch.unwritten), (0, 1, N, 0), "{mismatch}");
    assert_eq!((&mismatch.index[..], &*mismatch.actual, &*mismatch.expected), (&[777][..], "3.0", "4.0"), "{mismatch}");
    assert_eq!(measured.samples_ns.len(), 5, "a wrong result is no error: the times are there");
    Ok(())
}

fn an_unwritten_result_is_detected(context: &Context) -> Verdict {
    let lab = context.lab();
    let (kernel, out) = (lab.kernel("spin")?, lab.full(N, 3.0)?);
    if kernel.info().params.is_some() {
        return Err(Failure::Unsupported("no kernel of the suite takes a tensor and leaves it alone".to_owned()));
    }
    // C code finds its first argument and never looks at the second.
    let args = vec![Arg::scalar(1i64).into(), EvaluationArg::tensor(&out, Access::Write, On::Device)];
    let mut evaluation = Evaluation::new(&kernel, lab.geometry(1), args);
    evaluation.reference.push((1, HostArray::from_slice(&[N], &[3.0f32; N])?));
    evaluation.timing.repeat = 1;
    evaluation.timing.number = Some(1);
    match answer(lab, &mut evaluation)?.validation {
        Validation::Failed(mismatch) => assert_eq!((mismatch.wrong, mismatch.unwritten), (N, N), "{mismatch}"),
        other => return Err(Failure::Failed(format!("what was right before passed for written: {other:?}"))),
    }
    Ok(())
}

fn without_a_reference_nothing_is_compared(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    assert!(matches!(measured.validation, Validation::Skipped { reason } if reason.contains("reference")));
    Ok(())
}

fn validation_can_be_declined(context: &Context) -> Verdict {
    let wrong = HostArray::from_slice(&[N], &[0.0f32; N])?;
    let measured = measure(context, |evaluation| {
        evaluation.reference.push((0, wrong));
        evaluation.validate = false;
    })?;
    assert!(matches!(measured.validation, Validation::Skipped { .. }));
    Ok(())
}

fn read_write_contents_are_put_back(context: &Context) -> Verdict {
    let lab = context.lab();
    let (kernel, x) = (lab.kernel("scale_f32")?, lab.full(N, 3.0)?);
    let rest = lab.args("scale_f32", &[Arg::scalar(2.0f32)], N)?;
    let args = std::iter::once(EvaluationArg::tensor(&x, Access::ReadWrite, On::Device)).chain(rest.into_iter().map(EvaluationArg::from));
    let mut evaluation = Evaluation::new(&kernel, lab.geometry(N), args.collect());
    evaluation.reference.push((0, HostArray::from_slice(&[N], &[6.0f32; N])?));
    evaluation.timing.repeat = 1;
    evaluation.timing.number = Some(1);
    evaluation.timing.warmup = Warmup::Calls(1);
    let measured = answer(lab, &mut evaluation)?;
    assert!(measured.validation.is_passed(), "{:?}", measured.validation);
    assert_eq!(measured.calls, 3, "one to validate, one to warm up, one sample");
    all("as if validation had not been", &x, 12.0)
}

fn a_cold_measurement_says_so(context: &Context) -> Verdict {
    let cold = measure(context, |evaluation| evaluation.timing.warmup = Warmup::Calls(0))?;
    assert!(cold.cold);
    assert!(!measure(context, |_| {})?.cold);
    Ok(())
}

fn a_fixed_number_is_kept(context: &Context) -> Verdict {
    for number in [1, 2, 33] {
        assert_eq!(measure(context, |evaluation| evaluation.timing.number = Some(number))?.number, number);
    }
    Ok(())
}

fn calls_are_counted(context: &Context) -> Verdict {
    let measured = measure(context, |evaluation| evaluation.timing.warmup = Warmup::Calls(4))?;
    assert_eq!(measured.calls, 4 + 5 * 3, "{measured:?}");
    Ok(())
}

fn the_setup_hook_runs(context: &Context) -> Verdict {
    let runs = AtomicUsize::new(0);
    let question = Question::new(context.lab())?;
    let mut evaluation = question.ask(context.lab())?;
    evaluation.setup = Some(Box::new(|| {
        runs.fetch_add(1, Ordering::Relaxed);
    }));
    answer(context.lab(), &mut evaluation)?;
    drop(evaluation);
    assert!(runs.into_inner() >= 5 + 1, "once before every sample and the warm-up");
    Ok(())
}

fn the_overhead_is_measured_where_it_can_be(context: &Context) -> Verdict {
    let measured = measure(context, |_| {})?;
    let has_empty = context.info().capabilities.has(abi::CAP_EMPTY_KERNEL);
    assert_eq!(measured.overhead_ns.is_some(), has_empty);
    assert!(measured.overhead_ns.is_none_or(|overhead| overhead >= 0.0 && overhead.is_finite()));
    Ok(())
}

fn arguments_on_the_host_are_moved(context: &Context) -> Verdict {
    let lab = context.lab();
    let (kernel, x) = (lab.kernel("scale_f32")?, lab.full(N, 3.0)?);
    let rest = lab.args("scale_f32", &[Arg::scalar(2.0f32)], N)?;
    let args = std::iter::once(EvaluationArg::tensor(&x, Access::ReadWrite, On::Host)).chain(rest.into_iter().map(EvaluationArg::from));
    let mut evaluation = Evaluation::new(&kernel, lab.geometry(N), args.collect());
    evaluation.timing.repeat = 3;
    evaluation.timing.number = Some(2);
    let measured = answer(lab, &mut evaluation)?;
    match &measured.transfer {
        None => assert_eq!(context.info().kind, runtime_core::DeviceKind::Host, "nothing was moved"),
        Some(transfer) => {
            assert_eq!((transfer.bytes_in, transfer.bytes_out), (4 * N as u64, 4 * N as u64));
            assert_eq!(transfer.samples_ns.len(), measured.samples_ns.len());
        }
    }
    Ok(())
}

fn the_submit_clock_works(context: &Context) -> Verdict {
    let measured = measure(context, |evaluation| evaluation.timing.clock = ClockChoice::Use(Clock::HostSubmit))?;
    assert_eq!((measured.clock, measured.samples_ns.len()), (Clock::HostSubmit, 5));
    Ok(())
}

fn a_clock_that_the_device_lacks_is_refused(context: &Context) -> Verdict {
    for clock in [Clock::DeviceKernel, Clock::DeviceBatch] {
        let question = Question::new(context.lab())?;
        let mut evaluation = question.ask(context.lab())?;
        evaluation.timing.clock = ClockChoice::Use(clock);
        let measured = answer(context.lab(), &mut evaluation);
        if context.info().capabilities.has(abi::CAP_TIMESTAMPS) {
            assert_eq!(measured?.clock, clock);
        } else {
            refused("clock", measured, ErrorKind::Unsupported, &[clock.name(), "host_wall"])?;
        }
    }
    Ok(())
}

fn a_spent_budget_still_gives_a_sample(context: &Context) -> Verdict {
    let measured = measure(context, |evaluation| {
        evaluation.timing.budget = Duration::ZERO;
        evaluation.timing.repeat = 1000;
    })?;
    assert!(!measured.samples_ns.is_empty() && !measured.is_complete(), "{measured:?}");
    Ok(())
}

fn caches_are_flushed_without_harm(context: &Context) -> Verdict {
    for flush in [FlushCache::PerSample, FlushCache::PerCall] {
        let reference = HostArray::from_slice(&[N], &[3.0f32; N])?;
        let measured = measure(context, |evaluation| {
            evaluation.timing.flush_cache = flush;
            evaluation.timing.repeat = 2;
            evaluation.timing.number = Some(2);
            evaluation.reference.push((0, reference));
        })?;
        assert!(measured.samples_ns.len() == 2 && measured.validation.is_passed(), "{measured:?}");
    }
    Ok(())
}

fn no_samples_are_refused(context: &Context) -> Verdict {
    let question = Question::new(context.lab())?;
    let mut evaluation = question.ask(context.lab())?;
    evaluation.timing.repeat = 0;
    refused("repeat", answer(context.lab(), &mut evaluation), ErrorKind::InvalidArgument, &["repeat", "evaluate", context.name()])?;
    evaluation.timing.repeat = 1;
    evaluation.timing.number = Some(0);
    refused("number", answer(context.lab(), &mut evaluation), ErrorKind::InvalidArgument, &["number"]).map(drop)
}

fn a_wrong_reference_is_refused(context: &Context) -> Verdict {
    let references = [
        (0, HostArray::from_slice(&[N + 1], &[3.0f32; N + 1])?, "[1001]"),
        (0, HostArray::from_slice(&[N], &[3i32; N])?, "i32"),
        (1, HostArray::from_slice(&[N], &[3.0f32; N])?, "argument 1"),
        (9, HostArray::from_slice(&[N], &[3.0f32; N])?, "arguments"),
    ];
    for (index, array, word) in references {
        let question = Question::new(context.lab())?;
        let mut evaluation = question.ask(context.lab())?;
        evaluation.reference.push((index, array));
        refused("reference", answer(context.lab(), &mut evaluation), ErrorKind::InvalidArgument, &["reference", word])?;
    }
    Ok(())
}

fn a_wrong_argument_is_refused(context: &Context) -> Verdict {
    let question = Question::new(context.lab())?;
    let other = context.reopen(&runtime_core::Options::new())?.full(N, 0.0)?;
    let mut evaluation = question.ask(context.lab())?;
    evaluation.args[0] = EvaluationArg::tensor(&other, Access::Write, On::Device);
    refused("tensor", answer(context.lab(), &mut evaluation), ErrorKind::InvalidArgument, &["argument 0", "evaluate"]).map(drop)
}

fn rates_need_a_cost(context: &Context) -> Verdict {
    let without = measure(context, |evaluation| evaluation.timing.clock = ClockChoice::Use(Clock::HostWall))?;
    assert_eq!((without.gflops_per_s(), without.gbytes_per_s()), (None, None));
    let with = measure(context, |evaluation| {
        evaluation.timing.clock = ClockChoice::Use(Clock::HostWall);
        evaluation.cost.bytes = Some(4000.0);
    })?;
    assert!(with.gflops_per_s().is_none() && with.gbytes_per_s().is_some_and(|rate| rate > 0.0));
    Ok(())
}

fn a_failing_kernel_is_an_error(context: &Context) -> Verdict {
    let kernel = context.lab().kernel("fail")?;
    let mut evaluation = Evaluation::new(&kernel, context.lab().geometry(1), Vec::new());
    refused("fail", answer(context.lab(), &mut evaluation), ErrorKind::Failed, &["evaluate", "the kernel `fail`"])?;
    measure(context, |_| {}).map(drop)
}
