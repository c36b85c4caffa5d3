//! Formats numbers with four significant digits and a unit.

use runtime_core::evaluate::Measurement;

/// A number with four significant digits.
#[must_use]
pub fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let exponent = value.abs().log10().floor();
    let decimals = (3.0 - exponent).clamp(0.0, 9.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 9")]
    let decimals = decimals as usize;
    format!("{value:.decimals$}")
}

/// A count: all its digits, and two decimals if it is an average.
#[must_use]
pub fn count(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A duration in ns, µs, ms or s, by its magnitude.
#[must_use]
pub fn duration(ns: f64) -> String {
    let (scale, unit) = match ns.abs() {
        magnitude if magnitude < 1e3 => (1.0, "ns"),
        magnitude if magnitude < 1e6 => (1e3, "µs"),
        magnitude if magnitude < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", significant(ns / scale))
}

/// The median time, with its uncertainty if it is known.
#[must_use]
pub fn median(measurement: &Measurement) -> String {
    let statistics = &measurement.statistics;
    let interval = statistics.median_ci95_ns.map(|interval| uncertainty(statistics.median_ns, interval));
    [duration(statistics.median_ns)].into_iter().chain(interval).collect::<Vec<_>>().join(" ")
}

/// The uncertainty of `value`: its largest distance to the bounds of `interval`, in percent of the value.
#[must_use]
pub fn uncertainty(value: f64, interval: [f64; 2]) -> String {
    let distance = (value - interval[0]).abs().max((interval[1] - value).abs());
    match value > 0.0 {
        true => format!("± {:.1}%", 100.0 * distance / value),
        false => format!("± {}", duration(distance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (12.345, "12.35 ns"),
            (0.001_234, "0.001234 ns"),
            (1_234.5, "1.234 µs"),
            (999_900.0, "999.9 µs"),
            (45_678_900.0, "45.68 ms"),
            (2e9, "2.000 s"),
            (123_456e9, "123456 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn counts_have_all_their_digits() {
        assert_eq!([1_234_567.0, 0.0, 10.5].map(count), ["1234567", "0", "10.50"]);
    }

    #[test]
    fn uncertainty_is_the_larger_distance() {
        assert_eq!(uncertainty(100.0, [99.0, 103.0]), "± 3.0%");
        assert_eq!(uncertainty(0.0, [0.0, 5.0]), "± 5.000 ns");
    }
}
