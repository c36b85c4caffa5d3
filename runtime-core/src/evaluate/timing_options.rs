//! Timing options of an evaluation: samples, warm-up, caches, budget.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Clock, ClockChoice};
use crate::model::options::did_you_mean;
use crate::{DeviceInfo, Error, Result};

/// Maximum number of calls per sample that a caller may request: a sample is never cut short, and this many
/// take hours.
const MAX_CALLS: u64 = 100_000_000_000;

/// How a kernel is timed. The defaults suit a first measurement.
///
/// ```
/// # use std::time::Duration;
/// # use runtime_core::{ModuleSource, Runtime, read_write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
/// # let x = device.tensor([1], &[1.0f32])?;
/// use runtime_core::evaluate::{Clock, Timing, Warmup};
///
/// let mut timing = Timing::default();
/// timing.repeat = 5; // samples
/// timing.number = Some(3); // calls per sample, instead of a calibration
/// timing.warmup = Warmup::Calls(1);
/// timing.clock = Clock::HostWall.into();
/// let benchmark = device.bench(&scale, (1, 1), (read_write(&x), 1.0f32));
/// let measurement = benchmark.configure(|evaluation| evaluation.timing = timing).run()?;
/// assert_eq!((measurement.samples_ns.len(), measurement.number), (5, 3));
/// assert_eq!(measurement.clock, Clock::HostWall);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// Number of samples; at least 1. Default: 10.
    pub repeat: usize,
    /// Goes on after `repeat` samples until the median is known this precisely: until the distance to the farther end of its
    /// confidence interval is at most this share of it, e.g. 0.01 for 1%, or the budget is spent. Default: `None`.
    ///
    /// Evaluating the interval more than once makes it too optimistic, because one that is narrow by chance ends the search.
    /// At least 20 samples are therefore taken, their number grows by a quarter between two evaluations of the interval, and two consecutive ones
    /// must agree. Simulated with normal, exponential and log-normal noise, the interval then contains the median in 93.5% to 97.5% of
    /// cases.
    pub until: Option<f64>,
    /// Calls per sample; `None`, the default, calibrates it by `min_repeat`. An evaluation that is cold or
    /// flushes caches per call uses 1 instead: calibration would warm up the device, and a flush per call is
    /// meant for single calls.
    pub number: Option<u64>,
    /// Minimum duration of a sample when `number` is calibrated. Default: 20 ms, a thousand times the
    /// resolution and cost of the coarsest clock, and longer than a time slice of the operating system.
    pub min_repeat: Duration,
    /// Runs before the first sample. Default: 50 ms, and at least one call. An idle GPU that is used through
    /// Vulkan or OpenCL runs the kernel for 0.3 s before a warm-up by time, because its clocks rise slowly.
    pub warmup: Warmup,
    /// Total time for warm-up, calibration, samples and the pauses between them, by the host's clock.
    /// Default: 30 s. It limits `number` and shortens the warm-up, of which at least one call is always made.
    /// Once it has run out, no further sample is started. The first sample is always taken.
    pub budget: Duration,
    /// The longest that calls are waited for at once, by the host's clock. Default: no limit. The calls of a sample or of the
    /// warm-up that would take longer, judging by those before them, become several windows of at least one call, whose times
    /// are added.
    pub max_window: Duration,
    /// The clock. Default: chosen for the device.
    pub clock: ClockChoice,
    /// When caches are flushed. Default: never.
    pub flush_cache: FlushCache,
    /// Pause between samples, but not after the last. Default: none.
    pub cooldown: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            repeat: 10,
            until: None,
            number: None,
            min_repeat: Duration::from_millis(20),
            warmup: Warmup::default(),
            budget: Duration::from_secs(30),
            max_window: Duration::MAX,
            clock: ClockChoice::Auto,
            flush_cache: FlushCache::Never,
            cooldown: Duration::ZERO,
        }
    }
}

impl Timing {
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self { repeat: 0, .. } => Err(Error::invalid("repeat is 0; at least one sample is needed")),
            Self { until: Some(until), .. } if !(until.is_finite() && *until > 0.0) => {
                Err(Error::invalid(format!("until is {until}; it must be more than 0, e.g. 0.01 for 1%")))
            }
            Self { number: Some(0), .. } => {
                Err(Error::invalid("number is 0; a sample needs at least one call"))
            }
            Self { number: Some(number), .. } if *number > MAX_CALLS => {
                let message = format!("number is {number}; a sample has at most {MAX_CALLS} calls");
                Err(Error::invalid(message))
            }
            _ => Ok(()),
        }
    }

    /// The clock that a device is timed with; `transfers`: its arguments come from host memory with each call.
    ///
    /// # Errors
    /// `Unsupported` for a clock that the device lacks; `InvalidArgument` for a held queue without a warm-up.
    pub(crate) fn choose_clock(&self, info: &DeviceInfo, transfers: bool) -> Result<Clock> {
        let is_cold = self.warmup.is_none();
        let clock = self.clock.choose(info, !is_cold && !transfers)?;
        if is_cold && clock == Clock::DeviceHeld {
            return Err(Error::invalid(
                "clock device_held needs a warm-up: some drivers compile a kernel at its first launch, which a held queue \
                 would block; use device_batch",
            ));
        }
        Ok(clock)
    }

    /// The number of calls per sample, if it needs no calibration.
    pub(crate) fn fixed_number(&self) -> Option<u64> {
        let single = self.warmup.is_none() || self.flush_cache == FlushCache::PerCall;
        self.number.or(single.then_some(1))
    }
}

/// What runs before the first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// This many calls; 0 makes a cold measurement.
    Calls(u64),
    /// Calls until this time has passed, but at least one; zero makes a cold measurement.
    Time(Duration),
}

impl Default for Warmup {
    fn default() -> Self {
        Self::Time(Duration::from_millis(50))
    }
}

impl Warmup {
    /// Whether there is no warm-up, so that the first sample is cold.
    #[must_use]
    pub const fn is_none(self) -> bool {
        matches!(self, Self::Calls(0) | Self::Time(Duration::ZERO))
    }
}

/// When caches are flushed, outside the timed window.
///
/// On other devices than the host, a buffer in device memory is filled that is as large as the last-level cache, or 64 MiB if
/// the device does not report its size: CUDA devices do, OpenCL and Vulkan devices do not. A device clock starts behind the
/// fill; a host clock starts when the fill has ended. On a host device, the submitting thread writes through memory of twice the
/// last-level cache: most data are then evicted, but not all, because processors keep some lines that were used often; private
/// caches of other cores are not flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushCache {
    /// Never: caches keep the contents of the previous call.
    #[default]
    Never,
    /// Before each sample: its first call runs with empty caches.
    PerSample,
    /// Before each call: each call is a window of its own, and the sample is their sum.
    PerCall,
}

impl FlushCache {
    const ALL: [(&str, Self); 3] =
        [("never", Self::Never), ("sample", Self::PerSample), ("call", Self::PerCall)];
}

impl fmt::Display for FlushCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].0)
    }
}

impl FromStr for FlushCache {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, flush)| *flush);
        found.ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name);
            Error::invalid(format!("unknown value \"{text}\"; {}", did_you_mean(text, &names)))
        })
    }
}
