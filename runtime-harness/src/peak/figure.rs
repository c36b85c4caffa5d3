//! A measured figure with its interval and its clock.

use runtime_core::evaluate::Statistics;
use serde::{Deserialize, Serialize};

/// A measured rate or time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The figure of the median sample.
    pub median: f64,
    /// 95% confidence interval of the median; `None` for too few samples.
    pub ci95: Option<[f64; 2]>,
    /// The figure of the best sample. Noise only ever takes from a peak, so limits are computed from it.
    pub best: f64,
    /// Name of the clock.
    pub clock: String,
}

impl Figure {
    /// The rate of doing `amount` in each sample: 10⁹ per second, as samples are nanoseconds.
    #[must_use]
    pub fn rate(amount: f64, statistics: &Statistics, clock: &str) -> Self {
        let rate = |ns: f64| amount / ns.max(f64::MIN_POSITIVE);
        Self {
            median: rate(statistics.median_ns),
            ci95: statistics.median_ci95_ns.map(|[low, high]| [rate(high), rate(low)]),
            best: rate(statistics.min_ns),
            clock: clock.to_owned(),
        }
    }

    /// The time of each sample in nanoseconds.
    #[must_use]
    pub fn time(statistics: &Statistics, clock: &str) -> Self {
        Self {
            median: statistics.median_ns,
            ci95: statistics.median_ci95_ns,
            best: statistics.min_ns,
            clock: clock.to_owned(),
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        let bounds = self.ci95.iter().flatten();
        bounds.chain([&self.median, &self.best]).all(|value| value.is_finite() && *value > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_rate_is_in_order() {
        let samples: Vec<f64> = (10..20).map(f64::from).collect();
        let figure = Figure::rate(1000.0, &Statistics::of(&samples).unwrap(), "host_wall");
        let [low, high] = figure.ci95.unwrap();
        assert!(low <= figure.median && figure.median <= high && high <= figure.best, "{figure:?}");
        assert_eq!(figure.best, 100.0);
        assert!(figure.is_sound() && !Figure { best: f64::NAN, ..figure }.is_sound());
    }
}
