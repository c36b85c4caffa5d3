//! Decides when there are enough samples.

use super::Timing;
use super::statistics::{median_interval, percentile, relative_uncertainty};

/// Samples before the interval is evaluated first. Fewer would end the search too often because they happen to agree.
const MIN_SAMPLES: usize = 20;
/// Between two evaluations, the number of samples grows by this fraction of it (1/4).
const GROWTH: usize = 4;
/// The interval must be narrow in this many consecutive evaluations: a single one may be narrow by chance.
const NARROW_EVALUATIONS: usize = 2;
/// Samples after which the search ends without success: the memory is bounded, and so is the time that sorting takes.
const MAX_SAMPLES: usize = 1 << 20;

/// The rule that ends the samples: their number, or the precision of the median.
pub(crate) struct StopRule {
    repeat: usize,
    until: Option<f64>,
    next_evaluation: usize,
    /// How many samples there were at the last evaluation.
    seen: usize,
    /// How many samples there were in the consecutive evaluations in which the interval was narrow, up to the last one.
    narrow: Vec<usize>,
    /// Reused for every evaluation.
    sorted: Vec<f64>,
}

impl StopRule {
    pub(crate) fn new(timing: &Timing) -> Self {
        let Timing { repeat, until, .. } = *timing;
        Self {
            repeat,
            until,
            next_evaluation: repeat.max(MIN_SAMPLES),
            seen: 0,
            narrow: Vec::new(),
            sorted: Vec::new(),
        }
    }

    /// Whether these samples are enough.
    pub(crate) fn is_enough(&mut self, samples: &[f64]) -> bool {
        let count = samples.len();
        let Some(until) = self.until else { return count >= self.repeat };
        if count < self.next_evaluation {
            return false;
        }
        self.seen = count;
        self.next_evaluation = count + 1 + count / GROWTH;
        if self.is_precise(samples, until) {
            self.narrow.push(count);
        } else {
            self.narrow.clear();
        }
        self.narrow.len() >= NARROW_EVALUATIONS || count >= self.repeat.max(MAX_SAMPLES)
    }

    /// Forgets what it saw of samples that are measured again; `count` remain.
    pub(crate) fn discard(&mut self, count: usize) {
        self.narrow.retain(|seen| *seen <= count);
        if self.seen > count {
            self.next_evaluation = self.repeat.max(MIN_SAMPLES).max(count + 1);
        }
    }

    /// Whether the precision asked for was reached; `None` if none was asked for.
    pub(crate) fn reached(&self) -> Option<bool> {
        self.until.map(|_| self.narrow.len() >= NARROW_EVALUATIONS)
    }

