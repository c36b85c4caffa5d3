//! Statistics of samples, as pure functions.
//!
//! Times are not normally distributed: noise only ever adds time. The median and the minimum are therefore
//! more informative than the mean, and the confidence interval of the median assumes no distribution.

use serde::{Deserialize, Serialize};

/// Statistics of samples, in nanoseconds. Every number is finite.
///
/// ```
/// use runtime_core::evaluate::Statistics;
///
/// let samples_ns = [101.0, 100.0, 102.0, 100.0, 103.0, 101.0, 900.0]; // one was disturbed
/// let statistics = Statistics::of(&samples_ns).expect("finite samples");
/// assert_eq!((statistics.min_ns, statistics.median_ns), (100.0, 101.0));
/// assert!(statistics.mean_ns > 200.0); // one sample is enough to shift it
/// assert_eq!((statistics.outliers, statistics.median_ci95_ns), (1, Some([100.0, 900.0])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The shortest sample: the least disturbed one.
    pub min_ns: f64,
    /// The median: the figure to quote.
    pub median_ns: f64,
    /// The arithmetic mean; a single disturbed sample shifts it.
    pub mean_ns: f64,
    /// The longest sample.
    pub max_ns: f64,
    /// Sample standard deviation (divisor n - 1); `None` for a single sample.
    pub stddev_ns: Option<f64>,
    /// 5th percentile, linearly interpolated.
    pub p5_ns: f64,
    /// 95th percentile, linearly interpolated.
    pub p95_ns: f64,
    /// Lower and upper end of a confidence interval of the median, of at least 95%; see [`median_interval`].
    /// `None` for fewer than 6 samples, which do not allow that confidence.
    pub median_ci95_ns: Option<[f64; 2]>,
    /// Number of samples outside Tukey's fences, i.e. more than 1.5 interquartile ranges beyond the
    /// quartiles. They are counted, never removed.
    pub outliers: usize,
}

impl Statistics {
    /// Computes the statistics of `samples_ns`, in any order; `None` if there are none or one is not finite.
    #[must_use]
    pub fn of(samples_ns: &[f64]) -> Option<Self> {
        if samples_ns.is_empty() || !samples_ns.iter().all(|sample| sample.is_finite()) {
            return None;
        }
        let mut sorted = samples_ns.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mean_ns = mean(&sorted);
        Some(Self {
            min_ns: sorted[0],
            median_ns: percentile(&sorted, 50.0),
            mean_ns,
            max_ns: sorted[sorted.len() - 1],
            stddev_ns: stddev(&sorted, mean_ns),
            p5_ns: percentile(&sorted, 5.0),
            p95_ns: percentile(&sorted, 95.0),
            median_ci95_ns: median_interval(&sorted),
            outliers: outliers(&sorted),
        })
    }

    /// The distance from the median to the farther end of its confidence interval, divided by the median; `None` without
    /// an interval or a measurable time.
    #[must_use]
    pub fn median_uncertainty(&self) -> Option<f64> {
        let interval = self.median_ci95_ns.filter(|_| self.median_ns > 0.0)?;
        Some(relative_uncertainty(self.median_ns, interval))
    }
}

/// The distance from `median` to the farther end of `interval`, as a share of the median; 0 for an interval without a
/// width.
pub(crate) fn relative_uncertainty(median: f64, [low, high]: [f64; 2]) -> f64 {
    let distance = (high - median).max(median - low);
    if distance == 0.0 { 0.0 } else { distance / median }
}

/// A running mean, which cannot overflow where the sum would.
fn mean(samples: &[f64]) -> f64 {
    let mut mean = 0.0;
    for (count, sample) in (1u32..).zip(samples) {
        let weight = f64::from(count);
        mean += sample / weight - mean / weight;
    }
    mean
}

fn stddev(samples: &[f64], mean: f64) -> Option<f64> {
    let degrees = samples.len().checked_sub(1).filter(|&degrees| degrees > 0)?;
    // Scaled by the largest deviation, so that no square overflows.
    let scale = samples.iter().map(|sample| (sample - mean).abs()).fold(0.0, f64::max);
    if scale == 0.0 {
        return Some(0.0);
    }
    let squares: f64 = samples.iter().map(|sample| ((sample - mean) / scale).powi(2)).sum();
    Some((squares / degrees as f64).sqrt() * scale)
}

/// The `percent`-th percentile of ascending samples by linear interpolation between the closest ranks
/// (definition 7 of Hyndman and Fan 1996, which is NumPy's and R's default).
///
/// # Panics
/// If `sorted` is empty.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank lies within the slice")]
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (sorted.len() - 1) as f64 * (percent / 100.0).clamp(0.0, 1.0);
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

/// A confidence interval of the median of at least 95% from ascending samples, by order statistics.
///
/// For any distribution, a sample lies below the true median with probability one half. The number of samples
/// below it is therefore binomial, and the interval from the k-th smallest to the k-th largest sample misses
/// the median with probability `2 P(Binomial(n, 1/2) < k)` (Conover, *Practical Nonparametric Statistics*).
/// Uses the largest `k` for which this is at most 5%; `None` if there is none, i.e. for fewer than 6 samples.
#[must_use]
pub fn median_interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let rank = interval_rank(sorted.len());
    (rank > 0).then(|| [sorted[rank - 1], sorted[sorted.len() - rank]])
}

