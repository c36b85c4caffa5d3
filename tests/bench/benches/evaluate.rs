//! What the evaluator adds to a sample: its wall time per sample, beside the plain call that a sample makes.
#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::print_stdout, reason = "a report on the terminal")]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use runtime_bench::{Fixture, compare, figure, runtime, time};
use runtime_core::{
    Access, Arg, Clock, ClockChoice, Evaluation, EvaluationArg, Geometry, On, Timing, Warmup,
};

fn sample(criterion: &mut Criterion) {
    let fixture = Fixture::open(&runtime(), "host").expect("the host opens");
    let plain = figure(criterion, "evaluate/plain_call", |calls| {
        time(calls, || fixture.call(3.0).expect("the call runs"))
    });
    let executor = tokio::runtime::Builder::new_current_thread().build().expect("an executor");
    let ours = figure(criterion, "evaluate/sample", |samples| {
        time(1, || executor.block_on(evaluate(&fixture, samples)))
    });
    println!("{}", compare("evaluate: a sample of one call", &ours, &plain, 200.0));
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
        EvaluationArg::tensor(a, Access::Read, On::Device),
        EvaluationArg::tensor(b, Access::Read, On::Device),
        EvaluationArg::tensor(c, Access::Write, On::Device),
        EvaluationArg { arg: Arg::scalar(3.0f32), on: On::Device },
    ];
    let mut evaluation = Evaluation::new(&fixture.kernel, Geometry::single(), args);
    evaluation.timing = timing;
    let measurement = fixture.device.evaluate(&mut evaluation).await.expect("the evaluation runs");
    assert_eq!(measurement.samples_ns.len() as u64, samples, "every sample was taken");
}

criterion_group!(benches, sample);
criterion_main!(benches);
