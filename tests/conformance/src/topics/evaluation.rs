//! Timed evaluation: invariants of every measurement, whatever the time was.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runtime_core::evaluate::{
    Clock, ClockChoice, DataLocation, EachCall, Evaluation, EvaluationArg, FlushCache, Measurement, Warmup,
};
use runtime_core::{Access, Arg, ErrorKind, HostArray, Kernel, Tensor};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_error;
use crate::fixture::Fixture;
use crate::wait::block_on;

pub(super) const N: usize = 1000;

cases! {
    [Requirement::Kernel("fill_f32")] => all_repeats_are_returned, statistics_are_in_order,
        a_kernel_of_no_time_ends, a_cold_measurement_says_so, a_fixed_number_is_kept, calls_are_counted,
        the_setup_hook_runs, arguments_on_the_host_are_moved,
        initial_contents_are_restored_before_each_call, a_spent_budget_still_gives_a_sample,
        caches_are_flushed_without_harm, no_samples_are_refused, a_wrong_argument_is_refused,
        rates_need_a_cost;
    [Requirement::Kernel("fail")] => a_failing_kernel_is_an_error;
}

/// Evaluates `fill_f32` on a tensor.
pub(super) struct FillEvaluation {
    kernel: Kernel,
    out: Tensor,
}

impl FillEvaluation {
    pub(super) fn new(fixture: &Fixture) -> Result<Self, Failure> {
        Ok(Self { kernel: fixture.kernel("fill_f32")?, out: fixture.full(N, 0.0)? })
    }

    pub(super) fn evaluation(&self, fixture: &Fixture) -> Result<Evaluation<'_>, Failure> {
        let out = EvaluationArg::tensor(&self.out, Access::Write, DataLocation::Device);
        let rest = fixture.args("fill_f32", &[Arg::scalar(3.0f32)], N)?;
        let args = std::iter::once(out).chain(rest.into_iter().map(EvaluationArg::from)).collect();
        let mut evaluation = Evaluation::new(&self.kernel, fixture.geometry(N), args);
        evaluation.timing.repeat = 5;
        evaluation.timing.number = Some(3);
        evaluation.timing.warmup = Warmup::Calls(1);
        Ok(evaluation)
    }
}

pub(super) fn evaluate(
    fixture: &Fixture,
    evaluation: &mut Evaluation<'_>,
) -> runtime_core::Result<Measurement> {
    block_on(fixture.device().evaluate(evaluation))
}

