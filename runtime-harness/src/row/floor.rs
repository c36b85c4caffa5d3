//! The least time that a call takes: what `[cost]` says that any program needs, at the measured peaks of the device.

use serde::{Deserialize, Serialize};

use super::Limit;
use crate::number_format::{duration, significant};

/// A time that no call falls below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// What takes this time: operations or bytes.
    pub limit: Limit,
    /// The time, in nanoseconds.
    pub least_ns: f64,
    /// The peak that it follows from, e.g. `L3 bandwidth`.
    pub peak: String,
    /// That peak: 10⁹ operations or bytes per second.
    pub rate: f64,
    /// How many times this rate was assumed, for what measured peaks do not show.
    pub slack: f64,
}

/// The least time of a call, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Floor {
    /// The longest of the times that are known.
    Known(Bound),
    /// No time is called impossible.
    Unknown {
        /// What is missing.
        cause: UnknownFloor,
        /// In words.
        reason: String,
    },
}

/// Why the least time of a call is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownFloor {
    /// No peak of the device is kept.
    Absent,
    /// It was measured with another driver, clock limit or version of this program.
    Outdated,
    /// It was measured under load, or nobody knows.
    Disturbed,
    /// The call takes less than it allows, and measuring it again has not shown whether the device can do that.
    Unconfirmed,
    /// It lacks the figure.
    Unmeasured,
}

impl Bound {
    /// What is to be said of a call that takes less.
    pub(super) fn broken_by(&self, median_ns: f64) -> String {
        let Self { limit, least_ns, peak, rate, slack } = self;
        let (what, unit) = match limit {
            Limit::Compute => ("operations", "GFLOP/s"),
            Limit::Memory => ("bytes", "GB/s"),
        };
        format!(
            "a call takes {}, but the {what} of [cost] take at least {} at {slack} times the {} ({} {unit}, measured again): it does \
             not do the work, or [cost] counts more than any correct program needs, which is an error of the spec",
            duration(median_ns),
            duration(*least_ns),
            peak.trim_start_matches("the "),
            significant(*rate),
        )
    }
}

impl Floor {
    pub(crate) fn unknown(cause: UnknownFloor, reason: impl Into<String>) -> Self {
        Self::Unknown { cause, reason: reason.into() }
    }

    /// What a reader of the table should know of a time that is shorter than a peak allows, without a verdict on it.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Unknown { cause: UnknownFloor::Unconfirmed, reason } => {
                Some(format!("floor unknown: {reason}"))
            }
            _ => None,
        }
    }
}
