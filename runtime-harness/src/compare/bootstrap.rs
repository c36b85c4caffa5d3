//! The ratio of two medians, with an interval.

use runtime_core::evaluate::percentile;

use super::independence::independent_samples;
use crate::random::Random;

/// Number of bootstrap resamples. 50 of them lie beyond either bound of a 99% interval.
const RESAMPLES: usize = 10_000;
/// The same interval for the same samples, in every run.
const SEED: u64 = 0x636f_6d70_6172_6521;

/// Samples of one kernel, prepared for resampling.
#[derive(Clone, Debug)]
pub(super) struct Series {
    sorted: Vec<f64>,
    /// How many independent samples they are worth.
    independent: usize,
}

impl Series {
    /// A series of samples in the order taken. There must be at least one.
    pub(super) fn new(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self { independent: independent_samples(samples, percentile(&sorted, 50.0)), sorted }
    }

    pub(super) fn median(&self) -> f64 {
        percentile(&self.sorted, 50.0)
    }

    pub(super) const fn samples(&self) -> usize {
        self.sorted.len()
    }

    pub(super) const fn independent(&self) -> usize {
        self.independent
    }

    /// The median of one resample, in constant time.
    ///
    /// Elements drawn with replacement have uniformly distributed ranks, so the median of `n` of them has the rank of the
    /// middle of `n` uniform numbers, which is beta-distributed (David and Nagaraja 2003, chapter 2). This is exactly
    /// the distribution that drawing all elements gives (Efron 1979, section 3).
    fn resampled_median(&self, random: &mut Random) -> f64 {
        let draws = self.independent;
        let middle = draws.div_ceil(2);
        let rank = random.beta(middle as f64, (draws - middle + 1) as f64);
        if draws % 2 == 1 {
            return self.at(rank);
        }
        // The smallest of the numbers above `rank`.
        let next = 1.0 - (1.0 - rank) * random.uniform().powf(1.0 / (draws - middle) as f64);
        f64::midpoint(self.at(rank), self.at(next))
    }

    /// The sample at a rank between 0 and 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank lies within the samples"
    )]
    fn at(&self, rank: f64) -> f64 {
        let index = (rank * self.sorted.len() as f64) as usize;
        self.sorted[index.min(self.sorted.len() - 1)]
    }
}

/// The interval of the ratio of medians, `new` divided by `old`, by the bootstrap with the percentile method (Efron 1979;
/// Efron and Tibshirani 1993, chapter 13). Both series are resampled, each with as many elements as it has independent
/// samples.
pub(super) fn ratio_interval(old: &Series, new: &Series, confidence: f64) -> [f64; 2] {
    let mut random = Random::new(SEED);
    let ratio = |_| new.resampled_median(&mut random) / old.resampled_median(&mut random);
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(ratio).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let tail = 50.0 * (1.0 - confidence);
    [percentile(&ratios, tail), percentile(&ratios, 100.0 - tail)]
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
mod tests {
    use super::*;

    /// How often each median comes up in `COUNT` resamples of 0, 2, 4, …
    const COUNT: usize = 100_000;

    fn drawn_medians(len: usize) -> Vec<usize> {
        let mut random = Random::new(2);
        let mut counts = vec![0; 2 * len];
        for _ in 0..COUNT {
            let mut drawn: Vec<usize> =
                (0..len).map(|_| (random.uniform() * len as f64) as usize * 2).collect();
            drawn.sort_unstable();
            counts[usize::midpoint(drawn[(len - 1) / 2], drawn[len / 2])] += 1;
        }
        counts
    }

    #[test]
    fn medians_are_distributed_as_if_every_element_was_drawn() {
        for len in [6, 7] {
            let samples: Vec<f64> = (0..len).map(|index| 2.0 * index as f64).collect();
            let series = Series { sorted: samples, independent: len };
            let mut random = Random::new(3);
            let mut counts = vec![0; 2 * len];
            for _ in 0..COUNT {
                counts[series.resampled_median(&mut random) as usize] += 1;
            }
            for (median, (fast, drawn)) in counts.iter().zip(drawn_medians(len)).enumerate() {
                // Five standard deviations of the difference of two Poisson counts.
                let allowed = 5.0 * ((fast + drawn) as f64).sqrt();
                let difference = fast.abs_diff(drawn) as f64;
                assert!(difference <= allowed, "{len} elements, median {median}: {fast}, {drawn}");
            }
        }
    }

    #[test]
    fn the_interval_contains_the_ratio_and_is_reproducible() {
        let old = Series::new(&[10.0, 10.2, 9.9, 10.1, 10.0, 9.8, 10.3]);
        let new = Series::new(&[12.1, 12.0, 11.8, 12.3, 12.2, 11.9, 12.0]);
        let [low, high] = ratio_interval(&old, &new, 0.99);
        let ratio = new.median() / old.median();
        assert!(1.1 < low && low < ratio && ratio < high && high < 1.3, "{low}, {ratio}, {high}");
        assert_eq!(ratio_interval(&old, &new, 0.99), [low, high]);
        let narrow = ratio_interval(&old, &new, 0.8);
        assert!(low < narrow[0] && narrow[1] < high, "{narrow:?} in {low}, {high}");
    }

    #[test]
    fn equal_samples_leave_no_doubt() {
        let series = Series::new(&[3.0; 8]);
        assert_eq!(ratio_interval(&series, &series, 0.99), [1.0, 1.0]);
    }

    #[test]
    fn long_series_take_no_longer() {
        let mut random = Random::new(4);
        let samples: Vec<f64> = (0..1_000_000).map(|_| 100.0 + random.uniform()).collect();
        let series = Series::new(&samples);
        let begin = std::time::Instant::now();
        let [low, high] = ratio_interval(&series, &series, 0.99);
        // Drawing 2 × 10^10 elements takes minutes.
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
        assert!(0.9999 < low && high < 1.0001, "{low}, {high}");
    }
}