/// The largest `k` with `P(Binomial(n, 1/2) < k) <= 0.025`.
///
/// Sums from the middle, where no term underflows, whatever the number of samples.
fn interval_rank(count: usize) -> usize {
    let half = count / 2;
    // C(2m, m) / 4^m = (1 - 1/2) (1 - 1/4) … (1 - 1/2m).
    let middle = |pairs: usize| (1..=pairs).fold(1.0, |term, pair| term - term / (2.0 * pair as f64));
    // `below` is P(< rank), and `term` is P(= rank - 1).
    let (mut rank, mut below, mut term) = match count % 2 {
        0 => (half, 0.5 - 0.5 * middle(half), middle(half) * half as f64 / (half + 1) as f64),
        _ => (half + 1, 0.5, middle(half + 1)),
    };
    while rank > 0 && below > 0.025 {
        rank -= 1;
        below -= term;
        term *= rank as f64 / (count - rank + 1) as f64;
    }
    rank
}

fn outliers(sorted: &[f64]) -> usize {
    let (first, third) = (percentile(sorted, 25.0), percentile(sorted, 75.0));
    let fence = 1.5 * (third - first);
    sorted.iter().filter(|&&sample| sample < first - fence || sample > third + fence).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{value} is not {expected}");
    }

    #[test]
    fn known_data_has_known_statistics() {
        // NumPy: mean 5, std(ddof=1) 2.138089935299395, percentile 5 / 50 / 95: 2.7, 4.5, 8.3.
        let statistics = Statistics::of(&[9.0, 4.0, 2.0, 4.0, 5.0, 4.0, 7.0, 5.0]).unwrap();
        close(statistics.min_ns, 2.0);
        close(statistics.max_ns, 9.0);
        close(statistics.mean_ns, 5.0);
        close(statistics.median_ns, 4.5);
        close(statistics.stddev_ns.unwrap(), (32.0f64 / 7.0).sqrt());
        close(statistics.p5_ns, 2.7);
        close(statistics.p95_ns, 8.3);
        // Eight samples: P(X < 1) = 1/256 and P(X < 2) = 9/256 > 0.025, so k = 1: the range.
        assert_eq!(statistics.median_ci95_ns, Some([2.0, 9.0]));
        // Quartiles 4 and 5.5: fences 1.75 and 7.75.
        assert_eq!(statistics.outliers, 1);
    }

    #[test]
    fn one_sample_has_no_spread() {
        let statistics = Statistics::of(&[3.0]).unwrap();
        assert_eq!(
            (statistics.min_ns, statistics.median_ns, statistics.mean_ns, statistics.max_ns),
            (3.0, 3.0, 3.0, 3.0)
        );
        assert_eq!((statistics.p5_ns, statistics.p95_ns), (3.0, 3.0));
        assert_eq!((statistics.stddev_ns, statistics.median_ci95_ns, statistics.outliers), (None, None, 0));
    }

    #[test]
    fn equal_samples_have_zero_spread() {
        let statistics = Statistics::of(&[0.1; 10]).unwrap();
        assert_eq!((statistics.stddev_ns, statistics.outliers), (Some(0.0), 0));
        assert_eq!(statistics.median_ci95_ns, Some([0.1, 0.1]));
    }

    #[test]
    fn the_farther_end_of_the_interval_is_the_uncertainty() {
        let uncertainty = |samples: [f64; 6]| Statistics::of(&samples).unwrap().median_uncertainty();
        assert_eq!(uncertainty([1.0, 5.0, 5.0, 5.0, 5.0, 6.0]), Some(0.8));
        assert_eq!(uncertainty([4.0, 5.0, 5.0, 5.0, 5.0, 9.0]), Some(0.8));
        assert_eq!(uncertainty([0.0; 6]), None, "no measurable time");
        assert_eq!(Statistics::of(&[1.0; 5]).unwrap().median_uncertainty(), None, "no interval");
    }

    #[test]
    fn percentiles_interpolate() {
        let sorted = [10.0, 20.0, 40.0];
        for (percent, expected) in
            [(0.0, 10.0), (25.0, 15.0), (50.0, 20.0), (75.0, 30.0), (100.0, 40.0), (250.0, 40.0)]
        {
            close(percentile(&sorted, percent), expected);
        }
    }

    #[test]
    fn interval_ranks_match_published_tables() {
        // Conover's table for the sign test, two-sided 5%: n, and k, the rank from either end.
        for (count, rank) in [
            (0, 0),
            (1, 0),
            (5, 0),
            (6, 1),
            (8, 1),
            (9, 2),
            (10, 2),
            (12, 3),
            (15, 4),
            (20, 6),
            (25, 8),
            (30, 10),
            (50, 18),
            (100, 40),
        ] {
            assert_eq!(interval_rank(count), rank, "{count} samples");
        }
    }

    #[test]
    fn tukeys_fences_count_both_sides() {
        let mut samples: Vec<f64> = (100..120).map(f64::from).collect();
        assert_eq!(Statistics::of(&samples).unwrap().outliers, 0);
        samples.extend([500.0, 1.0]);
        assert_eq!(Statistics::of(&samples).unwrap().outliers, 2);
    }

    #[test]
    fn no_statistic_is_ever_nan() {
        assert_eq!(Statistics::of(&[]), None);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Statistics::of(&[1.0, bad, 2.0]), None);
        }
        let extreme = Statistics::of(&[1e308, 1e308, 0.0, 1e308]).unwrap();
        assert!(extreme.mean_ns.is_finite() && extreme.stddev_ns.unwrap().is_finite());
        close(extreme.mean_ns / 1e308, 0.75);
    }

    #[test]
    fn order_does_not_matter() {
        assert_eq!(
            Statistics::of(&[3.0, 1.0, 2.0]).map(|s| s.median_ns),
            Statistics::of(&[2.0, 3.0, 1.0]).map(|s| s.median_ns)
        );
    }
}
