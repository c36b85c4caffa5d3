//! The tests of the order of samples against the figures of `SciPy` 1.17.1, where `x` is the data as an array.

use super::*;

/// Kendall's score 86 of 20 samples, which is significant: `scipy.stats.kendalltau(range(20), x, method="asymptotic")` is 86 / 190.
const DRIFT: [f64; 20] = [
    97.9, 100.3, 99.5, 96.6, 104.7, 100.7, 97.0, 98.8, 100.9, 101.2, 103.0, 100.5, 110.4, 101.7, 109.8,
    100.8, 108.0, 98.1, 105.1, 112.0,
];
/// The next smaller score, 84, is not: the test subtracts 1 (the correction for continuity), which `SciPy` does not.
const NO_DRIFT: [f64; 20] = [
    101.3, 98.8, 99.0, 102.6, 106.1, 104.0, 101.8, 97.6, 100.9, 101.9, 109.6, 97.0, 108.2, 104.5, 109.0,
    99.8, 107.2, 110.8, 109.1, 113.3,
];
/// A drift without doubt.
const STEEP: [f64; 20] = [
    100.86, 102.68, 102.08, 98.62, 104.76, 104.24, 102.41, 105.83, 105.91, 106.36, 106.32, 108.24, 105.66,
    107.72, 107.54, 110.87, 110.1, 109.89, 109.3, 111.23,
];
const TIED: [f64; 13] = [53.0, 55.0, 51.0, 45.0, 48.0, 49.0, 45.0, 50.0, 46.0, 52.0, 52.0, 50.0, 46.0];

fn change(samples: &[f64]) -> Option<f64> {
    match drift(samples)?.defect {
        Defect::Drift { change } => Some(change),
        other => panic!("{other:?}"),
    }
}

/// Equal but for a few roundings.
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-12 * expected.abs(), "{value} is not {expected}");
}

#[test]
fn a_drift_is_the_slope_of_theil_and_sen() {
    // scipy.stats.theilslopes(x).slope * 19 / np.median(x)
    close(change(&STEEP).unwrap(), 0.092_515_124_386_207_68);
    close(change(&DRIFT).unwrap(), 0.079_807_745_276_262_91);
}

#[test]
fn a_drift_is_significant_by_kendalls_score() {
    // The z values by scipy.stats.norm.isf(kendalltau(…).pvalue / 2) are 2.790 and 2.725; less the correction, 2.758 and 2.693.
    assert!(change(&DRIFT).is_some());
    assert_eq!(change(&NO_DRIFT), None);
    let falling: Vec<f64> = DRIFT.iter().rev().copied().collect();
    assert!(change(&falling).unwrap() < 0.0);
}

#[test]
fn rank_sums_are_those_of_mann_and_whitney() {
    // The largest scipy.stats.norm.isf(p / 2) for the lengths 2 to 10, and that length, where
    // p = scipy.stats.mannwhitneyu(x[:length], x[length:], method="asymptotic", use_continuity=False).pvalue
    for (samples, deviation, length) in
        [(DRIFT, 2.777_460_299_317_654_7, 8), (NO_DRIFT, 2.418_972_627_259_054, 10)]
    {
        let (found, at) = largest_rank_sum(&samples).unwrap();
        close(found, deviation);
        assert_eq!(at, length);
    }
}

#[test]
fn equal_samples_share_their_rank() {
    // scipy.stats.rankdata(x)
    let expected = [12.0, 13.0, 9.0, 1.5, 5.0, 6.0, 1.5, 7.5, 3.5, 10.5, 10.5, 7.5, 3.5];
    assert_eq!(ranks(&TIED), expected);
}
