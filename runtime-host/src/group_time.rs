//! How long a function takes for one work-group, estimated from its last run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time per work-group of a function's last run, in picoseconds; 0 if unknown.
#[derive(Debug)]
pub(crate) struct GroupTime(AtomicU64);

impl GroupTime {
    /// An unknown time.
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The time that this many groups take.
    pub(crate) fn estimate(&self, groups: u64) -> Option<Duration> {
        let each = self.0.load(Ordering::Relaxed);
        (each != 0).then(|| Duration::from_nanos(each.saturating_mul(groups) / 1000))
    }

    /// Notes that this many groups took this long.
    pub(crate) fn record(&self, groups: u64, took: Duration) {
        let all = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
        self.0.store((all / groups.max(1)).max(1), Ordering::Relaxed);
    }

    /// The number of groups that take about `time`.
    pub(crate) fn groups_within(&self, time: Duration) -> u64 {
        let all = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
        (all / self.0.load(Ordering::Relaxed).max(1)).max(1)
    }
}
