//! Times programs of a device that has no counter, by what its backend reports of each run: whole programs, which a tool starts.

use std::time::{Duration, Instant};

use runtime_core::evaluate::{Clock, Cost, Measurement, Statistics, Timing, Validation, Warmup};
use runtime_core::{Error, ErrorKind, Result};

use crate::row::{CounterValue, error_text};

/// Times runs of a flashed program: `repeat` samples of `number` runs, until the budget is spent.
///
/// # Errors
/// Those of `run`, which returns the nanoseconds of a run.
pub(super) fn measure(
    timing: &Timing,
    cost: Cost,
    mut run: impl FnMut() -> Result<u64>,
) -> Result<Measurement> {
    let number = timing.number.unwrap_or(1);
    let begin = Instant::now();
    let warmup = match timing.warmup {
        Warmup::Calls(calls) => calls,
        // The check of the outputs has run it already.
        Warmup::Time(_) => 0,
    };
    for _ in 0..warmup {
        run()?;
    }
    let mut samples_ns: Vec<f64> = Vec::new();
    while samples_ns.len() < timing.repeat && (samples_ns.is_empty() || begin.elapsed() < timing.budget) {
        if !samples_ns.is_empty() && timing.cooldown > Duration::ZERO {
            std::thread::sleep(timing.cooldown);
        }
        let total = (0..number).try_fold(0, |total: u64, _| Ok::<_, Error>(total.saturating_add(run()?)))?;
        samples_ns.push(total as f64 / number as f64);
    }
    let statistics = Statistics::of(&samples_ns)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "no sample was taken of a program"))?;
    Ok(Measurement {
        clock: Clock::HostWall,
        // Each run starts a tool; the check, or the warm-up, was the first.
        cold: false,
        repeat: timing.repeat,
        reached_until: None,
        throttled: None,
        number,
        calls: 1 + warmup + number * samples_ns.len() as u64,
        statistics,
        overhead_ns: None,
        transfer: None,
        cost,
        samples_ns,
        validation: Validation::default(),
    })
}

/// Counters that were asked for, with the reason why such a device has none.
pub(super) fn counters(device: &str, names: &[String]) -> Vec<CounterValue> {
    let error = Error::unsupported(format!("{device} has no counters; its runs are timed"));
    names.iter().map(|name| CounterValue::missing(name, &error_text(&error))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_a_reason() {
        let counters = counters("mine", &["functions".to_owned(), "cycles".to_owned()]);
        let names = counters.iter().map(|counter| counter.name.as_str());
        assert!(names.eq(["functions", "cycles"]) && counters.iter().all(|counter| counter.value.is_none()));
        assert!(counters[0].reason.as_ref().unwrap().contains("mine has no counters"), "{counters:?}");
    }

    #[test]
    fn samples_are_the_mean_of_their_runs() {
        let mut timing = Timing::default();
        (timing.repeat, timing.number, timing.warmup) = (2, Some(3), Warmup::Calls(1));
        let mut runs = 0;
        let cost = Cost { flops: Some(10.0), bytes: None };
        let measured = measure(&timing, cost, || {
            runs += 1;
            Ok(runs)
        })
        .unwrap();
        // The first run is the warm-up.
        assert_eq!(measured.samples_ns, [3.0, 6.0]);
        assert_eq!((measured.calls, measured.number, runs), (8, 3, 7));
        assert_eq!((measured.clock, measured.gflops_per_s()), (Clock::HostWall, Some(10.0 / 4.5)));
        timing.budget = Duration::ZERO;
        assert_eq!(
            measure(&timing, cost, || Ok(1)).unwrap().samples_ns.len(),
            1,
            "one sample is always taken"
        );
        assert!(measure(&timing, cost, || Err(Error::invalid("no"))).is_err());
    }
}
