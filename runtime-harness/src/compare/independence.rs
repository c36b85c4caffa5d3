//! How many independent samples a series is worth.

/// The number of independent samples that determine the median as precisely as these, which are in the order taken.
///
/// Consecutive samples share the frequency of the clock, the temperature and other load. An interval that ignores this is
/// too narrow: series with an autocorrelation of 0.5 would differ significantly eight times as often as stated. For a
/// mean, the number is `n (1 - r) / (1 + r)` with the autocorrelation `r` at lag 1 (Bayley and Hammersley 1946, for a
/// first-order process). A median depends on the signs of the deviations from it, so `r` is that of the signs. A
/// negative `r` is ignored: it would make the interval narrower.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the number of samples"
)]
pub(super) fn independent_samples(samples: &[f64], median: f64) -> usize {
    let sign = |sample: &f64| if *sample == median { 0.0 } else { (sample - median).signum() };
    let signs: Vec<f64> = samples.iter().map(sign).collect();
    let squares: f64 = signs.iter().map(|sign| sign * sign).sum();
    if squares == 0.0 {
        return samples.len();
    }
    let products: f64 = signs.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = (products / squares).max(0.0);
    (samples.len() as f64 * (1.0 - correlation) / (1.0 + correlation)).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_worth_few_samples() {
        let drift: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(independent_samples(&drift, 14.5), 2);
        let modes: Vec<f64> = (0..40).map(|index| f64::from(index / 4 % 2)).collect();
        assert!((10..=16).contains(&independent_samples(&modes, 0.5)));
    }

    #[test]
    fn samples_that_do_not_repeat_are_independent() {
        let alternating: Vec<f64> = (0..30).map(|index| f64::from(index % 2)).collect();
        assert_eq!(independent_samples(&alternating, 0.5), 30);
        assert_eq!(independent_samples(&[5.0; 12], 5.0), 12);
    }
}
