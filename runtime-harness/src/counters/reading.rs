//! Counters of a kernel: a value for each repeat, as there is a time for each repeat.

use std::time::{Duration, Instant};

use runtime_core::Result;
use runtime_core::device::{CounterInfo, CounterReading, CounterSet};
use runtime_core::evaluate::Measurement;

use super::Calls;
use crate::row::CounterValue;
use crate::settings::Settings;

/// Calls per pass: enough to make the rest of the pass negligible, few enough for passes of slow simulators.
const MAX_CALLS: u64 = 100;
/// The property of a device with the clock that its counters in cycles count.
const CLOCK: &str = "counter_clock_hz";
/// The unit of counters of clock cycles.
const CYCLES: &str = "cycles";

/// How often the calls of a pass are counted.
pub(super) struct Repeats {
    /// Calls per pass.
    calls: u64,
    /// Repeats wanted: one per sample of the timing.
    count: usize,
    /// No repeat begins after this time, except the first.
    budget: Duration,
}

impl Repeats {
    pub(super) fn of(timed: &Measurement, settings: &Settings) -> Self {
        Self {
            calls: timed.number.clamp(1, MAX_CALLS),
            count: timed.samples_ns.len(),
            budget: settings.timing().budget,
        }
    }
}

/// The readings of a counter, one for each repeat in which it has counted.
type Readings = Vec<CounterReading>;

pub(super) fn read(calls: &Calls<'_>, names: &[String], repeats: &Repeats) -> Vec<CounterValue> {
    if names.is_empty() {
        return Vec::new();
    }
    let infos = calls.device.counters().unwrap_or_default();
    let clock_hz = calls.device.info().properties.integer(CLOCK);
    let read = calls.device.counter_set(names).and_then(|mut set| {
        let readings = count(calls, &mut set, names.len(), repeats)?;
        let value = |(index, (name, readings)): (usize, (&String, Readings))| {
            let unit = unit(name, &infos);
            let described = CounterValue {
                unit,
                calls: repeats.calls,
                passes: set.passes(),
                ..CounterValue::missing(name, "")
            };
            let reason = set.unavailable_reason(index).unwrap_or("it counted nothing during the calls");
            with_samples(described, &readings, reason, clock_hz)
        };
        Ok(names.iter().zip(readings).enumerate().map(value).collect())
    });
    read.unwrap_or_else(|error| {
        let reason = error.to_string();
        names.iter().map(|name| CounterValue::missing(name, &reason)).collect()
    })
}

/// The readings of each counter. Only repeats are counted, no call before them.
fn count(
    calls: &Calls<'_>,
    set: &mut CounterSet,
    counters: usize,
    repeats: &Repeats,
) -> Result<Vec<Readings>> {
    let queue = calls.open_queue()?;
    // The first launch of a queue may allocate or start threads.
    calls.run(&queue, 1)?;
    let begin = Instant::now();
    let mut all = vec![Readings::new(); counters];
    for repeat in 0..repeats.count.max(1) {
        if repeat > 0 && begin.elapsed() >= repeats.budget {
            break;
        }
        let readings = set.measure(|| calls.run(&queue, repeats.calls))?;
        all.iter_mut().zip(readings).for_each(|(all, reading)| all.extend(reading));
    }
    Ok(all)
}

/// The counter with a sample for each reading, or with the reason why there is none.
#[expect(clippy::cast_precision_loss, reason = "calls are few, and clocks far below 2⁵³ Hz")]
fn with_samples(
    counter: CounterValue,
    readings: &[CounterReading],
    reason: &str,
    clock_hz: Option<i64>,
) -> CounterValue {
    let Some(first) = readings.first() else {
        return CounterValue { reason: Some(reason.to_owned()), ..counter };
    };
    let divisor = if first.is_ratio { 1.0 } else { counter.calls as f64 };
    let samples: Vec<f64> = readings.iter().map(|reading| reading.value / divisor).collect();
    let counted = readings.iter().map(|reading| reading.counted).fold(1.0, f64::min);
    let clock_hz = clock_hz.filter(|hz| *hz > 0 && counter.unit.as_deref() == Some(CYCLES));
    let counter = counter.with_samples(samples);
    let nanoseconds = |(value, hz): (f64, i64)| value * 1e9 / hz as f64;
    CounterValue {
        time_ns: counter.value.zip(clock_hz).map(nanoseconds),
        is_ratio: first.is_ratio,
        counted_share: (counted < 1.0).then_some(counted),
        ..counter
    }
}

