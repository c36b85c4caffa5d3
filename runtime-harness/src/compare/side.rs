//! One side of a comparison.

use serde::{Deserialize, Serialize};

use crate::row::{Row, Status};

/// What a report says about a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The status.
    pub status: Status,
    /// Why it is not right.
    pub reason: Option<String>,
    /// Median of the samples, in nanoseconds; `None` if nothing was timed.
    pub median_ns: Option<f64>,
    /// Median of the counts of a device that counts; `None` for other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_count: Option<f64>,
    /// Number of samples.
    pub samples: usize,
}

/// The samples of a row: times, or counts.
pub(super) fn samples(row: &Row) -> &[f64] {
    match (&row.measurement, &row.counts) {
        (Some(measurement), _) => &measurement.samples_ns,
        (None, Some(counts)) => &counts.samples,
        (None, None) => &[],
    }
}

impl Side {
    pub(super) fn of(row: &Row) -> Self {
        Self {
            status: row.status,
            reason: row.reason.clone(),
            median_ns: row.measurement.as_ref().map(|measurement| measurement.statistics.median_ns),
            median_count: row.counts.as_ref().map(|counts| counts.median),
            samples: samples(row).len(),
        }
    }

    /// Whether it is a count, not a time.
    #[must_use]
    pub const fn is_count(&self) -> bool {
        self.median_count.is_some()
    }

    /// Whether it ran, and no output is known to be wrong.
    pub(super) const fn has_run(&self) -> bool {
        matches!(self.status, Status::Right | Status::Unchecked)
    }

    /// Whether it is wrong, inconsistent, impossible or failed.
    pub(super) const fn is_bad(&self) -> bool {
        self.status.is_bad()
    }

    /// Why it has no time to compare.
    pub(super) fn obstacle(&self, when: &str) -> Option<String> {
        let what = match (self.status, self.median_ns.or(self.median_count)) {
            (Status::Wrong, _) => "wrong",
            (Status::Inconsistent, _) => "inconsistent",
            (Status::Impossible, _) => "impossible",
            (Status::Failed, _) => "failed",
            (Status::NotRun, _) => "not run",
            (_, None) => return Some(format!("no measurement {when}")),
            (_, Some(_)) => return None,
        };
        let reason = self.reason.as_deref().unwrap_or_default();
        let reason = reason.lines().next().unwrap_or_default();
        Some(if reason.is_empty() { format!("{what} {when}") } else { format!("{what} {when}: {reason}") })
    }
}
