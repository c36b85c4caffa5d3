//! The result of an evaluation.

use serde::{Deserialize, Serialize};

use super::timing_loop::Samples;
use super::{Clock, Statistics, Throttled, Timing, Validation};
use crate::{Error, ErrorKind, Result};

/// The cost of one kernel call, as stated by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
                return Err(Error::invalid(format!("cost.{name} must be a finite number of at least 0")));
            }
        }
        Ok(())
    }
}

/// The result of a timed evaluation: every sample, their statistics, and how they were measured.
///
/// ```
/// # use std::time::Duration;
/// # use runtime_core::{ModuleSource, Runtime, read, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let saxpy = device.kernel(&unsafe { ModuleSource::native("null", "saxpy_f32") }, "saxpy_f32")?;
/// # let (x, y) = (device.zeros::<f32>([8])?, device.zeros::<f32>([8])?);
/// let benchmark = device.bench(&saxpy, (1, 1), (read(&x), read_write(&y), 2.0f32)).bytes(3.0 * 4.0 * 8.0);
/// # let benchmark = benchmark.samples(7).sample_time(Duration::from_millis(1));
/// let measurement = benchmark.run()?;
/// let statistics = &measurement.statistics;
/// println!("{:.1} ns, {:.1} to {:.1}", statistics.median_ns, statistics.p5_ns, statistics.p95_ns);
/// println!("{:?} GB/s by {}", measurement.gbytes_per_s(), measurement.clock);
/// assert!(measurement.is_complete()); // as many samples as were asked for
/// assert_eq!(measurement.gflops_per_s(), None); // nobody said how many operations a call has
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The clock that the samples were measured with.
    pub clock: Clock,
    /// Whether nothing ran before the first sample. Later samples, and later calls of the first, are warm
    /// unless caches were flushed.
    pub cold: bool,
    /// Number of samples requested; fewer were taken if the budget ran out, more for [`Timing::until`](super::Timing::until).
    pub repeat: usize,
    /// Whether the median became as precise as [`Timing::until`](super::Timing::until) asks; `None` if it does not ask.
    pub reached_until: Option<bool>,
    /// How often the device throttled; `None` if it does not report that.
    pub throttled: Option<Throttled>,
    /// Calls per sample.
    pub number: u64,
    /// Total number of calls: validation, warm-up, calibration and samples.
    pub calls: u64,
    /// All samples in the order taken: nanoseconds per call, i.e. the window divided by `number`.
    pub samples_ns: Vec<f64>,
    /// Statistics of the samples.
    pub statistics: Statistics,
    /// The time per call of a no-op kernel by the same clock: the part of a short time that is not the
    /// kernel's. It has not been subtracted. `None` if the device has no no-op kernel, or none that runs the
    /// way calls do.
    pub overhead_ns: Option<f64>,
    /// The part of the samples spent in transfers, if arguments are on the host.
    pub transfer: Option<Transfer>,
    /// The cost of one call.
    #[serde(flatten)]
    pub cost: Cost,
    /// The result of the validation. It is written elsewhere, if at all: a measurement that is read has none.
    #[serde(skip)]
    pub validation: Validation,
}

impl Measurement {
    /// 10^9 floating-point operations per second, from the median sample; `None` without a cost or a
    /// measurable time.
    #[must_use]
    pub fn gflops_per_s(&self) -> Option<f64> {
        self.rate(self.cost.flops)
    }

    /// 10^9 bytes per second, from the median sample; `None` without a cost or a measurable time.
    #[must_use]
    pub fn gbytes_per_s(&self) -> Option<f64> {
        self.rate(self.cost.bytes)
    }

    /// Whether all requested samples were taken before the budget ran out.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.samples_ns.len() >= self.repeat
    }

    /// Units per nanosecond equal 10^9 units per second.
    fn rate(&self, amount: Option<f64>) -> Option<f64> {
        amount.map(|amount| amount / self.statistics.median_ns).filter(|rate| rate.is_finite())
    }
}

/// Transfers of arguments between host and device, by the host's clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Transfer {
    /// Bytes uploaded per call.
    pub bytes_in: u64,
    /// Bytes downloaded per call.
    pub bytes_out: u64,
    /// Nanoseconds of transfer per call, one for each sample of the measurement.
    pub samples_ns: Vec<f64>,
    /// Statistics of the samples.
    pub statistics: Statistics,
}

impl Transfer {
    pub(crate) fn new(samples_ns: Vec<f64>, (bytes_in, bytes_out): (u64, u64)) -> Result<Self> {
        Ok(Self { statistics: statistics(&samples_ns)?, samples_ns, bytes_in, bytes_out })
    }
}

/// How the calls of samples were made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    /// What they were timed with.
    pub(crate) clock: Clock,
    /// Their number, with those before and after the samples.
    pub(crate) calls: u64,
    /// Bytes uploaded and downloaded per call, if there are transfers.
    pub(crate) transfer_bytes: Option<(u64, u64)>,
}

/// The measurement of the samples that were taken, with the time per call of a no-op kernel.
pub(crate) fn of_samples(
    samples: Samples,
    made: Made,
    (timing, cost): (&Timing, Cost),
    (overhead_ns, validation): (Option<f64>, Validation),
) -> Result<Measurement> {
    let transfer = made.transfer_bytes.map(|bytes| Transfer::new(samples.transfers_ns, bytes)).transpose()?;
    Ok(Measurement {
        statistics: statistics(&samples.samples_ns)?,
        samples_ns: samples.samples_ns,
        clock: made.clock,
        repeat: timing.repeat,
        reached_until: samples.reached_until,
        throttled: samples.throttled,
        number: samples.number,
        calls: made.calls,
        cold: timing.warmup.is_none(),
        overhead_ns,
        transfer,
        validation,
        cost,
    })
}

fn statistics(samples_ns: &[f64]) -> Result<Statistics> {
    Statistics::of(samples_ns)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the samples are empty or not finite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(samples_ns: &[f64]) -> Measurement {
        Measurement {
            samples_ns: samples_ns.to_vec(),
            statistics: statistics(samples_ns).unwrap(),
            clock: Clock::DeviceBatch,
            repeat: 3,
            reached_until: None,
            throttled: None,
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
    fn a_cost_is_finite_and_not_negative() {
        assert!(Cost { flops: Some(-1.0), bytes: None }.check().unwrap_err().message().contains("flops"));
        assert!(Cost { flops: None, bytes: Some(f64::NAN) }.check().is_err());
        assert!(Cost { flops: Some(0.0), bytes: Some(1e18) }.check().is_ok());
    }
}
