//! Measurements as plain data.

use runtime_core::{Measurement as CoreMeasurement, Statistics as CoreStatistics, Transfer as CoreTransfer};
use serde::{Deserialize, Serialize};

/// A timed evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Name of the clock.
    pub clock: String,
    /// Whether nothing ran before the first sample.
    pub cold: bool,
    /// Number of samples requested.
    pub repeat: usize,
    /// Whether the median became as precise as was asked for; `None` if that was not asked for.
    #[serde(default)]
    pub reached_until: Option<bool>,
    /// How often the device throttled; `None` if it does not report that.
    #[serde(default)]
    pub throttled: Option<Throttled>,
    /// Calls per sample.
    pub number: u64,
    /// Total number of calls.
    pub calls: u64,
    /// Every sample in the order taken, in nanoseconds per call.
    pub samples_ns: Vec<f64>,
    /// Statistics of the samples.
    pub statistics: Statistics,
    /// Time per call of an empty kernel.
    pub overhead_ns: Option<f64>,
    /// The part of the samples that was spent on transfers.
    pub transfer: Option<Transfer>,
    /// Floating-point operations of a call.
    pub flops: Option<f64>,
    /// Bytes read and written by a call.
    pub bytes: Option<f64>,
    /// 10⁹ floating-point operations per second.
    pub gflops_per_s: Option<f64>,
    /// 10⁹ bytes per second.
    pub gbytes_per_s: Option<f64>,
}

/// Samples during which the device lowered its clocks because of heat or the power supply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Samples that were thrown away and measured again.
    pub remeasured: usize,
    /// Samples of the measurement.
    pub kept: usize,
}

/// Statistics of samples, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The shortest sample.
    pub min_ns: f64,
    /// The median.
    pub median_ns: f64,
    /// The mean.
    pub mean_ns: f64,
    /// The longest sample.
    pub max_ns: f64,
    /// Sample standard deviation; `None` for a single sample.
    pub stddev_ns: Option<f64>,
    /// 5th percentile.
    pub p5_ns: f64,
    /// 95th percentile.
    pub p95_ns: f64,
    /// 95% confidence interval of the median; `None` for too few samples.
    pub median_ci95_ns: Option<[f64; 2]>,
    /// Number of samples outside Tukey's fences.
    pub outliers: usize,
}

/// Transfers of arguments between host and device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Bytes uploaded per call.
    pub bytes_in: u64,
    /// Bytes downloaded per call.
    pub bytes_out: u64,
    /// Nanoseconds per call, one for each sample of the measurement.
    pub samples_ns: Vec<f64>,
    /// Statistics of the samples.
    pub statistics: Statistics,
}

impl Measurement {
    /// Whether all requested samples were taken before the budget ran out.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.samples_ns.len() >= self.repeat
    }
}

impl Statistics {
    /// The distance from the median to the farther end of its confidence interval, divided by the median; `None` without
    /// an interval or a measurable time.
    #[must_use]
    pub fn median_uncertainty(&self) -> Option<f64> {
        let [low, high] = self.median_ci95_ns?;
        let uncertainty = (high - self.median_ns).max(self.median_ns - low) / self.median_ns;
        uncertainty.is_finite().then_some(uncertainty)
    }
}

impl From<&CoreMeasurement> for Measurement {
    fn from(measurement: &CoreMeasurement) -> Self {
        Self {
            clock: measurement.clock.name().to_owned(),
            cold: measurement.cold,
            repeat: measurement.repeat,
            reached_until: measurement.reached_until,
            throttled: measurement
                .throttled
                .map(|throttled| Throttled { remeasured: throttled.remeasured, kept: throttled.kept }),
            number: measurement.number,
            calls: measurement.calls,
            samples_ns: measurement.samples_ns.clone(),
            statistics: (&measurement.statistics).into(),
            overhead_ns: measurement.overhead_ns,
            transfer: measurement.transfer.as_ref().map(Transfer::from),
            flops: measurement.cost.flops,
            bytes: measurement.cost.bytes,
            gflops_per_s: measurement.gflops_per_s(),
            gbytes_per_s: measurement.gbytes_per_s(),
        }
    }
}

impl From<&CoreStatistics> for Statistics {
    fn from(statistics: &CoreStatistics) -> Self {
        Self {
            min_ns: statistics.min_ns,
            median_ns: statistics.median_ns,
            mean_ns: statistics.mean_ns,
            max_ns: statistics.max_ns,
            stddev_ns: statistics.stddev_ns,
            p5_ns: statistics.p5_ns,
            p95_ns: statistics.p95_ns,
            median_ci95_ns: statistics.median_ci95_ns,
            outliers: statistics.outliers,
        }
    }
}

impl From<&CoreTransfer> for Transfer {
    fn from(transfer: &CoreTransfer) -> Self {
        Self {
            bytes_in: transfer.bytes_in,
            bytes_out: transfer.bytes_out,
            samples_ns: transfer.samples_ns.clone(),
            statistics: (&transfer.statistics).into(),
        }
    }
}
