//! How an evaluation is timed: samples, warm-up, caches, budget.

use std::time::Duration;

use super::ClockChoice;
use crate::{Error, Result};

/// The most calls of a sample that a caller may ask for: a sample is never cut short, and these take hours.
const MAX_CALLS: u64 = 100_000_000_000;

/// How a kernel is timed. Every default is meant to be right for a first look.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Timing {
    /// Samples wanted; at least 1. Default 10.
    pub repeat: usize,
    /// Calls of a sample; `None`, the default, finds it by `min_repeat`. A cold evaluation, and one that flushes
    /// caches per call, takes 1 instead: to find it would warm up, and single calls are what the flush is for.
    pub number: Option<u64>,
    /// A sample lasts at least this long when `number` is found. Default 20 ms: a thousand times the resolution and
    /// cost of the coarsest clock, and longer than a turn of the operating system's scheduler.
    pub min_repeat: Duration,
    /// What runs before the first sample. Default 50 ms, which is at least one call.
    pub warmup: Warmup,
    /// Bounds warm-up, calibration, samples and the pauses between them together, by the host's clock; default 30 s. It
    /// limits `number` and cuts the warm-up short, one call of which is always made. When it is spent no further sample is
    /// begun. The first sample is always taken.
    pub budget: Duration,
    /// What times it. Default: what fits the device.
    pub clock: ClockChoice,
    /// Whether caches are flushed. Default: never.
    pub flush_cache: FlushCache,
    /// Pause between two samples, not after the last. Default: none.
    pub cooldown: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            repeat: 10,
            number: None,
            min_repeat: Duration::from_millis(20),
            warmup: Warmup::default(),
            budget: Duration::from_secs(30),
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

    /// The number of calls of a sample, where it is not to be found by trying.
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
    /// Calls until this time has passed, at least one; zero makes a cold measurement.
    Time(Duration),
}

impl Default for Warmup {
    fn default() -> Self {
        Self::Time(Duration::from_millis(50))
    }
}

impl Warmup {
    /// Whether nothing runs: the first sample is cold.
    #[must_use]
    pub const fn is_none(self) -> bool {
        matches!(self, Self::Calls(0) | Self::Time(Duration::ZERO))
    }
}

/// When caches are flushed, outside the timed window.
///
/// On a host, memory of twice the last-level cache is streamed through by the thread that submits; caches that
/// belong to other cores alone stay as they are. Elsewhere, a buffer of the device's memory is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushCache {
    /// Never: caches hold what the last call left.
    #[default]
    Never,
    /// Before each sample: the first of its calls finds nothing in the caches.
    PerSample,
    /// Before each call: each call is a window of its own, and the sample is their sum.
    PerCall,
}
