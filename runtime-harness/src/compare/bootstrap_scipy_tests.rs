//! The interval of the ratio of medians against the bootstrap of `SciPy` 1.17.1.

use super::bootstrap::{Series, ratio_interval};

/// Log-normal with two outliers.
const SKEWED: [f64; 25] = [
    75.11, 82.92, 108.2, 90.05, 111.08, 117.52, 74.92, 122.56, 88.77, 252.02, 115.69, 89.78, 104.11, 104.39,
    106.81, 132.13, 111.25, 139.39, 113.52, 96.51, 73.72, 173.19, 104.18, 114.82, 133.46,
];
/// Normal; of even length.
const NORMAL: [f64; 40] = [
    98.467, 100.194, 97.968, 98.944, 94.301, 101.847, 98.193, 99.818, 101.114, 100.848, 96.714, 103.795,
    101.893, 101.25, 98.351, 95.989, 95.925, 99.479, 100.402, 98.242, 104.574, 100.753, 102.496, 102.266,
    97.324, 102.485, 101.126, 96.828, 101.809, 102.68, 102.441, 102.63, 96.475, 99.381, 98.636, 100.136,
    100.266, 102.815, 101.88, 97.928,
];
/// Few different values.
const TIED: [f64; 13] = [53.0, 46.0, 51.0, 45.0, 52.0, 49.0, 55.0, 50.0, 46.0, 52.0, 48.0, 50.0, 45.0];

/// A series in an order in which long and short samples alternate, so that all of them are independent.
fn series(samples: &[f64]) -> Series {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = sorted.split_at(sorted.len().div_ceil(2));
    let mut mixed = Vec::new();
    for (index, sample) in low.iter().enumerate() {
        mixed.push(*sample);
        mixed.extend(high.get(index));
    }
    let series = Series::new(&mixed);
    assert_eq!(series.independent(), samples.len());
    series
}

/// Both intervals are random. The share of 10,000 resamples beyond a bound at the quantile 0.5% has a standard deviation of 0.07%; so
/// the bounds lie between those that `SciPy` finds, by 200,000 resamples, for the quantiles 0.29% and 0.71%.
///
/// `scipy.stats.bootstrap((new, old), lambda a, b, axis: np.median(a, axis=axis) / np.median(b, axis=axis), n_resamples=200_000,
/// method="percentile", confidence_level=c, vectorized=True, batch=5000, rng=np.random.default_rng(1))`, with `c` 0.9942, then 0.9858.
#[test]
fn the_bounds_are_those_of_scipys_percentile_bootstrap() {
    for (new, old, ratio, [lowest, highest], [low, high]) in [
        (
            &SKEWED[..],
            &NORMAL[..],
            1.079_517_110_645_515_5,
            [0.895_132_505_134_698_6, 1.181_354_858_814_423_1],
            [0.900_121_948_781_511_7, 1.171_287_898_419_279_6],
        ),
        (
            &NORMAL,
            &SKEWED,
            0.926_340_110_905_73,
            [0.843_792_545_949_625_6, 1.117_434_758_467_518_2],
            [0.853_454_731_109_598_5, 1.110_960_577_456_968_4],
        ),
        (
            &TIED,
            &NORMAL,
            0.498_852_638_930_46,
            [0.454_320_987_654_321, 0.526_369_065_694_908_5],
            [0.455_504_173_804_549_1, 0.523_238_848_472_041_9],
        ),
        (
            &TIED,
            &SKEWED,
            0.462_107_208_872_458_4,
            [0.399_804_177_545_691_9, 0.555_247_084_952_804_1],
            [0.405_214_940_098_661_05, 0.544_142_143_253_748],
        ),
    ] {
        let (new, old) = (series(new), series(old));
        // np.median(new) / np.median(old)
        assert!((new.median() / old.median() - ratio).abs() < 1e-12);
        let found = ratio_interval(&old, &new, 0.99);
        assert!(lowest <= found[0] && found[0] <= low, "{found:?}: {lowest} to {low}");
        assert!(high <= found[1] && found[1] <= highest, "{found:?}: {high} to {highest}");
    }
}