    fn is_precise(&mut self, samples: &[f64], until: f64) -> bool {
        self.sorted.clear();
        self.sorted.extend_from_slice(samples);
        self.sorted.sort_unstable_by(f64::total_cmp);
        let interval = median_interval(&self.sorted);
        interval
            .is_some_and(|interval| relative_uncertainty(percentile(&self.sorted, 50.0), interval) <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(repeat: usize, until: f64) -> StopRule {
        StopRule::new(&Timing { repeat, until: Some(until), ..Timing::default() })
    }

    /// The samples after which the rule ends, and whether the precision was reached.
    fn ends(mut rule: StopRule, mut sample: impl FnMut(usize) -> f64) -> (Vec<f64>, bool) {
        let mut samples = Vec::new();
        loop {
            samples.push(sample(samples.len()));
            if rule.is_enough(&samples) {
                return (samples, rule.reached().unwrap());
            }
        }
    }

    #[test]
    fn equal_samples_end_it_at_the_second_evaluation() {
        for (repeat, sample, count) in [(10, 5.0, 26), (50, 5.0, 63), (1, 0.0, 26)] {
            let (samples, reached) = ends(rule(repeat, 0.01), |_| sample);
            assert_eq!((samples.len(), reached), (count, true));
        }
    }

    #[test]
    fn an_interval_that_stays_wide_ends_it_at_the_bound() {
        let two = |index: usize| if index.is_multiple_of(2) { 100.0 } else { 150.0 };
        let (samples, reached) = ends(rule(10, 0.01), two);
        assert!(!reached && (MAX_SAMPLES..MAX_SAMPLES * 5 / 4 + 2).contains(&samples.len()));
    }

    #[test]
    fn one_narrow_interval_is_not_enough() {
        let mut rule = rule(10, 0.01);
        let wide: Vec<f64> = (0..26).map(f64::from).collect();
        for (samples, narrow) in [(&[5.0; 20][..], 1), (&wide, 0), (&[5.0; 33], 1), (&[5.0; 42], 2)] {
            assert_eq!(
                (rule.is_enough(samples), rule.narrow.len()),
                (narrow == 2, narrow),
                "{} samples",
                samples.len()
            );
        }
        assert_eq!(rule.reached(), Some(true));
    }

    #[test]
    fn an_evaluation_of_samples_that_remain_still_counts() {
        let mut rule = rule(10, 0.01);
        assert!(!rule.is_enough(&[5.0; 20]));
        rule.discard(20);
        assert!(rule.is_enough(&[5.0; 26]), "both evaluations were of samples that remain");
        rule.discard(25);
        assert_eq!(
            (rule.reached(), rule.next_evaluation),
            (Some(false), 26),
            "evaluate the samples that replace it"
        );
        rule.discard(19);
        assert!(
            !rule.is_enough(&[5.0; 26]) && rule.is_enough(&[5.0; 33]),
            "the first evaluation is void, too"
        );
    }

    #[test]
    fn without_a_precision_the_number_counts() {
        let mut plain = StopRule::new(&Timing { repeat: 2, ..Timing::default() });
        assert!(!plain.is_enough(&[1.0]) && plain.is_enough(&[1.0, 9.0]));
        assert_eq!(plain.reached(), None);
    }

    /// Uniform in (0, 1): `SplitMix64`.
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = *state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((word ^ (word >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(state: &mut u64) -> f64 {
        let radius = (-2.0 * uniform(state).ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform(state)).cos()
    }

    /// The share of series whose interval, at the end, contains the true median.
    fn coverage(until: f64, median: f64, mut sample: impl FnMut(&mut u64) -> f64) -> f64 {
        const SERIES: u32 = 2000;
        let mut state = 1;
        let contained = (0..SERIES).filter(|_| {
            let (mut samples, reached) = ends(rule(10, until), |_| sample(&mut state));
            assert!(reached);
            samples.sort_unstable_by(f64::total_cmp);
            let [low, high] = median_interval(&samples).unwrap();
            low <= median && median <= high
        });
        contained.count() as f64 / f64::from(SERIES)
    }

    /// Two standard deviations of the share are one percent.
    #[test]
    fn the_interval_at_the_end_keeps_its_promise() {
        for until in [0.05, 0.02, 0.01] {
            let shares = [
                coverage(until, 100.0, |state| 100.0 + 5.0 * normal(state)),
                coverage(until, 100.0 + 5.0 * 2f64.ln(), |state| 100.0 - 5.0 * uniform(state).ln()),
                coverage(until, 120.0, |state| 100.0 + 20.0 * normal(state).exp()),
            ];
            for share in shares {
                assert!((0.93..=0.98).contains(&share), "until {until}: {shares:?}");
            }
        }
    }

    /// Without stopping early, the interval contains the median with at least 95%: exactly as often as the binomial
    /// distribution says, which is at most 97.9% for 10 samples and 95.7% for 30.
    #[test]
    fn the_interval_of_a_fixed_number_contains_the_median_as_often_as_computed() {
        // scipy.stats.binom: 1 - 2 * binom.cdf(k - 1, n, 0.5), for k = 2, 10, 40 and n = 10, 30, 100.
        for (count, exact) in [(10, 0.978_515_625), (30, 0.957_226_085), (100, 0.964_799_800)] {
            let mut state = 7;
            let contained = (0..4000).filter(|_| {
                let mut samples: Vec<f64> = (0..count).map(|_| -uniform(&mut state).ln()).collect();
                samples.sort_unstable_by(f64::total_cmp);
                let [low, high] = median_interval(&samples).unwrap();
                low <= 2f64.ln() && 2f64.ln() <= high
            });
            let share = contained.count() as f64 / 4000.0;
            assert!((share - exact).abs() < 0.01, "{count} samples: {share}, computed {exact}");
        }
    }
}
