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
    /// What may have made it smaller than it is, such as other processes; `None`: nothing did. Files of earlier versions do not tell.
    #[serde(default = "Figure::not_recorded")]
    pub disturbance: Option<String>,
}

impl Figure {
    #[allow(clippy::unnecessary_wraps, reason = "the default of a field")]
    fn not_recorded() -> Option<String> {
        Some("an earlier version, which does not tell how busy the machine was, measured it".to_owned())
    }

    /// The better of two measurements. What one of them reached without a disturbance, nothing has made smaller.
    pub(super) fn better(self, other: Self) -> Self {
        let disturbance = self.disturbance.clone().and(other.disturbance.clone());
        Self { disturbance, ..if other.best > self.best { other } else { self } }
    }

    /// The rate of doing `amount` in each sample: 10⁹ per second, as samples are nanoseconds.
    #[must_use]
    pub fn rate(amount: f64, statistics: &Statistics, clock: &str) -> Self {
        let rate = |ns: f64| amount / ns.max(f64::MIN_POSITIVE);
        Self {
            median: rate(statistics.median_ns),
            ci95: statistics.median_ci95_ns.map(|[low, high]| [rate(high), rate(low)]),
            best: rate(statistics.min_ns),
            clock: clock.to_owned(),
            disturbance: None,
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
            disturbance: None,
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

    #[test]
    fn the_better_figure_is_disturbed_if_both_were() {
        let figure = |best: f64, disturbance: Option<&str>| {
            let disturbance = disturbance.map(str::to_owned);
            Figure { median: best, ci95: None, best, clock: "host_wall".to_owned(), disturbance }
        };
        let better = figure(1.0, None).better(figure(3.0, Some("load")));
        assert_eq!((better.best, better.disturbance), (3.0, None));
        let better = figure(3.0, Some("load")).better(figure(1.0, None));
        assert_eq!((better.best, better.disturbance), (3.0, None));
        let better = figure(3.0, Some("load")).better(figure(1.0, Some("more load")));
        assert_eq!((better.best, better.disturbance.as_deref()), (3.0, Some("more load")));
        let old = r#"{"median":1.0,"ci95":null,"best":1.0,"clock":"host_wall"}"#;
        assert!(
            serde_json::from_str::<Figure>(old).unwrap().disturbance.unwrap().contains("earlier version")
        );
    }
}