/// Evaluates `fill_f32` with changed settings.
pub(super) fn measure(
    context: &Context,
    change: impl FnOnce(&mut Evaluation<'_>),
) -> Result<Measurement, Failure> {
    let subject = FillEvaluation::new(context.fixture())?;
    let mut evaluation = subject.evaluation(context.fixture())?;
    change(&mut evaluation);
    Ok(evaluate(context.fixture(), &mut evaluation)?)
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

fn a_kernel_of_no_time_ends(context: &Context) -> Verdict {
    let kernel = context.fixture().kernel("noop")?;
    let mut evaluation = Evaluation::new(&kernel, context.fixture().geometry(1), Vec::new());
    evaluation.timing.repeat = 2;
    evaluation.timing.min_repeat = Duration::from_millis(100);
    evaluation.timing.warmup = Warmup::Calls(1);
    evaluation.timing.budget = Duration::from_secs(5);
    let measured = evaluate(context.fixture(), &mut evaluation)?;
    assert!(!measured.samples_ns.is_empty() && measured.number >= 1, "{measured:?}");
    Ok(())
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
    let subject = FillEvaluation::new(context.fixture())?;
    let mut evaluation = subject.evaluation(context.fixture())?;
    evaluation.setup = Some(Box::new(|| {
        runs.fetch_add(1, Ordering::Relaxed);
    }));
    evaluate(context.fixture(), &mut evaluation)?;
    drop(evaluation);
    assert!(runs.into_inner() > 5, "once before every sample and the warm-up");
    Ok(())
}

fn arguments_on_the_host_are_moved(context: &Context) -> Verdict {
    let fixture = context.fixture();
    let (kernel, x) = (fixture.kernel("scale_f32")?, fixture.full(N, 3.0)?);
    let rest = fixture.args("scale_f32", &[Arg::scalar(2.0f32)], N)?;
    let args = std::iter::once(EvaluationArg::tensor(&x, Access::ReadWrite, DataLocation::Host))
        .chain(rest.into_iter().map(EvaluationArg::from));
    let mut evaluation = Evaluation::new(&kernel, fixture.geometry(N), args.collect());
    evaluation.timing.repeat = 3;
    evaluation.timing.number = Some(2);
    let measured = evaluate(fixture, &mut evaluation)?;
    match &measured.transfer {
        None => assert_eq!(context.info().kind, runtime_core::DeviceKind::Host, "nothing was moved"),
        Some(transfer) => {
            assert_eq!((transfer.bytes_in, transfer.bytes_out), (4 * N as u64, 4 * N as u64));
            assert_eq!(transfer.samples_ns.len(), measured.samples_ns.len());
        }
    }
    Ok(())
}

fn initial_contents_are_restored_before_each_call(context: &Context) -> Verdict {
    let fixture = context.fixture();
    for on in [DataLocation::Device, DataLocation::Host] {
        let (kernel, x) = (fixture.kernel("scale_f32")?, fixture.full(N, 3.0)?);
        let rest = fixture.args("scale_f32", &[Arg::scalar(2.0f32)], N)?;
        let updated = EvaluationArg::tensor(&x, Access::ReadWrite, on).each_call(EachCall::Initial);
        let args = std::iter::once(updated).chain(rest.into_iter().map(EvaluationArg::from));
        let mut evaluation = Evaluation::new(&kernel, fixture.geometry(N), args.collect());
        evaluation.timing.repeat = 3;
        evaluation.timing.number = Some(2);
        evaluate(fixture, &mut evaluation)?;
        drop(evaluation);
        assert_eq!(x.to_vec::<f32>()?, vec![6.0; N], "{on:?}: the last call read what was there at first");
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
    let subject = FillEvaluation::new(context.fixture())?;
    let mut evaluation = subject.evaluation(context.fixture())?;
    evaluation.timing.repeat = 0;
    expect_error(
        "repeat",
        evaluate(context.fixture(), &mut evaluation),
        ErrorKind::InvalidArgument,
        &["repeat", "evaluate", context.name()],
    )?;
    evaluation.timing.repeat = 1;
    evaluation.timing.number = Some(0);
    expect_error(
        "number",
        evaluate(context.fixture(), &mut evaluation),
        ErrorKind::InvalidArgument,
        &["number"],
    )
    .map(drop)
}

fn a_wrong_argument_is_refused(context: &Context) -> Verdict {
    let subject = FillEvaluation::new(context.fixture())?;
    let other = context.reopen(&runtime_core::Options::new())?.full(N, 0.0)?;
    let mut evaluation = subject.evaluation(context.fixture())?;
    evaluation.args[0] = EvaluationArg::tensor(&other, Access::Write, DataLocation::Device);
    expect_error(
        "tensor",
        evaluate(context.fixture(), &mut evaluation),
        ErrorKind::InvalidArgument,
        &["argument 0", "evaluate"],
    )
    .map(drop)
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
    let (fixture, kernel) = (context.fixture(), context.fixture().kernel("fail")?);
    let (x, y) = (fixture.full(1, 0.0)?, fixture.full(1, 0.0)?);
    let args = vec![
        EvaluationArg::tensor(&x, Access::Read, DataLocation::Device),
        EvaluationArg::tensor(&y, Access::Write, DataLocation::Device),
    ];
    let mut evaluation = Evaluation::new(&kernel, fixture.geometry(1), args);
    expect_error(
        "fail",
        evaluate(context.fixture(), &mut evaluation),
        ErrorKind::Failed,
        &["evaluate", context.fixture().kernels()?.cause],
    )?;
    measure(context, |_| {}).map(drop)
}
