//! Counters and energy of a call as plain data.

use runtime_core::evaluate::percentile;
use serde::{Deserialize, Serialize};

/// A counter of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterValue {
    /// Name of the counter.
    pub name: String,
    /// The median of `samples`; `None` if there are none.
    pub value: Option<f64>,
    /// The smallest sample.
    #[serde(default)]
    pub min: Option<f64>,
    /// The largest sample.
    #[serde(default)]
    pub max: Option<f64>,
    /// A value for each repeat in which it counted, in order: per call, or of the whole repeat if `is_ratio`.
    #[serde(default)]
    pub samples: Vec<f64>,
    /// `value` in nanoseconds, if it counts cycles of a clock whose frequency the device reports.
    #[serde(default)]
    pub time_ns: Option<f64>,
    /// Unit of the value; `None` for plain counts, or if it is unknown.
    pub unit: Option<String>,
    /// Whether the value is a ratio, a rate or a percentage.
    #[serde(default)]
    pub is_ratio: bool,
    /// Smallest share of the time of a repeat during which it counted, if it shared the hardware and the values are
    /// extrapolated.
    pub counted_share: Option<f64>,
    /// Number of calls that were counted in each pass of each repeat.
    pub calls: u64,
    /// How often these calls were run in each repeat to read all counters of the row.
    pub passes: u32,
    /// Why there is no value.
    pub reason: Option<String>,
}

impl CounterValue {
    /// A counter that was not read, with the reason.
    pub(crate) fn missing(name: &str, reason: &str) -> Self {
        Self { name: name.to_owned(), reason: Some(reason.to_owned()), ..Self::default() }
    }

    /// The counter with samples, at least one.
    pub(crate) fn with_samples(self, samples: Vec<f64>) -> Self {
        let mut sorted = samples.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Self {
            value: Some(percentile(&sorted, 50.0)),
            min: sorted.first().copied(),
            max: sorted.last().copied(),
            samples,
            reason: None,
            ..self
        }
    }
}

/// The energy of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Microjoules per call; `None` if the counter is too coarse or unavailable.
    pub microjoules_per_call: Option<f64>,
    /// The smallest step that the counter was seen to take, in microjoules.
    pub resolution_microjoules: Option<u64>,
    /// Microjoules counted during `calls`.
    pub total_microjoules: u64,
    /// Number of calls during which energy was counted.
    pub calls: u64,
    /// Why there is no value.
    pub reason: Option<String>,
}
