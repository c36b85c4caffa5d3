//! Reports two measurements of one run side by side.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use criterion::Criterion;

use crate::mode::is_measuring;

/// Measures one operation with criterion and keeps the samples; `batch` runs it the given number of times and returns the
/// elapsed time.
pub fn measure(criterion: &mut Criterion, name: &str, mut batch: impl FnMut(u64) -> Duration) -> Samples {
    let samples = RefCell::new(Samples::default());
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|calls| {
            let elapsed = batch(calls);
            samples.borrow_mut().add(elapsed.as_nanos(), calls);
            elapsed
        });
    });
    samples.into_inner()
}

/// The median; not a number without samples.
#[must_use]
pub fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The time that `calls` calls of `operation` take.
pub fn time(calls: u64, mut operation: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        operation();
    }
    start.elapsed()
}

/// Samples of a benchmark: nanoseconds of one call, and how many calls were made.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<(f64, u64)>);

impl Samples {
    /// Adds a sample: `calls` calls in `elapsed_ns`.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn add(&mut self, elapsed_ns: u128, calls: u64) {
        self.0.push((elapsed_ns as f64 / calls.max(1) as f64, calls));
    }

    /// The median of the calls in nanoseconds, not a number without samples. A sample counts by its calls, so that
    /// criterion's warm-up, which begins with single calls, hardly does.
    #[must_use]
    pub fn median_ns(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut left = self.0.iter().map(|(_, calls)| calls).sum::<u64>().div_ceil(2);
        for (nanoseconds, calls) in sorted {
            if calls >= left {
                return nanoseconds;
            }
            left -= calls;
        }
        f64::NAN
    }

    /// The minimum in nanoseconds, which is disturbed least.
    #[must_use]
    pub fn least_ns(&self) -> f64 {
        self.0.iter().map(|(nanoseconds, _)| *nanoseconds).fold(f64::NAN, f64::min)
    }
}

/// Prints `line`, if this run measures.
#[allow(clippy::print_stdout, reason = "a report on the terminal")]
pub fn compare(name: &str, ours: &Samples, plain: &Samples, aim_ns: f64) {
    if is_measuring() {
        println!("{}", line(name, ours, plain, aim_ns));
    }
}

/// Formats one line: our call and the plain one, the differences of the medians and of the minima, and the target maximum.
/// Without samples of a plain call, only our call.
fn line(name: &str, ours: &Samples, plain: &Samples, aim_ns: f64) -> String {
    let verdict = |median_ns: f64| if median_ns <= aim_ns { "kept" } else { "MISSED" };
    let (median, least) = (ours.median_ns(), ours.least_ns());
    if plain.median_ns().is_nan() {
        return format!(
            "{name}: {median:.0} ns, least {least:.0} ns (aim {aim_ns:.0} ns: {})",
            verdict(median)
        );
    }
    let (more, ratio) = (median - plain.median_ns(), median / plain.median_ns());
    let least_more = least - plain.least_ns();
    format!(
        "{name}: {median:.0} ns, plain {:.0} ns: {more:+.0} ns, least {least_more:+.0} ns, ×{ratio:.2} (aim +{aim_ns:.0} ns: {})",
        plain.median_ns(),
        verdict(more)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_that_of_the_medians() {
        let (mut ours, mut plain) = (Samples::default(), Samples::default());
        for elapsed in [100, 9000, 120, 110, 130] {
            ours.add(elapsed * 10, 10);
            plain.add(20, 1);
        }
        ours.add(50_000, 1);
        let text = line("call", &ours, &plain, 100.0);
        assert!(
            text.contains("+100 ns")
                && text.contains("least +80 ns")
                && text.contains("×6.00")
                && text.contains("kept"),
            "{text}"
        );
        assert!(line("call", &ours, &plain, 99.0).contains("MISSED"));
        assert!(line("call", &ours, &Samples::default(), 120.0).contains("kept"), "without a plain call");
    }
}