/// The unit of a counter. One that is not listed may have indices where a listed one names a reduction.
fn unit(name: &str, infos: &[CounterInfo]) -> Option<String> {
    let is_indexed = |info: &&CounterInfo| {
        let (given, listed) = (name.split('.'), info.name.split('.'));
        given.clone().count() == listed.clone().count()
            && given.zip(listed).all(|(given, listed)| given == listed || given.parse::<u32>().is_ok())
    };
    let exact = infos.iter().find(|info| info.name == name);
    exact.or_else(|| infos.iter().find(is_indexed))?.unit.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(unit: &str, values: &[f64], is_ratio: bool, clock_hz: Option<i64>) -> CounterValue {
        let described = CounterValue {
            unit: Some(unit.to_owned()),
            calls: 10,
            passes: 1,
            ..CounterValue::missing("c", "")
        };
        let reading = |(value, counted): (&f64, f64)| CounterReading { value: *value, counted, is_ratio };
        let readings: Vec<_> = values.iter().zip([1.0, 0.25, 0.5]).map(reading).collect();
        with_samples(described, &readings, "why", clock_hz)
    }

    #[test]
    fn a_counter_has_a_sample_per_repeat_with_their_median_and_spread() {
        let counted = counter("cycles", &[50.0, 10.0, 20.0], false, Some(2_000_000_000));
        assert_eq!(counted.samples, [5.0, 1.0, 2.0], "in order, per call");
        assert_eq!((counted.value, counted.min, counted.max), (Some(2.0), Some(1.0), Some(5.0)));
        assert_eq!((counted.time_ns, counted.counted_share), (Some(1.0), Some(0.25)));
        assert_eq!((counted.reason, counted.calls), (None, 10));
    }

    #[test]
    fn a_counter_with_indices_has_the_unit_of_its_reductions() {
        let info = |name: &str, unit: &str| CounterInfo {
            name: name.to_owned(),
            description: String::new(),
            unit: Some(unit.to_owned()),
            unavailable_reason: None,
        };
        let infos = [info("m.A.cluster.avg.pe.max", "cycles"), info("dram.sum", "bytes")];
        let unit = |name| unit(name, &infos);
        assert_eq!(unit("m.A.cluster.4.pe.15").as_deref(), Some("cycles"));
        assert_eq!(unit("m.A.cluster.avg.pe.3").as_deref(), Some("cycles"));
        assert_eq!(unit("dram.sum").as_deref(), Some("bytes"));
        for other in ["m.B.cluster.4.pe.15", "m.A.cluster.4.pe", "dram.avg", "dram.sum.per_second"] {
            assert_eq!(unit(other), None, "{other}");
        }
    }

    #[test]
    fn ratios_are_not_divided_and_only_cycles_of_a_known_clock_are_times() {
        assert_eq!(counter("%", &[50.0], true, Some(1)).samples, [50.0]);
        assert_eq!(counter("bytes", &[50.0], false, Some(1)).time_ns, None);
        assert_eq!(counter("cycles", &[50.0], false, None).time_ns, None);
        assert_eq!(counter("cycles", &[50.0], false, Some(0)).time_ns, None);
        let none = counter("cycles", &[], false, Some(1));
        assert_eq!((none.value, none.time_ns, none.reason.as_deref()), (None, None, Some("why")));
    }
}
