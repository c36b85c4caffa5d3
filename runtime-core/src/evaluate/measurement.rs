//! The answer to an evaluation.

use super::{Clock, Statistics, Validation};
use crate::{Error, ErrorKind, Result};

/// What one call of the kernel computes and moves, as the caller knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Cost {
    /// Floating-point operations.
    pub flops: Option<f64>,
    /// Bytes read and written.
    pub bytes: Option<f64>,
}

impl Cost {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [("flops", self.flops), ("bytes", self.bytes)] {
            if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
                return Err(Error::invalid(format!("cost.{name} is not a number of at least 0")));
            }
        }
        Ok(())
    }
}

/// The result of a timed evaluation: every sample, what they say, and what they were measured with.
///
/// With the feature `serde` it serialises under the names of its fields; enumerations are lower case with
/// underscores; `validation` has a `status` of `passed`, `failed` or `skipped` beside its own fields; numbers that
/// are infinite become null.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Measurement {
    /// Every sample in the order taken: nanoseconds per call, which is the window over `number`.
    pub samples_ns: Vec<f64>,
    /// What the samples say.
    pub statistics: Statistics,
    /// What the samples were measured with.
    pub clock: Clock,
    /// Samples that were asked for; fewer were taken if the budget was spent.
    pub repeat: usize,
    /// Calls of one sample.
    pub number: u64,
    /// All calls that the evaluation made: validation, warm-up, calibration and samples.
    pub calls: u64,
    /// Nothing ran before the first sample. Later samples, and later calls of the first, are warm unless caches
    /// were flushed.
    pub cold: bool,
    /// What the same clock reads per call of an empty kernel: how much of a short time is not the kernel's. It has
    /// not been subtracted. `None` where the device has no empty kernel, or none that runs the way calls do.
    pub overhead_ns: Option<f64>,
    /// The share of the transfers, where arguments live on the host. It is part of the samples.
    pub transfer: Option<Transfer>,
    /// Whether the kernel is right.
    pub validation: Validation,
    /// What one call computes and moves.
    pub cost: Cost,
}

impl Measurement {
    /// 10^9 floating-point operations per second, by the median sample; `None` without a cost or a measurable time.
    #[must_use]
    pub fn gflops_per_s(&self) -> Option<f64> {
        self.rate(self.cost.flops)
    }

    /// 10^9 bytes per second, by the median sample; `None` without a cost or a measurable time.
    #[must_use]
    pub fn gbytes_per_s(&self) -> Option<f64> {
        self.rate(self.cost.bytes)
    }

    /// Whether all the samples that were asked for were taken before the budget was spent.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.samples_ns.len() == self.repeat
    }

    /// Things per nanosecond are 10^9 things per second.
    fn rate(&self, amount: Option<f64>) -> Option<f64> {
        amount.map(|amount| amount / self.statistics.median_ns).filter(|rate| rate.is_finite())
    }
}

/// Moving arguments between the host and the device, by the host's clock.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Transfer {
    /// Nanoseconds of transfer per call, a sample for each of the measurement's.
    pub samples_ns: Vec<f64>,
    /// What they say.
    pub statistics: Statistics,
    /// Bytes to the device per call.
    pub bytes_in: u64,
    /// Bytes back per call.
    pub bytes_out: u64,
}

impl Transfer {
    pub(crate) fn new(samples_ns: Vec<f64>, (bytes_in, bytes_out): (u64, u64)) -> Result<Self> {
        Ok(Self { statistics: statistics(&samples_ns)?, samples_ns, bytes_in, bytes_out })
    }
}

pub(crate) fn statistics(samples_ns: &[f64]) -> Result<Statistics> {
    Statistics::of(samples_ns)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the samples are empty or not finite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn measurement(samples_ns: &[f64]) -> Measurement {
        Measurement {
            samples_ns: samples_ns.to_vec(),
            statistics: statistics(samples_ns).unwrap(),
            clock: Clock::DeviceBatch,
            repeat: 3,
            number: 5,
            calls: 17,
            cold: false,
            overhead_ns: None,
            transfer: None,
            validation: Validation::Skipped { reason: "no reference".to_owned() },
            cost: Cost { flops: Some(4000.0), bytes: None },
        }
    }

    #[test]
    fn rates_follow_from_the_cost_and_the_median() {
        let measured = measurement(&[1000.0, 2000.0, 9000.0]);
        assert_eq!((measured.gflops_per_s(), measured.gbytes_per_s()), (Some(2.0), None));
        assert!(measured.is_complete());
        let nothing = measurement(&[0.0]);
        assert_eq!(nothing.gflops_per_s(), None);
        assert!(!nothing.is_complete());
    }

    #[test]
    fn a_cost_is_a_sensible_number() {
        assert!(Cost { flops: Some(-1.0), bytes: None }.check().unwrap_err().message().contains("flops"));
        assert!(Cost { flops: None, bytes: Some(f64::NAN) }.check().is_err());
        assert!(Cost { flops: Some(0.0), bytes: Some(1e18) }.check().is_ok());
    }

    #[cfg(feature = "serde")]
    #[test]
    fn json_has_the_documented_names() {
        let json = serde_json::to_value(measurement(&[1.0, 2.0])).unwrap();
        assert_eq!(json["clock"], "device_batch");
        assert_eq!(json["validation"]["status"], "skipped");
        assert_eq!(json["statistics"]["median_ns"], 1.5);
        assert_eq!(json["samples_ns"], serde_json::json!([1.0, 2.0]));
    }
}
