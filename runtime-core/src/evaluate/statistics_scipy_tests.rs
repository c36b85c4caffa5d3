//! Statistics against the figures of `SciPy` 1.17.1 and `NumPy` 2.4.6, where `x` is the data as an array. All agree to rounding.

use super::statistics::{Statistics, median_interval, percentile};

/// Log-normal: `100 * exp(0.2 * N(0, 1))`, rounded, with two outliers.
const SKEWED: [f64; 25] = [
    75.11, 82.92, 108.2, 90.05, 111.08, 117.52, 74.92, 122.56, 88.77, 252.02, 115.69, 89.78, 104.11, 104.39,
    106.81, 132.13, 111.25, 139.39, 113.52, 96.51, 73.72, 173.19, 104.18, 114.82, 133.46,
];
/// Normal: `1000 + 25 * N(0, 1)`, rounded; of even length.
const NORMAL: [f64; 40] = [
    984.67, 1001.94, 979.68, 989.44, 943.01, 1018.47, 981.93, 998.18, 1011.14, 1008.48, 967.14, 1037.95,
    1018.93, 1012.5, 983.51, 959.89, 959.25, 994.79, 1004.02, 982.42, 1045.74, 1007.53, 1024.96, 1022.66,
    973.24, 1024.85, 1011.26, 968.28, 1018.09, 1026.8, 1024.41, 1026.3, 964.75, 993.81, 986.36, 1001.36,
    1002.66, 1028.15, 1018.8, 979.28,
];
/// Few different values.
const TIED: [f64; 13] = [53.0, 55.0, 51.0, 45.0, 48.0, 49.0, 45.0, 50.0, 46.0, 52.0, 52.0, 50.0, 46.0];

/// What `SciPy` says of a data set.
struct Expected {
    /// `np.median(x)`
    median: f64,
    /// `scipy.stats.tmean(x)`
    mean: f64,
    /// `scipy.stats.tstd(x)`
    stddev: f64,
    /// `scipy.stats.quantile(x, [0.05, 0.25, 0.75, 0.95])`, which is `np.percentile` by default
    quantiles: [f64; 4],
    /// `scipy.stats.quantile_test(x, q=np.median(x), p=0.5).confidence_interval(0.95)`
    interval: [f64; 2],
    /// `((x < q1 - 1.5 * scipy.stats.iqr(x)) | (x > q3 + 1.5 * scipy.stats.iqr(x))).sum()`, with the quartiles above
    outliers: usize,
}

const EXPECTED: [(&[f64], Expected); 3] = [
    (
        &SKEWED,
        Expected {
            median: 108.2,
            mean: 113.444_000_000_000_02,
            stddev: 36.574_991_683_753_9,
            quantiles: [74.958, 90.05, 117.52, 166.430_000_000_000_04],
            interval: [96.51, 115.69],
            outliers: 2,
        },
    ),
    (
        &NORMAL,
        Expected {
            median: 1002.3,
            mean: 999.665_750_000_000_1,
            stddev: 24.251_752_660_692_07,
            quantiles: [959.858_000_000_000_1, 982.297_499_999_999_9, 1_018.832_499_999_999_9, 1028.64],
            interval: [986.36, 1012.5],
            outliers: 0,
        },
    ),
    (
        &TIED,
        Expected {
            median: 50.0,
            mean: 49.384_615_384_615_39,
            stddev: 3.228_479_041_758_971,
            quantiles: [45.0, 46.0, 52.0, 53.800_000_000_000_004],
            interval: [46.0, 52.0],
            outliers: 0,
        },
    ),
];

/// Both sum in another order: equal but for a few roundings.
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-13 * expected.abs(), "{value} is not {expected}");
}

#[test]
fn samples_have_the_statistics_that_scipy_computes() {
    for (samples, expected) in EXPECTED {
        let statistics = Statistics::of(samples).unwrap();
        close(statistics.median_ns, expected.median);
        close(statistics.mean_ns, expected.mean);
        close(statistics.stddev_ns.unwrap(), expected.stddev);
        close(statistics.p5_ns, expected.quantiles[0]);
        close(statistics.p95_ns, expected.quantiles[3]);
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        close(percentile(&sorted, 25.0), expected.quantiles[1]);
        close(percentile(&sorted, 75.0), expected.quantiles[2]);
        assert_eq!(
            (statistics.median_ci95_ns, statistics.outliers),
            (Some(expected.interval), expected.outliers)
        );
    }
}

#[test]
fn the_interval_of_the_median_has_the_ranks_that_scipy_chooses() {
    // scipy.stats.quantile_test(np.arange(1, n + 1.0), q=n / 2, p=0.5).confidence_interval(0.95), which is nan for 5 samples.
    for (count, interval) in [
        (5, None),
        (6, Some([1.0, 6.0])),
        (7, Some([1.0, 7.0])),
        (9, Some([2.0, 8.0])),
        (11, Some([2.0, 10.0])),
        (13, Some([3.0, 11.0])),
        (31, Some([10.0, 22.0])),
        (77, Some([30.0, 48.0])),
        (101, Some([41.0, 61.0])),
        // Of the numbers up to 3000, those where the next rank misses the confidence by least.
        (417, Some([188.0, 230.0])),
        (2656, Some([1277.0, 1380.0])),
        (500, Some([228.0, 273.0])),
        (999, Some([469.0, 531.0])),
        (1000, Some([469.0, 532.0])),
        (1001, Some([470.0, 532.0])),
        (1200, Some([566.0, 635.0])),
        (5000, Some([2431.0, 2570.0])),
        (10_000, Some([4902.0, 5099.0])),
        (100_003, Some([49_692.0, 50_312.0])),
        (1_000_000, Some([499_020.0, 500_981.0])),
    ] {
        let ranks: Vec<f64> = (1..=count).map(f64::from).collect();
        assert_eq!(median_interval(&ranks), interval, "{count} samples");
    }
}
