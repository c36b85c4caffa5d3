//! The overhead of the evaluator: wall time per sample, compared with the plain call that a sample makes.
#![allow(missing_docs, reason = "criterion's macros")]

use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use criterion::{Criterion, criterion_group};
use runtime_bench::{Fixture, compare, measure, measure_by_default, runtime, time};
use runtime_core::evaluate::{Clock, ClockChoice, DataLocation, Evaluation, EvaluationArg, Timing, Warmup};
use runtime_core::{Access, Arg, Geometry};

/// Samples of an evaluation.
const REPEAT: u64 = 1000;

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn sample(criterion: &mut Criterion) {
    let fixture = Fixture::open(&runtime(), "host").expect("the host opens");
    let plain = measure(criterion, "evaluate/plain_call", |calls| {
        time(calls, || fixture.call(3.0).expect("the call runs"))
    });
    let ours = measure(criterion, "evaluate/sample", |samples| {
        let evaluations = samples.div_ceil(REPEAT);
        // Only whole evaluations are measured, then scaled to the requested number of samples.
        let elapsed = time(evaluations, || poll_to_the_end(evaluate(&fixture, REPEAT)));
        elapsed.mul_f64(samples as f64 / (evaluations * REPEAT) as f64)
    });
    compare("evaluate: a sample of one call", &ours, &plain, 200.0);
}

/// An executor without overhead, so that only the evaluator is measured.
fn poll_to_the_end(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    while future.as_mut().poll(&mut context).is_pending() {}
}

async fn evaluate(fixture: &Fixture, samples: u64) {
    let mut timing = Timing::default();
    timing.repeat = usize::try_from(samples).expect("a count of samples");
    timing.number = Some(1);
    timing.warmup = Warmup::Calls(1);
    timing.budget = Duration::from_secs(3600);
    timing.clock = ClockChoice::Use(Clock::HostWall);
    let [a, b, c] = fixture.tensors();
    let args = vec![
        EvaluationArg::tensor(a, Access::Read, DataLocation::Device),
        EvaluationArg::tensor(b, Access::Read, DataLocation::Device),
        EvaluationArg::tensor(c, Access::Write, DataLocation::Device),
        Arg::scalar(3.0f32).into(),
    ];
    let mut evaluation = Evaluation::new(&fixture.kernel, Geometry::single(), args);
    evaluation.timing = timing;
    let measurement = fixture.device.evaluate(&mut evaluation).await.expect("the evaluation runs");
    assert_eq!(measurement.samples_ns.len() as u64, samples, "every sample was taken");
}

criterion_group!(benches, sample);
fn main() {
    measure_by_default();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
